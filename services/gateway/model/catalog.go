package model

import (
	"encoding/json"
	"time"
)

// CatalogVisibility says who sees a catalog: everybody when empty.
type CatalogVisibility struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// States of a catalog.
const (
	CatalogLoading = "Loading" // no revision is in service yet
	CatalogReady   = "Ready"
	CatalogFailed  = "Failed" // the last poll of the source failed
	// CatalogDisabled stands for each of them in lists of a catalog that is not offered.
	CatalogDisabled = "Disabled"
)

// Catalog is a source of operators. A hub catalog has neither cluster nor namespace.
type Catalog struct {
	Name      string `json:"name" example:"fleet-catalog"`
	Cluster   string `json:"cluster,omitempty" doc:"The cluster that it belongs to"`
	Namespace string `json:"namespace,omitempty" doc:"The namespace that it belongs to"`
	Metadata
	Display    *CatalogDisplay   `json:"display,omitempty"`
	Source     CatalogSource     `json:"source"`
	Priority   int32             `json:"priority" doc:"Higher is preferred"`
	Visibility CatalogVisibility `json:"visibility"`
	Disabled   bool              `json:"disabled" doc:"Kept and not offered"`
	Default    bool              `json:"default,omitempty" doc:"Comes with this installation: can be disabled, and neither changed nor removed"`
	State      string            `json:"state" enum:"Loading,Ready,Failed" doc:"Failed: the last poll of the source failed; a revision from before stays in service"`
	Reason     string            `json:"reason,omitempty" doc:"Code of the failure"`
	Rule       string            `json:"rule,omitempty" doc:"Rule that the first finding breaks"`
	Findings   int               `json:"findings,omitempty" doc:"How many findings the failure has"`
	Revision   string            `json:"revision,omitempty" doc:"Digest of the revision in service"`
	Packages   int               `json:"packages" doc:"Of the revision in service"`
	Bundles    int               `json:"bundles" doc:"Of the revision in service"`
	Event      string            `json:"event,omitempty" doc:"Id of the event that set the state"`
	AddedAt    time.Time         `json:"addedAt"`
	UpdatedAt  time.Time         `json:"updatedAt"`
	Stream     string            `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version    int64             `json:"version,omitempty" doc:"Of its stream"`
	Position   string            `json:"position,omitempty" doc:"Of the write, in answers to writes"`
	// Variants are what the indexer saw, the highest Kubernetes version first; one without a version where
	// the content is the same everywhere.
	Variants   []CatalogVariant `json:"variants,omitempty" doc:"What the indexer saw: one entry, or one for each Kubernetes minor version in use of a templated catalog"`
	Conditions []Condition      `json:"conditions,omitempty" doc:"In answers about one catalog"`
	// Details are the findings of a failure, in answers about one catalog.
	Details    json.RawMessage `json:"details,omitempty" doc:"Findings of the failure; …/findings has those of a success, too"`
	Unreadable []Unreadable    `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened: it is left out"`
}

// CatalogVariant is what the indexer saw of a source (R-CAT-93…96).
type CatalogVariant struct {
	Variant     string     `json:"variant,omitempty" doc:"Kubernetes minor version, such as 1.34, of a templated catalog"`
	Reference   string     `json:"reference,omitempty" doc:"What was read, such as the image that the template stands for"`
	Resolved    string     `json:"resolved,omitempty" doc:"Image digest or commit that the reference stood for"`
	Revision    string     `json:"revision,omitempty" doc:"Digest of the revision in service"`
	State       string     `json:"state" enum:"Loading,Ready,Failed"`
	Reason      string     `json:"reason,omitempty"`
	Message     string     `json:"message,omitempty"`
	Connection  string     `json:"connectionState,omitempty" doc:"IDLE, CONNECTING, READY or TRANSIENT_FAILURE"`
	ObservedAt  *time.Time `json:"lastObservedAt,omitempty" doc:"When the connection state last changed"`
	ConnectedAt *time.Time `json:"lastConnectAt,omitempty"`
	PolledAt    *time.Time `json:"lastPollAt,omitempty"`
	NextAt      *time.Time `json:"nextPollAt,omitempty"`
	Error       string     `json:"error,omitempty" doc:"Of the last attempt, for people"`
	ErrorReason string     `json:"errorReason,omitempty" doc:"SpecInvalidError, ConfigMapError, RegistryServerError or InvalidIntervalError"`
	Quarantined []string   `json:"quarantined,omitempty" doc:"Packages that a lenient catalog leaves out because they are sick"`
	Errors      int        `json:"errors" doc:"Findings of the last poll"`
	Warnings    int        `json:"warnings"`
	Infos       int        `json:"infos"`
}

// AddCatalog offers a catalog.
type AddCatalog struct {
	Name      string `json:"name" minLength:"1" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Cluster   string `json:"cluster,omitempty" maxLength:"63" doc:"Makes it a catalog of this cluster, together with namespace"`
	Namespace string `json:"namespace,omitempty" maxLength:"63" doc:"Namespace of the CatalogSource that it stands for"`
	Metadata
	Visibility string          `json:"visibility,omitempty" enum:"cluster,namespace" doc:"Of a cluster's catalog: the whole cluster, or its own namespace. Without it the whole cluster where the namespace is one of the setting global-catalog-namespaces (openshift-marketplace, olm, catalogs), else the namespace (R-CAT-85)"`
	Source     CatalogSource   `json:"source"`
	Display    *CatalogDisplay `json:"display,omitempty" doc:"What people see of it"`
	Priority   int32           `json:"priority,omitempty"`
	Disabled   bool            `json:"disabled,omitempty" doc:"Keep it and do not offer it"`
}

// Intent is all of the catalog but its name.
func (c AddCatalog) Intent() ChangeCatalog {
	return ChangeCatalog{
		Metadata: c.Metadata, Visibility: c.Visibility, Source: c.Source, Display: c.Display,
		Priority: c.Priority, Disabled: c.Disabled,
	}
}

// ChangeCatalog replaces the whole intent of a catalog.
type ChangeCatalog struct {
	Metadata
	Visibility string          `json:"visibility,omitempty" enum:"cluster,namespace" doc:"Of a cluster's catalog: the whole cluster, or its own namespace. Without it the whole cluster where the namespace is one of the setting global-catalog-namespaces (openshift-marketplace, olm, catalogs), else the namespace (R-CAT-85)"`
	Source     CatalogSource   `json:"source"`
	Display    *CatalogDisplay `json:"display,omitempty" doc:"What people see of it"`
	Priority   int32           `json:"priority,omitempty"`
	Disabled   bool            `json:"disabled,omitempty" doc:"Keep it and do not offer it"`
}

// Finding is one thing that is wrong with a catalog, where, and how to correct it.
type Finding struct {
	Rule     string `json:"rule" example:"R-CAT-35"`
	Severity string `json:"severity" enum:"error,warning,info"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Package  string `json:"package,omitempty"`
	Message  string `json:"message"`
}

// FindingFilter chooses findings of a catalog's last poll.
type FindingFilter struct {
	Variant  string
	Severity string
	Package  string
	Page
}

// CatalogView says for whom a templated catalog is read: for a cluster, or for clusters of a Kubernetes minor
// version. Without either it is the newest.
type CatalogView struct {
	Cluster string
	Variant string
}

// CatalogFilter chooses catalogs.
type CatalogFilter struct {
	State string
	Label string // key=value, or key
	// Cluster chooses what this cluster can see: hub catalogs and its own.
	Cluster string
	Choice
	Page
}

// Revision is one state of a catalog's content that was in service.
type Revision struct {
	Revision string    `json:"revision" doc:"Digest"`
	Previous string    `json:"previous,omitempty"`
	Packages int       `json:"packages"`
	Bundles  int       `json:"bundles"`
	Version  int64     `json:"version" doc:"Of the event that published it, in the catalog's stream"`
	Created  time.Time `json:"createdAt"`
	Variant  string    `json:"variant,omitempty" doc:"Kubernetes minor version that it is for, of a templated catalog"`
	// Changes are those of the event that published it.
	Changes []RevisionChange `json:"changes" nullable:"false" doc:"Packages that differ from the revision before"`
}

// RevisionChange is one package that differs from the revision before.
type RevisionChange struct {
	Package            string        `json:"package"`
	Change             string        `json:"change" enum:"added,removed,changed"`
	Digest             string        `json:"digest,omitempty" doc:"Of the package document"`
	Heads              []ChannelMove `json:"heads,omitempty" doc:"Channels whose head is another bundle now"`
	BundlesAdded       []string      `json:"bundlesAdded,omitempty"`
	BundlesRemoved     []string      `json:"bundlesRemoved,omitempty"`
	BundlesMutated     []string      `json:"bundlesMutated,omitempty" doc:"Other content under the same name, which is never installed again"`
	DefaultChannelFrom string        `json:"defaultChannelFrom,omitempty"`
	DefaultChannelTo   string        `json:"defaultChannelTo,omitempty"`
	Deprecated         []string      `json:"deprecated,omitempty" doc:"olm.package, olm.channel/NAME or olm.bundle/NAME"`
	Undeprecated       []string      `json:"undeprecated,omitempty"`
}

// ChannelMove is a channel whose head is another bundle; From is empty for a new channel, To for one that is gone.
type ChannelMove struct {
	Channel string `json:"channel"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
}

// Blob is a document of a schema that Chandler does not know (R-CAT-8).
type Blob struct {
	Schema  string `json:"schema"`
	Package string `json:"package,omitempty"`
	Name    string `json:"name,omitempty"`
	Digest  string `json:"digest" doc:"Of the bytes"`
	Body    []byte `json:"body" doc:"The bytes as they are in the catalog"`
}

// BlobFilter chooses blobs of a catalog.
type BlobFilter struct {
	Schema  string
	Package string
	Name    string
	View    CatalogView
	Page
}
