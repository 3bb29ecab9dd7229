package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

const (
	tagGroups  = "Operator groups"
	pathGroups = "/clusters/{cluster}/namespaces/{namespace}/operatorgroups"
)

func (p ObjectPath) group() operatorgroup.Name {
	return operatorgroup.Name{Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name}
}

// groupHandlers are the operations on operator groups.
type groupHandlers struct{ Deps }

func (h groupHandlers) register(a *API) {
	h.groupWrites(a)
	registerList(a, whatIsSeen(access.List, access.OperatorGroups),
		operation(http.MethodGet, "/operatorgroups", "list-all-operatorgroups", tagGroups,
			"List operator groups of the fleet"), watchedGroups, h.listAllOperatorGroups)
	registerList(a, whereAsked(access.List, access.OperatorGroups),
		operation(http.MethodGet, pathGroups, "list-operatorgroups", tagGroups,
			"List operator groups of a namespace"), watchedGroups, h.listOperatorgroups)
	register(a, whereAsked(access.Get, access.OperatorGroups),
		operation(http.MethodGet, pathGroups+"/{name}", "get-operatorgroup", tagGroups,
			"Get an operator group"), h.getOperatorgroup)
}

func (h groupHandlers) groupWrites(a *API) {
	register(a, whereAsked(access.Create, access.OperatorGroups), triable[model.OperatorGroup](a,
		intended(created(pathGroups, "create-operatorgroup", tagGroups,
			"Create an operator group"))), h.createOperatorgroup)
	register(a, whereAsked(access.Update, access.OperatorGroups), triable[model.OperatorGroup](a,
		intended(operation(http.MethodPut, pathGroups+"/{name}", "change-operatorgroup", tagGroups,
			"Replace the intent of an operator group, labels and annotations among it"))), h.changeOperatorgroup)
	register(a, whereAsked(access.Delete, access.OperatorGroups), triable[model.Removed](a,
		operation(http.MethodDelete, pathGroups+"/{name}", "delete-operatorgroup", tagGroups,
			"Delete an operator group")), h.deleteOperatorgroup)
}

func (h groupHandlers) dryGroup(
	ctx context.Context, who model.Caller, n operatorgroup.Name, action string, in model.ChangeOperatorGroup,
) (*tried, error) {
	c := model.PreviewOperatorGroup{
		Cluster: n.Cluster, Namespace: n.Namespace, Name: n.Name, Action: action, Metadata: in.Metadata,
	}
	if action != model.PreviewDelete {
		c.Spec = &in.OperatorGroupSpec
	}
	return h.dryRun(ctx, who, model.PreviewChange{OperatorGroup: &c}, "", n.Cluster, n.Namespace)
}

var watchedGroups = watchedAs[model.OperatorGroup]{
	kinds: []events.Kind{events.KindOperatorGroup, events.KindCluster},
	name: func(g model.OperatorGroup) (watch.Scope, watch.Name) {
		return inNamespace(g.Cluster, g.Namespace, g.Name)
	},
}

type listAllOperatorGroupsInput struct {
	ListQuery
	WatchQuery
	Cluster   string `query:"cluster" maxLength:"63"`
	Namespace string `query:"namespace" maxLength:"63"`
	LabelQuery
}

func (in *listAllOperatorGroupsInput) part(of watch.Scope) bool {
	return narrow(&in.Cluster, &in.Namespace, of)
}

func (h groupHandlers) listAllOperatorGroups(
	ctx context.Context, who model.Caller, in *listAllOperatorGroupsInput,
) (*listOutput[model.OperatorGroup], error) {
	return h.list(ctx, who, in.ListQuery, in.Cluster, in.Namespace, in.Label)
}

type listOperatorgroupsInput struct {
	NamespacePath
	ListQuery
	WatchQuery
	LabelQuery
}

func (h groupHandlers) listOperatorgroups(
	ctx context.Context, who model.Caller, in *listOperatorgroupsInput,
) (*listOutput[model.OperatorGroup], error) {
	return h.list(ctx, who, in.ListQuery, in.Cluster, in.Namespace, in.Label)
}

type getOperatorgroupInput struct {
	ObjectPath
	ReadQuery
}

func (h groupHandlers) getOperatorgroup(
	ctx context.Context, who model.Caller, in *getOperatorgroupInput,
) (*output[model.OperatorGroup], error) {
	if err := h.wait(ctx, who, operatorgroups.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.OperatorGroups.Get(ctx, who, in.Cluster, in.Namespace, in.Name))
}

type createOperatorgroupInput struct {
	NamespacePath
	DryRunQuery
	Body model.CreateOperatorGroup
}

func (h groupHandlers) createOperatorgroup(
	ctx context.Context, who model.Caller, in *createOperatorgroupInput,
) (*tried, error) {
	name := operatorgroup.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Body.Name}
	if in.DryRun {
		return h.dryGroup(ctx, who, name, model.PreviewCreate, in.Body.Intent())
	}
	g, err := h.Intents.OperatorGroups.Create(ctx, who, name, in.Body.Intent())
	return wroteOr(http.StatusCreated, g, g.Position, objectLocation("operatorgroups", g.Cluster, g.Namespace, g.Name),
		err)
}

type changeOperatorgroupInput struct {
	ObjectPath
	MatchHeaders
	DryRunQuery
	Body model.ChangeOperatorGroup
}

func (h groupHandlers) changeOperatorgroup(
	ctx context.Context, who model.Caller, in *changeOperatorgroupInput,
) (*tried, error) {
	if in.DryRun {
		return h.dryGroup(ctx, who, in.group(), model.PreviewReplace, in.Body)
	}
	g, err := h.Intents.OperatorGroups.Change(ctx, who, in.group(), in.Body)
	return wroteOr(http.StatusOK, g, g.Position, "", err)
}

type deleteOperatorgroupInput struct {
	ObjectPath
	DryRunQuery
}

func (h groupHandlers) deleteOperatorgroup(
	ctx context.Context, who model.Caller, in *deleteOperatorgroupInput,
) (*tried, error) {
	if in.DryRun {
		return h.dryGroup(ctx, who, in.group(), model.PreviewDelete, model.ChangeOperatorGroup{})
	}
	r, err := h.Intents.OperatorGroups.Delete(ctx, who, in.group())
	return wroteOr(http.StatusOK, r, r.Position, "", err)
}

func (h groupHandlers) list(
	ctx context.Context, who model.Caller, q ListQuery, cluster, namespace, label string,
) (*listOutput[model.OperatorGroup], error) {
	page, err := h.waitList(ctx, who, operatorgroups.Name, q)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.OperatorGroups.List(ctx, who,
		model.GroupFilter{Cluster: cluster, Namespace: namespace, Label: label, Page: page}))
}
