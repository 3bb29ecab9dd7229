package model

import "time"

// AccessEntry is one request to the API, or several that were refused.
type AccessEntry struct {
	At         time.Time `json:"at" doc:"When the request began"`
	Actor      string    `json:"actor,omitempty" doc:"Opaque id of who asked; absent where nobody was recognised"`
	Via        string    `json:"via,omitempty" doc:"Opaque id of the service account through which they asked"`
	Token      string    `json:"token,omitempty" doc:"Id of the token"`
	Role       Role      `json:"role,omitempty"`
	Address    string    `json:"address,omitempty" doc:"Of the client, as far as trusted proxies tell it; others where too many addresses were refused at once"`
	Method     string    `json:"method,omitempty"`
	Route      string    `json:"route,omitempty" doc:"Pattern of the route"`
	Path       string    `json:"path,omitempty" doc:"Absent where nobody was recognised"`
	Status     int       `json:"status" doc:"HTTP status of the answer; 0: requests that were not kept one by one, which count counts"`
	TookMicros int64     `json:"tookMicros" doc:"Microseconds until the answer was complete; of a stream, until it ended"`
	Request    string    `json:"request,omitempty" doc:"Id of the request, as in the log of the gateway"`
	Count      int64     `json:"count" doc:"1; more for requests that were refused within a second, of which the first is told"`
}

// AccessFilter chooses requests; empty fields choose all.
type AccessFilter struct {
	Actor, Token, Address string
	MinStatus             int
	From, Until           *time.Time
}

// KeyUse is how much uses one key of the installation.
type KeyUse struct {
	Purpose string `json:"purpose" enum:"grant,credentials,catalog-credentials,hook,configuration,source,annotation,reason" doc:"What the key is for"`
	Key     string `json:"key" doc:"Id of the key, which chandler keys list shows beside its setting; empty for what is older than ids"`
	Uses    int64  `json:"uses" doc:"Of grant: namespaces whose plans and step logs it signed; else what is encrypted to it or derived from it"`
}
