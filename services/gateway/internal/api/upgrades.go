package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// upgradeHandlers are the operations on the update graph and the other documents of a catalog.
type upgradeHandlers struct{ Deps }

func (h upgradeHandlers) register(a *API) {
	h.blobs(a)
	register(a, needRead, operation(http.MethodGet, "/catalogs/{catalog}/packages/{package}/upgrades", "list-upgrades",
		tagCatalogs,
		"List what the upgrades of a package change: custom resource definitions and rights"), h.listUpgrades)
}

// blobs serves what Chandler keeps of a catalog and has no meaning for.
func (h upgradeHandlers) blobs(a *API) {
	register(a, needRead, operation(http.MethodGet, "/catalogs/{catalog}/blobs", "list-blobs", tagCatalogs,
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
