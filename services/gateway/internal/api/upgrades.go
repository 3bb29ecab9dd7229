package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func (a *API) upgrades() {
	a.blobs()
	register(a, needRead, operation(http.MethodGet, "/catalogs/{catalog}/packages/{package}/upgrades", "list-upgrades", tagCatalogs,
		"List what the upgrades of a package change: custom resource definitions and rights"),
		func(ctx context.Context, who model.Caller, in *struct {
			BrowsePath
			ListQuery
			Package string `path:"package" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
			From    string `query:"from" maxLength:"253" doc:"Only from this CSV"`
			To      string `query:"to" maxLength:"253" doc:"Only to this CSV"`
		},
		) (*listOutput[model.Upgrade], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Catalogs, in.ListQuery)
			if err != nil {
				return nil, err
			}
			return listed(a.d.Browser.Upgrades(ctx, who, in.name(), in.Package, model.UpgradeFilter{From: in.From, To: in.To, View: in.view(), Page: page}))
		})
}

// blobs serves what Chandler keeps of a catalog and has no meaning for.
func (a *API) blobs() {
	register(a, needRead, operation(http.MethodGet, "/catalogs/{catalog}/blobs", "list-blobs", tagCatalogs,
		"List the documents of a catalog whose schemas Chandler does not know, byte for byte"),
		func(ctx context.Context, who model.Caller, in *struct {
			BrowsePath
			ListQuery
			Schema  string `query:"schema" maxLength:"1024" doc:"Only of this schema"`
			Package string `query:"package" maxLength:"1024" doc:"Only of this package"`
			Name    string `query:"name" maxLength:"1024" doc:"Only of this name"`
		},
		) (*listOutput[model.Blob], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Catalogs, in.ListQuery)
			if err != nil {
				return nil, err
			}
			f := model.BlobFilter{Schema: in.Schema, Package: in.Package, Name: in.Name, View: in.view(), Page: page}
			return listed(a.d.Browser.Blobs(ctx, who, in.name(), f))
		})
}
