package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// UpgradeReads answers what upgrades change.
type UpgradeReads interface {
	Upgrades(ctx context.Context, who model.Caller, name catalog.Name, pkg string, f model.UpgradeFilter) ([]model.Upgrade, []string, error)
}

func (a *API) upgrades() {
	register(a, needRead, operation(http.MethodGet, "/catalogs/{catalog}/packages/{package}/upgrades", "list-upgrades", tagCatalogs,
		"List what the upgrades of a package change: custom resource definitions and rights"),
		func(ctx context.Context, who model.Caller, in *struct {
			CatalogPath
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
			return listed(a.d.Upgrades.Upgrades(ctx, who, in.name(), in.Package, model.UpgradeFilter{From: in.From, To: in.To, Page: page}))
		})
}
