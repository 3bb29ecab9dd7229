package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/browse"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// PackagesQuery chooses packages over all catalogs.
type PackagesQuery struct {
	Search           string   `query:"search" maxLength:"256" doc:"Words that names, keywords or descriptions hold; the beginning of a word is enough"`
	Category         []string `query:"category,explode" maxItems:"32" doc:"May be given several times, as alternatives; so may the others"`
	Provider         []string `query:"provider,explode" maxItems:"32"`
	ProviderURL      []string `query:"providerURL,explode" maxItems:"32" doc:"Of the provider's home page, as packages name it"`
	Capability       []string `query:"capability,explode" maxItems:"8" doc:"Such as Deep Insights"`
	Feature          []string `query:"infrastructureFeature,explode" maxItems:"32" doc:"Such as disconnected"`
	InstallMode      []string `query:"installMode,explode" maxItems:"4" enum:"OwnNamespace,SingleNamespace,MultiNamespace,AllNamespaces"`
	Catalog          []string `query:"catalog,explode" maxItems:"32" doc:"Name, or cluster/namespace/name"`
	CatalogNamespace string   `query:"catalogNamespace" maxLength:"63" doc:"Only catalogs of this namespace"`
	Label            []string `query:"label,explode" maxItems:"16" doc:"key=value or key, of the CSV; all must hold"`
	Cluster          string   `query:"cluster" maxLength:"63" doc:"Only what this cluster sees: in each of its namespaces, unless namespace or a catalog is named"`
	Namespace        string   `query:"namespace" maxLength:"63" doc:"Only what this namespace sees"`
}

// foundList is a page of packages with counts.
type foundList struct {
	Items  []model.FoundPackage `json:"items" nullable:"false"`
	Next   string               `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
	Total  int                  `json:"total" doc:"On all pages"`
	Facets model.Facets         `json:"facets" doc:"How many packages have a value; the field's own filter is left out"`
}

// packageHandlers search packages over all catalogs.
type packageHandlers struct{ Deps }

func (h packageHandlers) register(a *API) {
	register(a, whatIsSeen(access.List, access.Packages),
		operation(http.MethodGet, "/packages", "search-packages", tagCatalogs,
			"Search the packages of all catalogs, with counts by category, provider, capability, feature, install mode "+
				"and catalog"), h.searchPackages)
	icon := pictured(operation(http.MethodGet, "/catalogs/{catalog}/packages/{package}/icon", "get-package-icon",
		tagCatalogs, "Get the picture of a package; the default one where it has none"), "The picture",
		browse.IconTypes()...)
	register(a, whatIsOffered(access.Get, access.Packages), icon, h.getPackageIcon)
}

const (
	// iconFresh is how long a browser shows an icon without asking again: icons change with releases.
	iconFresh = 5 * time.Minute
	// badgeFresh is the same of a badge: a page full of them asks once a minute, and nobody acts on a badge alone.
	badgeFresh = time.Minute
)

// picture is an answer that is an image. What is in it may have been written by others, whoever made a package or a
// link, so that a browser that opens it must run nothing of it.
type picture struct {
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Cache       string `header:"Cache-Control"`
	Policy      string `header:"Content-Security-Policy"`
	Sniff       string `header:"X-Content-Type-Options"`
	Body        []byte
}

func pictureOf(mediaType, tag string, data []byte, fresh time.Duration) *picture {
	return &picture{
		ContentType: mediaType, ETag: tag, Cache: fmt.Sprintf("private, max-age=%.0f", fresh.Seconds()),
		Policy: "default-src 'none'; style-src 'unsafe-inline'; sandbox", Sniff: "nosniff", Body: data,
	}
}

// pictured documents an operation whose answer is an image of one of the media types.
func pictured(op huma.Operation, description string, mediaTypes ...string) huma.Operation {
	content := map[string]*huma.MediaType{}
	for _, mediaType := range mediaTypes {
		content[mediaType] = &huma.MediaType{Schema: &huma.Schema{
			Type: huma.TypeString, Extensions: map[string]any{"contentMediaType": mediaType},
		}}
	}
	op.Responses = map[string]*huma.Response{"200": {Description: description, Content: content}}
	return op
}

type searchPackagesInput struct {
	ListQuery
	PackagesQuery
}

func (h packageHandlers) searchPackages(
	ctx context.Context, who model.Caller, in *searchPackagesInput,
) (*output[foundList], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	found, err := h.Reads.Browse.Search(ctx, who, model.PackageFilter{
		Search: in.Search, Categories: in.Category, Providers: in.Provider, ProviderURLs: in.ProviderURL,
		Capabilities: in.Capability, Features: in.Feature, InstallModes: in.InstallMode, Catalogs: in.Catalog,
		CatalogNamespace: in.CatalogNamespace, Labels: in.Label, Cluster: in.Cluster, Namespace: in.Namespace,
		Page: page,
	})
	items, err := listed(found.Items, found.Next, err)
	if err != nil {
		return nil, err
	}
	return &output[foundList]{Body: foundList{items.Body.Items, items.Body.Next, found.Total, found.Facets}}, nil
}

func (h packageHandlers) getPackageIcon(
	ctx context.Context, who model.Caller, in *PackagePath,
) (*picture, error) {
	if err := h.wait(ctx, who, catalogs.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	i, err := h.Reads.Browse.Icon(ctx, who, in.name(), in.view(), in.Package)
	if err != nil {
		return nil, err
	}
	return pictureOf(i.MediaType, i.ETag, i.Data, iconFresh), nil
}

// upgradeHandlers are the operations on the update graph and the other documents of a catalog.
type upgradeHandlers struct{ Deps }

func (h upgradeHandlers) register(a *API) {
	h.blobs(a)
	register(a, whatIsOffered(access.Get, access.Packages),
		operation(http.MethodGet, "/catalogs/{catalog}/packages/{package}/upgrades", "list-upgrades",
			tagCatalogs,
			"List what the upgrades of a package change: custom resource definitions and rights"), h.listUpgrades)
}

// blobs serves what Chandler keeps of a catalog and has no meaning for.
func (h upgradeHandlers) blobs(a *API) {
	register(a, whatIsOffered(access.List, access.Packages),
		operation(http.MethodGet, "/catalogs/{catalog}/blobs", "list-blobs", tagCatalogs,
			"List the documents of a catalog whose schemas Chandler does not know, byte for byte"), h.listBlobs)
}

type listUpgradesInput struct {
	BrowsePath
	ListQuery
	Package string `path:"package" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	From    string `query:"from" maxLength:"253" doc:"Only from this CSV"`
	To      string `query:"to" maxLength:"253" doc:"Only to this CSV"`
}

func (h upgradeHandlers) listUpgrades(
	ctx context.Context, who model.Caller, in *listUpgradesInput,
) (*listOutput[model.Upgrade], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Browse.Upgrades(ctx, who, in.name(), in.Package,
		model.UpgradeFilter{From: in.From, To: in.To, View: in.view(), Page: page}))
}

type listBlobsInput struct {
	BrowsePath
	ListQuery
	Schema  string `query:"schema" maxLength:"1024" doc:"Only of this schema"`
	Package string `query:"package" maxLength:"1024" doc:"Only of this package"`
	Name    string `query:"name" maxLength:"1024" doc:"Only of this name"`
}

func (h upgradeHandlers) listBlobs(
	ctx context.Context, who model.Caller, in *listBlobsInput,
) (*listOutput[model.Blob], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	f := model.BlobFilter{Schema: in.Schema, Package: in.Package, Name: in.Name, View: in.view(), Page: page}
	return listed(h.Reads.Browse.Blobs(ctx, who, in.name(), f))
}
