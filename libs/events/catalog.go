package events

// CatalogVisibility says which namespaces see a catalog: all clusters (both empty), one cluster, or
// one namespace of one cluster.
type CatalogVisibility struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// CatalogAdded says that a catalog is to be indexed. Subject: name, or cluster/namespace/name for
// one that is visible in a single cluster only.
type CatalogAdded struct {
	Name       string            `json:"name"`
	SourceType string            `json:"sourceType"` // directory
	Spec       string            `json:"spec"`       // commitment of the source's settings (such as its path)
	Priority   int32             `json:"priority"`
	Visibility CatalogVisibility `json:"visibility"`
}

// EventType implements Payload.
func (CatalogAdded) EventType() Type { return "catalog.added.v1" }

// CatalogChanged carries the whole new intent.
type CatalogChanged struct {
	SourceType string            `json:"sourceType"`
	Spec       string            `json:"spec"`
	Priority   int32             `json:"priority"`
	Visibility CatalogVisibility `json:"visibility"`
}

// EventType implements Payload.
func (CatalogChanged) EventType() Type { return "catalog.changed.v1" }

// CatalogRefreshRequested asks the indexer to look at the source now.
type CatalogRefreshRequested struct{}

// EventType implements Payload.
func (CatalogRefreshRequested) EventType() Type { return "catalog.refresh-requested.v1" }

// CatalogRemoved says that a catalog is no longer offered; what is installed stays.
type CatalogRemoved struct{}

// EventType implements Payload.
func (CatalogRemoved) EventType() Type { return "catalog.removed.v1" }

// HeadMove is a channel whose head is another bundle than in the revision before; From is empty for
// a new channel and To for one that is gone.
type HeadMove struct {
	Channel string `json:"channel"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
}

// PackageChange is one package that differs from the revision before.
type PackageChange struct {
	Package string     `json:"package"`
	Change  string     `json:"change"` // added, removed, changed
	Digest  string     `json:"digest,omitempty"`
	Heads   []HeadMove `json:"heads,omitempty"`
	// BundlesAdded, BundlesRemoved and BundlesMutated are bundle names; mutated means other content
	// under the same name, which is never re-installed (R-CAT-64).
	BundlesAdded   []string `json:"bundlesAdded,omitempty"`
	BundlesRemoved []string `json:"bundlesRemoved,omitempty"`
	BundlesMutated []string `json:"bundlesMutated,omitempty"`
}

// CatalogRevisionPublished says that a complete revision is being served, and what differs from the one before.
type CatalogRevisionPublished struct {
	Revision string          `json:"revision"`
	Previous string          `json:"previous,omitempty"`
	Packages int             `json:"packages"`
	Bundles  int             `json:"bundles"`
	Changes  []PackageChange `json:"changes"`
}

// EventType implements Payload.
func (CatalogRevisionPublished) EventType() Type { return "catalog.revision-published.v1" }

// CatalogLoadFailed says that the source could not be taken; the revision before stays in service.
type CatalogLoadFailed struct {
	Reason   string `json:"reason"`   // SourceUnreadable, InvalidCatalog, TooLarge
	Rule     string `json:"rule"`     // of the first finding, such as R-CAT-35
	Findings int    `json:"findings"` // how many
	Document string `json:"document"` // digest of the findings, in the catalog schema
	Input    string `json:"input"`    // digest of what was looked at, so that the same failure is said once
}

// EventType implements Payload.
func (CatalogLoadFailed) EventType() Type { return "catalog.load-failed.v1" }
