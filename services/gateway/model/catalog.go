package model

import (
	"encoding/json"
	"time"
)

// CatalogSource says where a catalog's content comes from.
type CatalogSource struct {
	Type string `json:"type" enum:"directory" doc:"directory: a file-based catalog or bundle directories that the indexer can read"`
	Path string `json:"path,omitempty" maxLength:"4096" doc:"Absolute path of the directory"`
}

// CatalogVisibility says who sees a catalog: everybody when empty.
type CatalogVisibility struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// States of a catalog.
const (
	CatalogLoading = "Loading" // no revision is in service yet
	CatalogReady   = "Ready"
	CatalogFailed  = "Failed" // the last look at the source failed
)

// Catalog is a source of operators. A hub catalog has neither cluster nor namespace.
type Catalog struct {
	Name       string            `json:"name" example:"fleet-catalog"`
	Cluster    string            `json:"cluster,omitempty" doc:"The cluster that it belongs to"`
	Namespace  string            `json:"namespace,omitempty" doc:"The namespace that it belongs to"`
	Source     CatalogSource     `json:"source"`
	Priority   int32             `json:"priority" doc:"Higher is preferred"`
	Visibility CatalogVisibility `json:"visibility"`
	State      string            `json:"state" enum:"Loading,Ready,Failed" doc:"Failed: the last look at the source failed; a revision from before stays in service"`
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
	// Details are the findings of a failure, in answers about one catalog.
	Details json.RawMessage `json:"details,omitempty" doc:"Findings of the failure"`
}

// AddCatalog offers a catalog.
type AddCatalog struct {
	Name       string        `json:"name" minLength:"1" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Cluster    string        `json:"cluster,omitempty" maxLength:"63" doc:"Makes it a catalog of this cluster, together with namespace"`
	Namespace  string        `json:"namespace,omitempty" maxLength:"63" doc:"Namespace of the CatalogSource that it stands for"`
	Visibility string        `json:"visibility,omitempty" enum:"cluster,namespace" doc:"Of a cluster's catalog: the whole cluster (also without it), or its own namespace"`
	Source     CatalogSource `json:"source"`
	Priority   int32         `json:"priority,omitempty"`
}

// ChangeCatalog replaces the whole intent of a catalog.
type ChangeCatalog struct {
	Visibility string        `json:"visibility,omitempty" enum:"cluster,namespace" doc:"As when adding"`
	Source     CatalogSource `json:"source"`
	Priority   int32         `json:"priority,omitempty"`
}

// CatalogFilter chooses catalogs.
type CatalogFilter struct {
	State string
	// Cluster chooses what this cluster can see: hub catalogs and its own.
	Cluster string
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
}

// PackageSummary is one package in a list.
type PackageSummary struct {
	Name           string `json:"name"`
	Digest         string `json:"digest"`
	DefaultChannel string `json:"defaultChannel"`
	Description    string `json:"description,omitempty"`
	Channels       int    `json:"channels"`
	Bundles        int    `json:"bundles"`
	Deprecated     string `json:"deprecated,omitempty" doc:"Message, if the package is deprecated"`
}

// PackageDetail is one package of a catalog.
type PackageDetail struct {
	PackageSummary
	Catalog  string       `json:"catalog"`
	Revision string       `json:"revision"`
	Icon     *PackageIcon `json:"icon,omitempty"`
	// ChannelList has the channels themselves; Channels counts them.
	ChannelList []ChannelSummary `json:"channelList" nullable:"false"`
}

// PackageIcon is the picture of a package.
type PackageIcon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// ChannelSummary is one channel of a package.
type ChannelSummary struct {
	Name       string   `json:"name"`
	Heads      []string `json:"heads" doc:"Entries that no other entry replaces or skips; one in a valid channel"`
	Entries    int      `json:"entries"`
	Deprecated string   `json:"deprecated,omitempty"`
}

// BundleSummary is one bundle of a package.
type BundleSummary struct {
	Name       string          `json:"name"`
	Package    string          `json:"package"`
	Version    string          `json:"version"`
	Release    string          `json:"release,omitempty"`
	Image      string          `json:"image,omitempty"`
	Content    string          `json:"content,omitempty" doc:"Digest of the canonical bundle"`
	Channels   []string        `json:"channels"`
	Deprecated string          `json:"deprecated,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty" doc:"Display part of the CSV"`
}

// BundleFilter chooses bundles of a catalog.
type BundleFilter struct {
	Package string
	Channel string
	Page
}
