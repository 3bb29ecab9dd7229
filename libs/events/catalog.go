package events

// catalogEvents are the events of catalogs, in the order of docs/events.md.
func catalogEvents() []Definition {
	return []Definition{
		define(KindCatalog, Gateway, CatalogAdded{}, "A catalog is to be indexed and offered."),
		define(KindCatalog, Gateway, CatalogChanged{}, "The catalog's source, priority or visibility changed."),
		define(KindCatalog, Gateway, CatalogMetadataChanged{},
			"The catalog has other labels or annotations from now on."),
		define(KindCatalog, Gateway, CatalogRefreshRequested{}, "The indexer is asked to look at the source now."),
		define(KindCatalog, Gateway, CatalogRemoved{}, "The catalog is no longer offered; what is installed stays."),
		define(KindCatalog, Indexer, CatalogRevisionPublished{},
			"A complete revision is served; the difference from the one before."),
		define(KindCatalog, Indexer, CatalogLoadFailed{},
			"The source could not be taken; the revision before stays in service."),
		define(KindCatalog, Indexer, CatalogBundlesFetched{},
			"Bundle images that the catalog names were fetched, or why not."),
	}
}

// catalogSecretEvents are the events of credentials of catalogs, in the order of docs/events.md.
func catalogSecretEvents() []Definition {
	return []Definition{
		define(KindCatalogSecret, Gateway, CatalogSecretSet{},
			"A credential for catalog sources was given or replaced."),
		define(KindCatalogSecret, Gateway, CatalogSecretDeleted{},
			"A credential for catalog sources is no longer to be used."),
	}
}

// CatalogVisibility says which namespaces see a catalog: all clusters (both empty), one cluster, or
// one namespace of one cluster.
type CatalogVisibility struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// CatalogAdded says that a catalog is to be indexed. Subject: name, or cluster/namespace/name for
// one that is visible in a single cluster only.
type CatalogAdded struct {
	Name string `json:"name"`
	// see libs/source: directory, archive, git, image, grpc, configmap, sqlite
	SourceType string            `json:"sourceType"`
	Spec       string            `json:"spec"` // commitment of the source's settings (such as its path)
	Priority   int32             `json:"priority"`
	Visibility CatalogVisibility `json:"visibility"`
	// Disabled catalogs are kept and not offered, as OperatorHub does with default ones (R-CFG-10).
	Disabled bool `json:"disabled,omitempty"`
	// Templated catalogs have a revision for each Kubernetes minor version in use (R-CAT-92).
	Templated bool `json:"templated,omitempty"`
	// Signatures is the digest of the policy that says whose signature its images must bear; "" for none.
	Signatures string `json:"signatures,omitempty"`
}

// EventType implements Payload.
func (CatalogAdded) EventType() Type { return "catalog.added.v1" }

// CatalogChanged carries the whole new intent.
type CatalogChanged struct {
	SourceType string            `json:"sourceType"`
	Spec       string            `json:"spec"`
	Priority   int32             `json:"priority"`
	Visibility CatalogVisibility `json:"visibility"`
	Disabled   bool              `json:"disabled,omitempty"`
	Templated  bool              `json:"templated,omitempty"`
	Signatures string            `json:"signatures,omitempty"` // as in CatalogAdded
}

// EventType implements Payload.
func (CatalogChanged) EventType() Type { return "catalog.changed.v1" }

// CatalogRefreshRequested asks the indexer to poll the source now.
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
	// DefaultChannelFrom and DefaultChannelTo are set where the default channel is another one than before.
	DefaultChannelFrom string `json:"defaultChannelFrom,omitempty"`
	DefaultChannelTo   string `json:"defaultChannelTo,omitempty"`
	// Deprecated and Undeprecated name what is deprecated now and was not, and the other way round
	// (R-CAT-13): "olm.package", "olm.channel/<name>" or "olm.bundle/<name>". Messages are content.
	Deprecated   []string `json:"deprecated,omitempty"`
	Undeprecated []string `json:"undeprecated,omitempty"`
}

// CatalogRevisionPublished says that a complete revision is being served, and what differs from the one
// before. Revision equals Previous, with no changes, where the same content is served again after a failure.
type CatalogRevisionPublished struct {
	Revision string `json:"revision"`
	Previous string `json:"previous,omitempty"`
	Packages int    `json:"packages"`
	Bundles  int    `json:"bundles"`
	// Changes are as detailed as fits into an event: lists of bundles and deprecations go first, then heads,
	// then digests and default channels.
	Changes []PackageChange `json:"changes"`
	// All says that every package of both revisions counts as changed: there are too many to name, and
	// Changes is empty.
	All bool `json:"all,omitempty"`
	// Variant is the Kubernetes minor version, such as "1.34", for which a templated reference was
	// resolved (R-CAT-92); "" for a catalog that is the same everywhere.
	Variant string `json:"variant,omitempty"`
	// Resolved is what the source's reference pointed to: an image digest or a commit.
	Resolved string `json:"resolved,omitempty"`
	// Quarantined names the packages that a lenient catalog leaves out because they are sick.
	Quarantined []string `json:"quarantined,omitempty"`
}

// EventType implements Payload.
func (CatalogRevisionPublished) EventType() Type { return "catalog.revision-published.v1" }

// CatalogLoadFailed says that the source could not be taken; the revision before stays in service.
type CatalogLoadFailed struct {
	Reason   string `json:"reason"`   // SourceUnreadable, Unsigned, InvalidCatalog, TooLarge, TemplateUnresolved
	Rule     string `json:"rule"`     // of the first finding, such as R-CAT-35
	Findings int    `json:"findings"` // how many
	Document string `json:"document"` // digest of the findings, in the catalog schema
	Input    string `json:"input"`    // digest of what was read, so that the same failure is recorded once
	Variant  string `json:"variant,omitempty"`
}

// EventType implements Payload.
func (CatalogLoadFailed) EventType() Type { return "catalog.load-failed.v1" }

// FetchedBundle is the outcome of fetching one bundle image.
type FetchedBundle struct {
	Package string `json:"package"`
	Bundle  string `json:"bundle"`
	Image   string `json:"image"`
	// Content is the digest of the canonical bundle; "" where Reason says why there is none.
	Content string `json:"content,omitempty"`
	// Unreachable, Unauthorized, NotFound, DigestMismatch, InvalidBundle, TooLarge
	Reason string `json:"reason,omitempty"`
}

// CatalogBundlesFetched says that bundle images which a catalog names were fetched, or why not: from now
// on the bundles can be planned.
type CatalogBundlesFetched struct {
	Bundles []FetchedBundle `json:"bundles"`
}

// EventType implements Payload.
func (CatalogBundlesFetched) EventType() Type { return "catalog.bundles-fetched.v1" }

// CatalogSecretSet says that a credential for catalog sources was given or replaced. Subject: its name.
type CatalogSecretSet struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // see libs/source: dockerconfigjson, basic, token, ssh, ca, kubeconfig
	// Credential is the commitment of the encrypted value in the gateway's erasable store.
	Credential string `json:"credential"`
}

// EventType implements Payload.
func (CatalogSecretSet) EventType() Type { return "catalogsecret.set.v1" }

// CatalogSecretDeleted says that a credential is no longer to be used.
type CatalogSecretDeleted struct{}

// EventType implements Payload.
func (CatalogSecretDeleted) EventType() Type { return "catalogsecret.deleted.v1" }

// CatalogHealthSet says what an unhealthy catalog does to those who see it but do not need it, for all
// catalogs of one catalog namespace (R-CAT-99). Subject: "catalog-health" for hub catalogs,
// "catalog-health/cluster/namespace" for those of a namespace.
type CatalogHealthSet struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Mode      string `json:"mode"` // Independent (nothing, the default), Strict (blocks them as OLM does)
}

// EventType implements Payload.
func (CatalogHealthSet) EventType() Type { return "policy.catalog-health-set.v1" }

// CatalogMetadataChanged carries all labels and annotations that the catalog has from now on.
type CatalogMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (CatalogMetadataChanged) EventType() Type { return "catalog.metadata-changed.v1" }
