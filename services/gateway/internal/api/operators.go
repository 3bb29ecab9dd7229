package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operator"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

const tagOperators = "Operators"

func (a *API) operators() {
	a.uninstall()
	a.leftovers()
	register(a, needRead, operation(http.MethodGet, "/operators", "list-operators", tagOperators, "List installed operators of the fleet"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			Cluster   string `query:"cluster" maxLength:"63"`
			Namespace string `query:"namespace" maxLength:"63"`
			Package   string `query:"package" maxLength:"63"`
			Phase     string `query:"phase" enum:"Pending,InstallReady,Installing,Succeeded,Failed,Unknown,Replacing,Deleting"`
			Serves    string `query:"serves" maxLength:"63" doc:"Only those whose operator group serves this namespace"`
		},
		) (*listOutput[model.Operator], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Operators, in.ListQuery)
			if err == nil && in.Serves != "" {
				_, err = a.waitList(ctx, who, a.d.Views.OperatorGroups, in.ListQuery)
			}
			if err != nil {
				return nil, err
			}
			return listed(a.d.Reads.Operators(ctx, who, model.OperatorFilter{
				Cluster: in.Cluster, Namespace: in.Namespace, Package: in.Package, Phase: in.Phase, Serves: in.Serves, Page: page,
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
			return read(a.d.Reads.Operator(ctx, who, in.Cluster, in.Namespace, in.Name))
		})
}

// UninstallQuery says how an operator is uninstalled.
type UninstallQuery struct {
	CRDs          []string `query:"crds" maxItems:"1000" doc:"Custom resource definitions of the operator's that are to be deleted, and with them all their objects, by name; * is all of its own. Without it they stay."`
	Subscriptions string   `query:"subscriptions" enum:"delete" doc:"Subscriptions that want the operator are deleted, too; without it they are a conflict"`
	Plan          string   `query:"plan" maxLength:"80" doc:"Digest of the removal plan that was shown: exactly that is done, or nothing. It is needed where other operators need an API of this one"`
	DryRun        bool     `query:"dryRun" doc:"Nothing is written: the answer has status 200 and is what the removal would do now, as the cluster says"`
}

func (a *API) uninstall() {
	schemas := a.huma.OpenAPI().Components.Schemas
	answer := func(description string, of reflect.Type) *huma.Response {
		return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(of, true, "")}}}
	}
	op := operation(http.MethodDelete, "/clusters/{cluster}/namespaces/{namespace}/operators/{name}", "uninstall-operator", tagOperators,
		"Uninstall an operator; its definitions and their objects stay unless they are asked for")
	op.DefaultStatus = http.StatusAccepted
	op.Responses = map[string]*huma.Response{
		"202": answer("Accepted; the operator says how far it is, until it is gone", typeOf[model.RemovalRequested]()),
		"200": answer("The removal plan, with dryRun=true", typeOf[model.RemovalPlan]()),
	}
	register(a, needWrite, op, func(ctx context.Context, who model.Caller, in *struct {
		ObjectPath
		UninstallQuery
	},
	) (*tried, error) {
		name := operator.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Name}
		if in.DryRun {
			p, err := a.d.Intents.Operators.RemovalPlan(ctx, who, name, in.CRDs)
			return wroteOr(http.StatusOK, p, "", "", err)
		}
		r, err := a.d.Intents.Operators.Uninstall(ctx, who, name, model.Uninstall{CRDs: in.CRDs, Plan: in.Plan, Subscriptions: in.Subscriptions != ""})
		return wroteOr(http.StatusAccepted, r, r.Position, objectLocation("operators", in.Cluster, in.Namespace, in.Name), err)
	})
}

func (a *API) leftovers() {
	register(a, needRead, operation(http.MethodGet, "/leftovers", "list-leftovers", tagOperators, "List what uninstalled operators left in their clusters"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			Cluster   string `query:"cluster" maxLength:"63"`
			Namespace string `query:"namespace" maxLength:"63"`
			Package   string `query:"package" maxLength:"63"`
		},
		) (*listOutput[model.Leftovers], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Operators, in.ListQuery)
			if err != nil {
				return nil, err
			}
			return listed(a.d.Reads.Leftovers(ctx, who, model.LeftoverFilter{
				Cluster: in.Cluster, Namespace: in.Namespace, Package: in.Package, Page: page,
			}))
		})
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
	list := func(ctx context.Context, who model.Caller, q ListQuery, cluster, namespace, label string) (*listOutput[model.OperatorGroup], error) {
		page, err := a.waitList(ctx, who, a.d.Views.OperatorGroups, q)
		if err != nil {
			return nil, err
		}
		return listed(a.d.Reads.OperatorGroups(ctx, who, model.GroupFilter{Cluster: cluster, Namespace: namespace, Label: label, Page: page}))
	}
	register(a, needRead, operation(http.MethodGet, "/operatorgroups", "list-all-operatorgroups", tagGroups, "List operator groups of the fleet"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			Cluster   string `query:"cluster" maxLength:"63"`
			Namespace string `query:"namespace" maxLength:"63"`
			LabelQuery
		},
		) (*listOutput[model.OperatorGroup], error) {
			return list(ctx, who, in.ListQuery, in.Cluster, in.Namespace, in.Label)
		})
	register(a, needRead, operation(http.MethodGet, pathGroups, "list-operatorgroups", tagGroups, "List operator groups of a namespace"),
		func(ctx context.Context, who model.Caller, in *struct {
			NamespacePath
			ListQuery
			LabelQuery
		},
		) (*listOutput[model.OperatorGroup], error) {
			return list(ctx, who, in.ListQuery, in.Cluster, in.Namespace, in.Label)
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
			return read(a.d.Reads.OperatorGroup(ctx, who, in.Cluster, in.Namespace, in.Name))
		})
}

func (a *API) groupWrites() {
	register(a, needWrite, triable[model.OperatorGroup](a, intended(created(pathGroups, "create-operatorgroup", tagGroups, "Create an operator group"))),
		func(ctx context.Context, who model.Caller, in *struct {
			NamespacePath
			DryRunQuery
			Body model.CreateOperatorGroup
		},
		) (*tried, error) {
			name := operatorgroup.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Body.Name}
			if in.DryRun {
				return a.dryGroup(ctx, who, name, model.PreviewCreate, in.Body.Intent())
			}
			g, err := a.d.Intents.OperatorGroups.Create(ctx, who, name, in.Body.Intent())
			return wroteOr(http.StatusCreated, g, g.Position, objectLocation("operatorgroups", g.Cluster, g.Namespace, g.Name), err)
		})
	register(a, needWrite, triable[model.OperatorGroup](a, intended(operation(http.MethodPut, pathGroups+"/{name}", "change-operatorgroup", tagGroups,
		"Replace the intent of an operator group, labels and annotations among it"))),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			DryRunQuery
			Body model.ChangeOperatorGroup
		},
		) (*tried, error) {
			if in.DryRun {
				return a.dryGroup(ctx, who, in.group(), model.PreviewReplace, in.Body)
			}
			g, err := a.d.Intents.OperatorGroups.Change(ctx, who, in.group(), in.Body)
			return wroteOr(http.StatusOK, g, g.Position, "", err)
		})
	register(a, needWrite, triable[model.Removed](a, operation(http.MethodDelete, pathGroups+"/{name}", "delete-operatorgroup", tagGroups, "Delete an operator group")),
		func(ctx context.Context, who model.Caller, in *struct {
			ObjectPath
			DryRunQuery
		},
		) (*tried, error) {
			if in.DryRun {
				return a.dryGroup(ctx, who, in.group(), model.PreviewDelete, model.ChangeOperatorGroup{})
			}
			r, err := a.d.Intents.OperatorGroups.Delete(ctx, who, in.group())
			return wroteOr(http.StatusOK, r, r.Position, "", err)
		})
}

func (a *API) dryGroup(ctx context.Context, who model.Caller, n operatorgroup.Name, action string, in model.ChangeOperatorGroup) (*tried, error) {
	c := model.PreviewOperatorGroup{Cluster: n.Cluster, Namespace: n.Namespace, Name: n.Name, Action: action, Metadata: in.Metadata}
	if action != model.PreviewDelete {
		c.Spec = &in.OperatorGroupSpec
	}
	return a.dryRun(ctx, who, model.PreviewChange{OperatorGroup: &c}, "", n.Cluster, n.Namespace)
}

func objectLocation(plural, cluster, namespace, name string) string {
	return prefix + "/clusters/" + cluster + "/namespaces/" + namespace + "/" + plural + "/" + name
}
