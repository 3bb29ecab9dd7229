package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// OperatorReads answers questions about installed operators.
type OperatorReads interface {
	Operators(ctx context.Context, who model.Caller, f model.OperatorFilter) ([]model.Operator, []string, error)
	Operator(ctx context.Context, who model.Caller, cluster, namespace, name string) (model.Operator, error)
}

const tagOperators = "Operators"

func (a *API) operators() {
	register(a, needRead, operation(http.MethodGet, "/operators", "list-operators", tagOperators, "List installed operators of the fleet"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			Cluster   string `query:"cluster" maxLength:"63"`
			Namespace string `query:"namespace" maxLength:"63"`
			Package   string `query:"package" maxLength:"63"`
			Phase     string `query:"phase" enum:"Pending,InstallReady,Installing,Succeeded,Failed,Unknown,Replacing,Deleting"`
		},
		) (*listOutput[model.Operator], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Operators, in.ListQuery)
			if err != nil {
				return nil, err
			}
			return listed(a.d.OperatorReads.Operators(ctx, who, model.OperatorFilter{
				Cluster: in.Cluster, Namespace: in.Namespace, Package: in.Package, Phase: in.Phase, Page: page,
			}))
		})
	register(a, needRead, operation(http.MethodGet, "/clusters/{cluster}/namespaces/{namespace}/operators/{name}", "get-operator", tagOperators,
		"Get an installed operator with its history"),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			ReadQuery
		},
		) (*output[model.Operator], error) {
			if err := a.wait(ctx, who, a.d.Views.Operators, in.ReadQuery); err != nil {
				return nil, err
			}
			return read(a.d.OperatorReads.Operator(ctx, who, in.Cluster, in.Namespace, in.Name))
		})
}
