package model

// KeyUse is how much uses one key of the installation.
type KeyUse struct {
	Purpose string `json:"purpose" enum:"grant,credentials,catalog-credentials,hook" doc:"What the key is for"`
	Key     string `json:"key" doc:"Id of the key, which chandler keys list shows beside its setting; empty for what is older than ids"`
	Uses    int64  `json:"uses" doc:"Of grant: namespaces whose plans and step logs it signed; else what is encrypted to it or derived from it"`
}
