package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
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

// GroupReads answers questions about operator groups.
type GroupReads interface {
	OperatorGroups(ctx context.Context, who model.Caller, f model.ScopeFilter) ([]model.OperatorGroup, []string, error)
	OperatorGroup(ctx context.Context, who model.Caller, cluster, namespace, name string) (model.OperatorGroup, error)
}

// GroupWrites carries out intents about operator groups.
type GroupWrites interface {
	CreateOperatorGroup(ctx context.Context, who model.Caller, name operatorgroup.Name, in model.OperatorGroupSpec) (model.OperatorGroup, error)
	ChangeOperatorGroup(ctx context.Context, who model.Caller, name operatorgroup.Name, in model.OperatorGroupSpec) (model.OperatorGroup, error)
	DeleteOperatorGroup(ctx context.Context, who model.Caller, name operatorgroup.Name) (model.Removed, error)
}

const (
	tagGroups  = "Operator groups"
	pathGroups = "/clusters/{cluster}/namespaces/{namespace}/operatorgroups"
)

func (p ObjectPath) group() operatorgroup.Name {
	return operatorgroup.Name{Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name}
}

func (a *API) operatorGroups() {
	a.groupWrites()
	list := func(ctx context.Context, who model.Caller, q ListQuery, cluster, namespace string) (*listOutput[model.OperatorGroup], error) {
		page, err := a.waitList(ctx, who, a.d.Views.OperatorGroups, q)
		if err != nil {
			return nil, err
		}
		return listed(a.d.GroupReads.OperatorGroups(ctx, who, model.ScopeFilter{Cluster: cluster, Namespace: namespace, Page: page}))
	}
	register(a, needRead, operation(http.MethodGet, "/operatorgroups", "list-all-operatorgroups", tagGroups, "List operator groups of the fleet"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			Cluster   string `query:"cluster" maxLength:"63"`
			Namespace string `query:"namespace" maxLength:"63"`
		},
		) (*listOutput[model.OperatorGroup], error) {
			return list(ctx, who, in.ListQuery, in.Cluster, in.Namespace)
		})
	register(a, needRead, operation(http.MethodGet, pathGroups, "list-operatorgroups", tagGroups, "List operator groups of a namespace"),
		func(ctx context.Context, who model.Caller, in *struct {
			NamespacePath
			ListQuery
		},
		) (*listOutput[model.OperatorGroup], error) {
			return list(ctx, who, in.ListQuery, in.Cluster, in.Namespace)
		})
	register(a, needRead, operation(http.MethodGet, pathGroups+"/{name}", "get-operatorgroup", tagGroups, "Get an operator group"),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			ReadQuery
		},
		) (*output[model.OperatorGroup], error) {
			if err := a.wait(ctx, who, a.d.Views.OperatorGroups, in.ReadQuery); err != nil {
				return nil, err
			}
			return read(a.d.GroupReads.OperatorGroup(ctx, who, in.Cluster, in.Namespace, in.Name))
		})
}

func (a *API) groupWrites() {
	register(a, needWrite, triable[model.OperatorGroup](a, created(pathGroups, "create-operatorgroup", tagGroups, "Create an operator group")),
		func(ctx context.Context, who model.Caller, in *struct {
			NamespacePath
			DryRunQuery
			Body model.CreateOperatorGroup
		},
		) (*tried, error) {
			name := operatorgroup.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Body.Name}
			if in.DryRun {
				return a.dryGroup(ctx, who, name, model.PreviewCreate, &in.Body.OperatorGroupSpec)
			}
			g, err := a.d.GroupWrites.CreateOperatorGroup(ctx, who, name, in.Body.OperatorGroupSpec)
			return wroteOr(http.StatusCreated, g, g.Position, objectLocation("operatorgroups", g.Cluster, g.Namespace, g.Name), err)
		})
	register(a, needWrite, triable[model.OperatorGroup](a, operation(http.MethodPut, pathGroups+"/{name}", "change-operatorgroup", tagGroups, "Replace the intent of an operator group")),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			DryRunQuery
			Body model.OperatorGroupSpec
		},
		) (*tried, error) {
			if in.DryRun {
				return a.dryGroup(ctx, who, in.group(), model.PreviewReplace, &in.Body)
			}
			g, err := a.d.GroupWrites.ChangeOperatorGroup(ctx, who, in.group(), in.Body)
			return wroteOr(http.StatusOK, g, g.Position, "", err)
		})
	register(a, needWrite, triable[model.Removed](a, operation(http.MethodDelete, pathGroups+"/{name}", "delete-operatorgroup", tagGroups, "Delete an operator group")),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			DryRunQuery
		},
		) (*tried, error) {
			if in.DryRun {
				return a.dryGroup(ctx, who, in.group(), model.PreviewDelete, nil)
			}
			r, err := a.d.GroupWrites.DeleteOperatorGroup(ctx, who, in.group())
			return wroteOr(http.StatusOK, r, r.Position, "", err)
		})
}

func (a *API) dryGroup(ctx context.Context, who model.Caller, n operatorgroup.Name, action string, spec *model.OperatorGroupSpec) (*tried, error) {
	c := model.PreviewOperatorGroup{Cluster: n.Cluster, Namespace: n.Namespace, Name: n.Name, Action: action, Spec: spec}
	return a.dryRun(ctx, who, model.PreviewChange{OperatorGroup: &c}, "", n.Cluster, n.Namespace)
}

func objectLocation(plural, cluster, namespace, name string) string {
	return prefix + "/clusters/" + cluster + "/namespaces/" + namespace + "/" + plural + "/" + name
}
