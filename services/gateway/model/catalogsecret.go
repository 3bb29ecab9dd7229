package model

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/source"
)

// CatalogSecret is a credential for sources of catalogs. Its value is never answered.
type CatalogSecret struct {
	Name       string            `json:"name"`
	Kind       source.SecretKind `json:"kind"`
	Commitment string            `json:"commitment,omitempty" doc:"Of the encrypted value; another one after each change"`
	UsedBy     []string          `json:"usedBy,omitempty" doc:"Catalogs whose source names it"`
	UpdatedAt  time.Time         `json:"updatedAt"`
	Position   string            `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// SetCatalogSecret gives or replaces a credential.
type SetCatalogSecret struct {
	Kind source.SecretKind `json:"kind" enum:"dockerconfigjson,basic,token,ssh,ca,kubeconfig"`
	// Value depends on the kind.
	Value json.RawMessage `json:"value" doc:"dockerconfigjson: a docker configuration, {\"auths\": …}; basic: {username, password}; token: {token}; ssh: {privateKey, knownHosts, passphrase}; ca: {certificates}, in PEM; kubeconfig: {kubeconfig}"`
}

// CatalogHook is the way in which a registry or repository asks for a poll of a catalog's source.
type CatalogHook struct {
	Path     string    `json:"path" doc:"To be called with POST, below the address of this API"`
	Secret   string    `json:"secret,omitempty" doc:"Shown once: key of the HMAC-SHA256 in X-Hub-Signature-256, or a token in Authorization: Bearer or X-Gitlab-Token"`
	Created  time.Time `json:"createdAt"`
	Position string    `json:"-"`
}

// CatalogHealth says what an unhealthy catalog does to those who see it but do not need it.
type CatalogHealth struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Mode      string `json:"mode" enum:"Independent,Strict" doc:"Independent: nothing; Strict: nothing is installed or updated while one of them is unhealthy, as in OLM"`
	Position  string `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// SetCatalogHealth chooses between the two.
type SetCatalogHealth struct {
	Mode string `json:"mode" enum:"Independent,Strict"`
}

// OperatorHub says which default catalogs are switched off (R-CFG-10).
type OperatorHub struct {
	DisableAllDefaultSources bool           `json:"disableAllDefaultSources"`
	Sources                  []HubSource    `json:"sources" nullable:"false" doc:"Go before disableAllDefaultSources"`
	Status                   []SourceStatus `json:"status" nullable:"false" doc:"What that means for each default catalog, and for each name that none bears"`
}

// SetOperatorHub says which default catalogs to switch off.
type SetOperatorHub struct {
	DisableAllDefaultSources bool        `json:"disableAllDefaultSources,omitempty"`
	Sources                  []HubSource `json:"sources,omitempty" maxItems:"256"`
}

// HubSource is one default catalog.
type HubSource struct {
	Name     string `json:"name" minLength:"1" maxLength:"253"`
	Disabled bool   `json:"disabled"`
}

// SourceStatus is what was done with one default catalog.
type SourceStatus struct {
	Name     string `json:"name"`
	Disabled bool   `json:"disabled"`
	Status   string `json:"status" enum:"Success,Error"`
	Message  string `json:"message,omitempty"`
}
