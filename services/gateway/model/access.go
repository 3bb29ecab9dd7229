package model

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

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

// HardQuota is what a tenant may have and ask for at most. What is left out is not bounded.
type HardQuota struct {
	Subscriptions     *int64 `json:"subscriptions,omitempty" minimum:"0" maximum:"1000000" doc:"Subscriptions in all clusters"`
	Catalogs          *int64 `json:"catalogs,omitempty" minimum:"0" maximum:"1000000" doc:"Catalogs, those that come with the installation included, which are never refused"`
	RequestsPerSecond *int64 `json:"requestsPerSecond,omitempty" minimum:"1" maximum:"1000000" doc:"Reads a second of all its people and programs, over a time; half as many lists and as many writes again, each counted by itself, as those of one identity; four seconds' worth at once"`
	Streams           *int64 `json:"streams,omitempty" minimum:"0" maximum:"1000000" doc:"Open event streams"`
}

// UsedQuota is what a tenant has and asks for.
type UsedQuota struct {
	Subscriptions     int64 `json:"subscriptions"`
	Catalogs          int64 `json:"catalogs"`
	RequestsPerSecond int64 `json:"requestsPerSecond" doc:"In the last whole second, at the gateway that answers"`
	Streams           int64 `json:"streams" doc:"At the gateway that answers"`
}

// Quota is what a tenant may have, beside what it has.
type Quota struct {
	Tenant    string     `json:"tenant"`
	Hard      HardQuota  `json:"hard" doc:"Bounds; what is left out is not bounded"`
	Used      UsedQuota  `json:"used"`
	Gateways  int64      `json:"gateways" doc:"Gateways that serve: each allows its part of the requests and streams"`
	UpdatedAt *time.Time `json:"updatedAt,omitempty" doc:"When the bounds were set; absent where nobody has"`
	Stream    string     `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version   int64      `json:"version,omitempty" doc:"Of its stream"`
	Position  string     `json:"position,omitempty" doc:"Position of the event, in the answer to a write"`
}

// SetQuota replaces the bounds of a tenant.
type SetQuota struct {
	Hard HardQuota `json:"hard" doc:"Bounds; what is left out is not bounded any more"`
}

// Event is what the log has of bounds.
func (h HardQuota) Event() (e events.QuotaSet) {
	e.Bounds = []events.QuotaBound{}
	for _, b := range []struct {
		resource string
		hard     *int64
	}{
		{"subscriptions", h.Subscriptions},
		{"catalogs", h.Catalogs},
		{"requestsPerSecond", h.RequestsPerSecond},
		{"streams", h.Streams},
	} {
		if b.hard != nil {
			e.Bounds = append(e.Bounds, events.QuotaBound{Resource: b.resource, Hard: *b.hard})
		}
	}
	return e
}
