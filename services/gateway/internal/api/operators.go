package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operator"
)

const (
	tagOperators = "Operators"
	pathOperator = "/clusters/{cluster}/namespaces/{namespace}/operators/{name}"
)

// operatorHandlers are the operations on installed operators.
type operatorHandlers struct{ Deps }

func (h operatorHandlers) register(a *API) {
	h.uninstall(a)
	h.overrides(a)
	h.leftovers(a)
	registerList(a, whatIsSeen(access.List, access.Operators),
		operation(http.MethodGet, "/operators", "list-operators", tagOperators,
			"List installed operators of the fleet"), watchedOperators, h.listOperators)
	register(a, whereAsked(access.Get, access.Operators),
		operation(http.MethodGet, pathOperator, "get-operator", tagOperators,
			"Get an installed operator with its history"), h.getOperator)
	h.logs(a)
}

// UninstallQuery says how an operator is uninstalled.
type UninstallQuery struct {
	CRDs          []string `query:"crds" maxItems:"1000" doc:"Custom resource definitions of the operator's that are to be deleted, and with them all their objects, by name; * is all of its own. Without it they stay."`
	Subscriptions string   `query:"subscriptions" enum:"delete" doc:"Subscriptions that want the operator are deleted, too; without it they are a conflict"`
	Plan          string   `query:"plan" maxLength:"80" doc:"Digest of the removal plan that was shown: exactly that is done, or nothing. It is needed where other operators need an API of this one"`
	DryRun        bool     `query:"dryRun" doc:"Nothing is written: the answer has status 200 and is what the removal would do now, as the cluster says"`
}

func (h operatorHandlers) uninstall(a *API) {
	schemas := a.huma.OpenAPI().Components.Schemas
	answer := func(description string, of reflect.Type) *huma.Response {
		return &huma.Response{
			Description: description,
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(of, true, "")}},
		}
	}
	op := operation(http.MethodDelete, pathOperator, "uninstall-operator", tagOperators,
		"Uninstall an operator; its definitions and their objects stay unless they are asked for")
	op.DefaultStatus = http.StatusAccepted
	op.Responses = map[string]*huma.Response{
		"202": answer("Accepted; the operator says how far it is, until it is gone", typeOf[model.RemovalRequested]()),
		"200": answer("The removal plan, with dryRun=true", typeOf[model.RemovalPlan]()),
	}
	register(a, whereAsked(access.Delete, access.Operators), op, h.uninstallOperator)
}

func (h operatorHandlers) leftovers(a *API) {
	registerList(a, whatIsSeen(access.List, access.Operators),
		operation(http.MethodGet, "/leftovers", "list-leftovers", tagOperators,
			"List what uninstalled operators left in their clusters"), watchedLeftovers, h.listLeftovers)
}

func objectLocation(plural, cluster, namespace, name string) string {
	return prefix + "/clusters/" + cluster + "/namespaces/" + namespace + "/" + plural + "/" + name
}

// watchedOperators: which namespaces they serve is decided by their groups.
var watchedOperators = watchedAs[model.Operator]{
	kinds: []events.Kind{events.KindCSV, events.KindOperatorGroup, events.KindCluster},
	name:  func(o model.Operator) (watch.Scope, watch.Name) { return inNamespace(o.Cluster, o.Namespace, o.Name) },
}

type listOperatorsInput struct {
	ListQuery
	WatchQuery
	Cluster   string `query:"cluster" maxLength:"63"`
	Namespace string `query:"namespace" maxLength:"63"`
	Package   string `query:"package" maxLength:"63"`
	Phase     string `query:"phase" enum:"Pending,InstallReady,Installing,Succeeded,Failed,Unknown,Replacing,Deleting"`
	State     string `query:"state" enum:"Pending,InstallReady,Installing,Succeeded,Failed,Unknown,Replacing,Deleting,Drifted,Flapping,Uninstalling" doc:"The phase, or what is so beside it: objects are not as they were written, the phase changes too often, it is being uninstalled"`
	Details   bool   `query:"details" doc:"With what the cluster says of each operator beside its phase, as in answers about one"`
	Sort      string `query:"sort" enum:"name,-name,package,-package,phase,-phase,created,-created,changed,-changed" doc:"What to sort by, with - the other way round; by cluster, namespace and name without it"`
	VersionQuery
	ChoiceQuery
	Serves string `query:"serves" maxLength:"63" doc:"Only those whose operator group serves this namespace"`
}

func (in *listOperatorsInput) part(of watch.Scope) bool {
	return narrow(&in.Cluster, &in.Namespace, of)
}

func (h operatorHandlers) listOperators(
	ctx context.Context, who model.Caller, in *listOperatorsInput,
) (*listOutput[model.Operator], error) {
	page, err := h.waitList(ctx, who, operators.Name, in.ListQuery)
	if err == nil && in.Serves != "" {
		_, err = h.waitList(ctx, who, operatorgroups.Name, in.ListQuery)
	}
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Operators.List(ctx, who, model.OperatorFilter{
		Cluster: in.Cluster, Namespace: in.Namespace, Package: in.Package, Phase: in.Phase, State: in.State,
		Details: in.Details, Serves: in.Serves, Version: in.Version, Choice: in.choice(in.Sort), Page: page,
	}))
}

type getOperatorInput struct {
	ObjectPath
	ReadQuery
}

func (h operatorHandlers) getOperator(
	ctx context.Context, who model.Caller, in *getOperatorInput,
) (*output[model.Operator], error) {
	if err := h.wait(ctx, who, operators.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Operators.Get(ctx, who, in.Cluster, in.Namespace, in.Name))
}

func (h operatorHandlers) overrides(a *API) {
	const path = pathOperator + "/overrides"
	register(a, whereAsked(access.Get, access.Operators),
		operation(http.MethodGet, path, "get-operator-overrides", tagOperators,
			"Get what counts of an operator in the place of its own conditions"), h.getOperatorOverrides)
	set := operation(http.MethodPut, path, "set-operator-overrides", tagOperators,
		"Replace what counts of an operator in the place of its own conditions, such as whether it lets itself be upgraded")
	set.Description = "The executor writes them as spec.overrides of the OperatorCondition in the cluster, unless somebody " +
		"else has set some there. They end with this ClusterServiceVersion: the next version begins without. ETag is that of " +
		"the operator."
	register(a, whereAsked(access.Override, access.Operators), set, h.setOperatorOverrides)
	register(a, whereAsked(access.Override, access.Operators),
		operation(http.MethodDelete, path, "remove-operator-overrides", tagOperators,
			"Let the operator's own conditions count again"), h.removeOperatorOverrides)
}

func (p ObjectPath) operator() operator.Name {
	return operator.Name{Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name}
}

func (h operatorHandlers) getOperatorOverrides(
	ctx context.Context, who model.Caller, in *getOperatorInput,
) (*output[model.OperatorOverrides], error) {
	if err := h.wait(ctx, who, operators.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Operators.Overrides(ctx, who, in.Cluster, in.Namespace, in.Name))
}

type setOperatorOverridesInput struct {
	ObjectPath
	MatchHeaders
	TryQuery
	Body model.SetOverrides
}

func (h operatorHandlers) setOperatorOverrides(
	ctx context.Context, who model.Caller, in *setOperatorOverridesInput,
) (*written[model.OperatorOverrides], error) {
	o, err := h.Intents.Operators.Override(ctx, who, in.operator(), in.Body)
	return wrote(o, o.Position, "", err)
}

type removeOperatorOverridesInput struct {
	ObjectPath
	TryQuery
}

func (h operatorHandlers) removeOperatorOverrides(
	ctx context.Context, who model.Caller, in *removeOperatorOverridesInput,
) (*written[model.Removed], error) {
	r, err := h.Intents.Operators.RemoveOverrides(ctx, who, in.operator())
	return wrote(r, r.Position, "", err)
}

type uninstallOperatorInput struct {
	ObjectPath
	UninstallQuery
}

func (h operatorHandlers) uninstallOperator(
	ctx context.Context, who model.Caller, in *uninstallOperatorInput,
) (*tried, error) {
	name := in.operator()
	if in.DryRun {
		p, err := h.Intents.Operators.RemovalPlan(ctx, who, name, in.CRDs)
		return wroteOr(http.StatusOK, p, "", "", err)
	}
	r, err := h.Intents.Operators.Uninstall(ctx, who, name,
		model.Uninstall{CRDs: in.CRDs, Plan: in.Plan, Subscriptions: in.Subscriptions != ""})
	return wroteOr(http.StatusAccepted, r, r.Position, objectLocation("operators", in.Cluster, in.Namespace, in.Name),
		err)
}

var watchedLeftovers = watchedAs[model.Leftovers]{
	kinds: []events.Kind{events.KindCSV},
	name:  func(l model.Leftovers) (watch.Scope, watch.Name) { return inNamespace(l.Cluster, l.Namespace, l.Name) },
}

func (h operatorHandlers) logs(a *API) {
	op := classed(operation(http.MethodGet, pathOperator+"/logs", "get-operator-logs", tagOperators,
		"Get lines that pods of an operator have written, as its cluster has them; as text with Accept: text/plain"),
		limit.List)
	op.Description = "The lines come from the Deployments that Chandler installed of the operator, and are kept nowhere. An " +
		"answer has at most 512 KiB of them; after asks for what follows it, so that asking again and again follows a log. " +
		"What a container wrote last before it was restarted is among that. Logs may hold secrets: who may read them is a " +
		"right of its own, get on logs."
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		typeJSON: {
			Schema: a.huma.OpenAPI().Components.Schemas.Schema(typeOf[model.OperatorLogs](), true, "OperatorLogs"),
		},
		typeText: {Schema: &huma.Schema{Type: huma.TypeString, Description: "Lines as the containers wrote them"}},
	}}}
	register(a, whereAsked(access.Get, access.Logs), op, h.getOperatorLogs)
}

type getOperatorLogsInput struct {
	ObjectPath
	Deployment    string `query:"deployment" maxLength:"253" doc:"Only pods of this Deployment of the operator"`
	Pod           string `query:"pod" maxLength:"253" doc:"Only this pod"`
	Container     string `query:"container" maxLength:"63" doc:"This container of each pod; without it the one that kubectl would take"`
	AllContainers bool   `query:"allContainers" doc:"All containers of each pod"`
	Previous      bool   `query:"previous" doc:"What the container before the last restart wrote"`
	Tail          int64  `query:"tail" minimum:"0" maximum:"1000000" doc:"Only so many last lines of each container; 0 for all"`
	FromNow       bool   `query:"fromNow" doc:"No line that is there already: the answer says where what comes begins"`
	SinceSeconds  int64  `query:"sinceSeconds" minimum:"0" maximum:"31536000" doc:"Only lines of the last so many seconds; 0 for all"`
	After         string `query:"after" maxLength:"2048" doc:"Only what follows an earlier answer to the same question, by its after; tail, fromNow and sinceSeconds do not count then"`
	Timestamps    bool   `query:"timestamps" doc:"In text: the time before each line"`
	Prefix        bool   `query:"prefix" doc:"In text: pod and container before each line"`

	text bool
}

// Resolve chooses text where the client asks for it and not for JSON.
func (in *getOperatorLogsInput) Resolve(ctx huma.Context) []error {
	in.text = wantsText(ctx)
	return nil
}

// logsOutput is JSON or text. Text has no place for where it ended but a header.
type logsOutput struct {
	ContentType string `header:"Content-Type"`
	Vary        string `header:"Vary"`
	After       string `header:"Chandler-Logs-After"`
	Body        []byte
}

func (h operatorHandlers) getOperatorLogs(
	ctx context.Context, who model.Caller, in *getOperatorLogsInput,
) (*logsOutput, error) {
	if in.AllContainers && in.Container != "" {
		return nil, errs.New(errs.Invalid, "all containers and container %q are asked for: give one of them", in.Container).
			At("query.container", "one-choice")
	}
	// What is not installed is refused before the cluster is asked.
	if _, err := h.Reads.Operators.Get(ctx, who, in.Cluster, in.Namespace, in.Name); err != nil {
		return nil, err
	}
	q := protocol.LogQuestion{
		Namespace: in.Namespace, CSV: in.Name, Deployment: in.Deployment, Pod: in.Pod, Container: in.Container,
		AllContainers: in.AllContainers, Previous: in.Previous, SinceSeconds: in.SinceSeconds, After: in.After,
	}
	if in.FromNow {
		in.Tail = 0
	}
	if in.Tail > 0 || in.FromNow {
		q.Tail = &in.Tail
	}
	logs, err := h.Installer.Logs(ctx, who, in.Cluster, q)
	if err != nil {
		return nil, err
	}
	out := &logsOutput{ContentType: typeJSON, Vary: "Accept", After: logs.After}
	if in.text {
		out.ContentType, out.Body = typeText+"; charset=utf-8", logs.Text(in.Timestamps, in.Prefix)
		return out, nil
	}
	out.Body, err = json.Marshal(logs)
	return out, errs.Wrap(errs.Internal, err, "write the lines")
}

type listLeftoversInput struct {
	ListQuery
	WatchQuery
	Cluster   string `query:"cluster" maxLength:"63"`
	Namespace string `query:"namespace" maxLength:"63"`
	Package   string `query:"package" maxLength:"63"`
}

func (in *listLeftoversInput) part(of watch.Scope) bool {
	return narrow(&in.Cluster, &in.Namespace, of)
}

func (h operatorHandlers) listLeftovers(
	ctx context.Context, who model.Caller, in *listLeftoversInput,
) (*listOutput[model.Leftovers], error) {
	page, err := h.waitList(ctx, who, operators.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Operators.Leftovers(ctx, who, model.LeftoverFilter{
		Cluster: in.Cluster, Namespace: in.Namespace, Package: in.Package, Page: page,
	}))
}

// summaryHandlers are the operations on the fleet in numbers.
type summaryHandlers struct{ Deps }

func (h summaryHandlers) register(a *API) {
	register(a, whatIsSeen(access.List, access.Subscriptions),
		operation(http.MethodGet, "/summary", "summarize", "Fleet",
			"Count operators and subscriptions by phase and by what needs somebody, for each cluster, namespace, "+
				"package or catalog"), h.summarize)
}

type summarizeInput struct {
	ListQuery
	By        string `query:"by" enum:"cluster,namespace,package,catalog" default:"cluster" doc:"What each item is"`
	Cluster   string `query:"cluster" maxLength:"63"`
	Namespace string `query:"namespace" maxLength:"63"`
	Package   string `query:"package" maxLength:"63"`
	Catalog   string `query:"catalog" maxLength:"380" doc:"A catalog of the hub by its name, one of a cluster as cluster/namespace/name"`
	ClusterSelectorQuery
}

// VersionQuery chooses by the version of what is installed.
type VersionQuery struct {
	Version string `query:"version" maxLength:"256" doc:"Only where the version of the installed operator lies in this range, such as >=1.2.0 <2.0.0"`
}

// ChoiceQuery is how lists of objects in clusters are chosen.
type ChoiceQuery struct {
	FieldSelector string `query:"fieldSelector" maxLength:"4096" doc:"Field selector of Kubernetes, such as status.phase=Failed,metadata.namespace!=ports; an unknown field is refused with those that are known"`
	ClusterSelectorQuery
}

func (q ChoiceQuery) choice(sort string) model.Choice {
	return model.Choice{Sort: sort, FieldSelector: q.FieldSelector, ClusterSelector: q.ClusterSelector}
}

// ClusterSelectorQuery chooses by the labels of clusters.
type ClusterSelectorQuery struct {
	ClusterSelector string `query:"clusterSelector" maxLength:"4096" doc:"Only what is in clusters that the caller may list and whose labels this selector of Kubernetes chooses"`
}

func (h summaryHandlers) summarize(
	ctx context.Context, who model.Caller, in *summarizeInput,
) (*output[model.FleetSummary], error) {
	page, err := h.waitList(ctx, who, subscriptions.Name, in.ListQuery)
	if err == nil {
		_, err = h.waitList(ctx, who, operators.Name, in.ListQuery)
	}
	if err != nil {
		return nil, err
	}
	total, items, next, err := h.Reads.Summaries.List(ctx, who, model.SummaryFilter{
		By: in.By, Cluster: in.Cluster, Namespace: in.Namespace, Package: in.Package, Catalog: in.Catalog,
		ClusterSelector: in.ClusterSelector, Page: page,
	})
	out, err := listed(items, next, err)
	if err != nil {
		return nil, err
	}
	use, err := h.Intents.Tokens.BreakGlass.Told(ctx, who)
	return read(model.FleetSummary{
		Total: total, Items: out.Body.Items, Next: out.Body.Next, BreakGlass: use,
	}, err)
}
