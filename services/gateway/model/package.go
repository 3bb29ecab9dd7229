package model

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog/display"
)

// PackageSummary is one package in a list: what its tile shows (R-CAT-106). It describes the head of the
// default channel. Icons are at …/icon.
type PackageSummary struct {
	Name           string            `json:"name"`
	Digest         string            `json:"digest"`
	DisplayName    string            `json:"displayName,omitempty"`
	Description    string            `json:"description,omitempty" doc:"One sentence"`
	Provider       string            `json:"provider,omitempty"`
	ProviderURL    string            `json:"providerURL,omitempty"`
	Categories     []string          `json:"categories,omitempty"`
	Keywords       []string          `json:"keywords,omitempty"`
	Capability     string            `json:"capability,omitempty" doc:"Basic Install, Seamless Upgrades, Full Lifecycle, Deep Insights or Auto Pilot"`
	Features       []string          `json:"infrastructureFeatures,omitempty" doc:"Such as disconnected"`
	InstallModes   []string          `json:"installModes,omitempty" doc:"Those that it supports"`
	Labels         map[string]string `json:"labels,omitempty" doc:"Of the CSV, such as operatorframework.io/arch.arm64"`
	DefaultChannel string            `json:"defaultChannel"`
	CSV            string            `json:"currentCSV,omitempty" doc:"Of the default channel"`
	Version        string            `json:"version,omitempty" doc:"Of currentCSV"`
	MinKubeVersion string            `json:"minKubeVersion,omitempty"`
	Channels       int               `json:"channels"`
	Bundles        int               `json:"bundles"`
	Deprecated     string            `json:"deprecated,omitempty" doc:"Message, if the package is deprecated"`
	HasIcon        bool              `json:"hasIcon" doc:"Whether …/icon is its own and not the default picture"`
}

// FoundPackage is one package of one catalog.
type FoundPackage struct {
	PackageSummary

	Catalog CatalogName `json:"catalog"`
}

// CatalogName names a catalog to people and programs.
type CatalogName struct {
	Name        string    `json:"name"`
	Cluster     string    `json:"cluster,omitempty"`
	Namespace   string    `json:"namespace,omitempty"`
	DisplayName string    `json:"displayName,omitempty"`
	Publisher   string    `json:"publisher,omitempty"`
	AddedAt     time.Time `json:"addedAt" doc:"When it was first offered"`
}

// PackageFilter chooses packages over all catalogs. Several values of one field are alternatives.
type PackageFilter struct {
	Search       string
	Categories   []string
	Providers    []string
	ProviderURLs []string
	Capabilities []string
	Features     []string
	InstallModes []string
	Catalogs     []string
	// Labels are key=value, and all must hold.
	Labels []string
	// CatalogNamespace chooses catalogs of this namespace.
	CatalogNamespace string
	// Cluster and Namespace choose what can be seen from there (R-CAT-105).
	Cluster   string
	Namespace string
	Page
}

// Facets count what was found by each field; a field's own filter is left out of its counts, so that the
// other choices show what they would add.
type Facets struct {
	Categories   []FacetValue `json:"category" nullable:"false"`
	Providers    []FacetValue `json:"provider" nullable:"false"`
	Capabilities []FacetValue `json:"capability" nullable:"false"`
	Features     []FacetValue `json:"infrastructureFeature" nullable:"false"`
	InstallModes []FacetValue `json:"installMode" nullable:"false"`
	Catalogs     []FacetValue `json:"catalog" nullable:"false"`
}

// FacetValue is one value and how many packages have it.
type FacetValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// FoundPackages is a page of packages with counts over all pages.
type FoundPackages struct {
	Items  []FoundPackage
	Next   []string
	Total  int
	Facets Facets
}

// PackageDetail is one package of a catalog (R-CAT-106).
type PackageDetail struct {
	PackageSummary
	Catalog         string      `json:"catalog"`
	CatalogName     CatalogName `json:"catalogName"`
	Revision        string      `json:"revision"`
	LongDescription string      `json:"longDescription,omitempty" doc:"Of the package, Markdown"`
	// ChannelList has the channels themselves; Channels counts them.
	ChannelList []ChannelDetail `json:"channelList" nullable:"false"`
}

// ChannelSummary is one channel of a package.
type ChannelSummary struct {
	Name       string   `json:"name"`
	Heads      []string `json:"heads" doc:"Entries that no other entry replaces or skips; one in a valid channel"`
	CurrentCSV string   `json:"currentCSV,omitempty"`
	Version    string   `json:"version,omitempty" doc:"Of currentCSV"`
	Entries    int      `json:"entries"`
	Deprecated string   `json:"deprecated,omitempty"`
}

// ChannelDetail is one channel with its versions and how its head describes itself.
type ChannelDetail struct {
	ChannelSummary

	EntryList []ChannelEntry  `json:"entryList" nullable:"false" doc:"Newest version first"`
	Current   *CSVDescription `json:"currentCSVDesc,omitempty"`
}

// ChannelEntry is one version in a channel.
type ChannelEntry struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Deprecated string `json:"deprecated,omitempty"`
}

// CSVDescription is the display part of a CSV.
type CSVDescription struct {
	DisplayName    string                `json:"displayName,omitempty"`
	Version        string                `json:"version"`
	Description    string                `json:"description,omitempty" doc:"Markdown"`
	Provider       display.Provider      `json:"provider"`
	Keywords       []string              `json:"keywords,omitempty"`
	Links          []display.Link        `json:"links,omitempty"`
	Maintainers    []display.Maintainer  `json:"maintainers,omitempty"`
	Maturity       string                `json:"maturity,omitempty"`
	MinKubeVersion string                `json:"minKubeVersion,omitempty"`
	Capability     string                `json:"capability,omitempty"`
	Categories     []string              `json:"categories,omitempty"`
	Features       []string              `json:"infrastructureFeatures,omitempty"`
	InstallModes   []display.InstallMode `json:"installModes,omitempty"`
	Annotations    map[string]string     `json:"annotations,omitempty"`
	Labels         map[string]string     `json:"labels,omitempty"`
	CRDs           json.RawMessage       `json:"customresourcedefinitions,omitempty"`
	APIServices    json.RawMessage       `json:"apiservicedefinitions,omitempty"`
	NativeAPIs     json.RawMessage       `json:"nativeApis,omitempty"`
	RelatedImages  []string              `json:"relatedImages,omitempty"`
}

// PackageIcon is the picture of a package.
type PackageIcon struct {
	Data      []byte
	MediaType string
	ETag      string
}

// BundleSummary is one bundle of a package.
type BundleSummary struct {
	Name       string          `json:"name"`
	Package    string          `json:"package"`
	Version    string          `json:"version"`
	Release    string          `json:"release,omitempty"`
	Image      string          `json:"image,omitempty"`
	Content    string          `json:"content,omitempty" doc:"Digest of the canonical bundle; absent until a bundle image is fetched"`
	FetchError string          `json:"fetchError,omitempty" doc:"Why the bundle image could not be fetched"`
	Channels   []string        `json:"channels"`
	Deprecated string          `json:"deprecated,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty" doc:"Display part of the CSV"`
}

// BundleFilter chooses bundles of a catalog.
type BundleFilter struct {
	Package string
	Channel string
	View    CatalogView
	Page
}
