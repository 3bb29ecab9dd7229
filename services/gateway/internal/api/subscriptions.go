package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/badge"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/namelookup"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

const (
	tagSubscriptions  = "Subscriptions"
	pathSubscriptions = "/clusters/{cluster}/namespaces/{namespace}/subscriptions"
)

func (p ObjectPath) subscription() subscription.Name {
	return subscription.Name{Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name}
}

// ValidateQuery says how a subscription is compared with its catalog.
type ValidateQuery struct {
	Validate string `query:"validate" enum:"strict,lenient" doc:"Without it a ready catalog must offer package and channel, and an unknown or unready catalog is accepted and shown as a condition. strict refuses that, too; lenient refuses nothing about the catalog."`
}

// LabelQuery chooses by labels.
type LabelQuery struct {
	Label string `query:"label" maxLength:"4096" doc:"Label selector of Kubernetes, such as tier=1,site in (north,south),!retired"`
}

// SubscriptionQuery chooses subscriptions.
type SubscriptionQuery struct {
	Package string `query:"package" maxLength:"63"`
	Catalog string `query:"catalog" maxLength:"253"`
	State   string `query:"state" enum:"UpgradePending,AtLatestKnown,UpgradeFailed,ResolutionFailed,BundleUnpacking,BundleUnpackFailed,CatalogSourcesUnhealthy,ClusterCordoned,InstallPlanMissing,InstallPlanPending,InstallPlanFailed,RequiresApproval,UpgradeAvailable,Failing,Deprecated" doc:"The state, or of those that have none the first condition that holds; or, whatever the state: its plan requires approval, a newer version was found for it, it fails (it does not resolve, its plan failed, or its operator is in phase Failed), or what it follows or has installed is deprecated"`
	LabelQuery
	Approval string `query:"approval" enum:"Automatic,Manual"`
	Sort     string `query:"sort" enum:"name,-name,package,-package,created,-created,changed,-changed" doc:"What to sort by, with - the other way round; by cluster, namespace and name without it"`
	VersionQuery
	ChoiceQuery
	Phase string `query:"phase" enum:"Pending,InstallReady,Installing,Succeeded,Failed,Unknown,Replacing,Deleting" doc:"Of the installed operator"`
}

// subscriptionHandlers are the operations on subscriptions.
type subscriptionHandlers struct{ Deps }

func (h subscriptionHandlers) register(a *API) {
	h.subscriptionWrites(a)
	registerList(a, whatIsSeen(access.List, access.Subscriptions),
		operation(http.MethodGet, "/subscriptions", "list-all-subscriptions", tagSubscriptions,
			"List subscriptions of the fleet"), watchedSubscriptions, h.listAllSubscriptions)
	registerList(a, whereAsked(access.List, access.Subscriptions),
		operation(http.MethodGet, pathSubscriptions, "list-subscriptions", tagSubscriptions,
			"List subscriptions of a namespace"), watchedSubscriptions, h.listSubscriptions)
	register(a, whereAsked(access.Get, access.Subscriptions),
		operation(http.MethodGet, pathSubscriptions+"/{name}", "get-subscription", tagSubscriptions,
			"Get a subscription, with its configuration and why it does not resolve"), h.getSubscription)
	register(a, whereAsked(access.Get, access.Subscriptions), pictured(
		operation(http.MethodGet, pathSubscriptions+"/{name}/badge", "get-subscription-badge", tagSubscriptions,
			"Get the state of a subscription as a picture: a label and the state, and no name of anything"),
		"The badge, with its text as title and aria-label", badge.MediaType), h.getSubscriptionBadge)
}

func (h subscriptionHandlers) subscriptionWrites(a *API) {
	register(a, whereAsked(access.Create, access.Subscriptions), lasting(a, triable[model.Subscription](a,
		intended(created(pathSubscriptions, "create-subscription", tagSubscriptions,
			"Subscribe to a channel of a package")))), h.createSubscription)
	register(a, whereAsked(access.Update, access.Subscriptions), triable[model.Subscription](a,
		intended(operation(http.MethodPut, pathSubscriptions+"/{name}", "change-subscription", tagSubscriptions,
			"Replace the intent of a subscription, labels and annotations among it"))), h.changeSubscription)
	register(a, whereAsked(access.Update, access.Subscriptions),
		intended(operation(http.MethodPatch, pathSubscriptions+"/{name}", "patch-subscription", tagSubscriptions,
			"Change parts of the intent of a subscription, as a JSON merge patch (RFC 7396) of what PUT takes")),
		h.patchSubscription)
	register(a, whereAsked(access.Rollback, access.Subscriptions),
		lasting(a, operation(http.MethodPost, pathSubscriptions+"/{name}/rollback", "rollback-subscription",
			tagSubscriptions,
			"Go back to a version that was installed before; the plan for it waits for approval")), h.rollbackSubscription)
	register(a, whereAsked(access.Delete, access.Subscriptions), triable[model.Removed](a,
		operation(http.MethodDelete, pathSubscriptions+"/{name}", "delete-subscription", tagSubscriptions,
			"End a subscription; the installed operator stays")), h.deleteSubscription)
}

func (h subscriptionHandlers) drySubscription(
	ctx context.Context, who model.Caller, n subscription.Name, action string, in model.ChangeSubscription,
	validate string,
) (*tried, error) {
	c := model.PreviewSubscription{
		Cluster: n.Cluster, Namespace: n.Namespace, Name: n.Name, Action: action, Metadata: in.Metadata,
	}
	if action != model.PreviewDelete {
		c.Spec = &in.SubscriptionSpec
	}
	return h.dryRun(ctx, who, model.PreviewChange{Subscription: &c}, model.Validate(validate), n.Cluster, n.Namespace)
}

// watchedSubscriptions: they show their plans and operators, their catalogs, and the upgrade strategy of their group.
var watchedSubscriptions = watchedAs[model.Subscription]{
	kinds: []events.Kind{
		events.KindSubscription, events.KindInstallPlan, events.KindCSV, events.KindCatalog, events.KindOperatorGroup,
		events.KindCluster,
	},
	name: func(s model.Subscription) (watch.Scope, watch.Name) {
		return inNamespace(s.Cluster, s.Namespace, s.Name)
	},
}

type listAllSubscriptionsInput struct {
	ListQuery
	WatchQuery
	SubscriptionQuery
	Cluster   string `query:"cluster" maxLength:"63"`
	Namespace string `query:"namespace" maxLength:"63"`
}

func (in *listAllSubscriptionsInput) part(of watch.Scope) bool {
	return narrow(&in.Cluster, &in.Namespace, of)
}

func (h subscriptionHandlers) listAllSubscriptions(
	ctx context.Context, who model.Caller, in *listAllSubscriptionsInput,
) (*listOutput[model.Subscription], error) {
	return h.list(ctx, who, in.ListQuery, in.SubscriptionQuery, in.Cluster, in.Namespace)
}

type listSubscriptionsInput struct {
	NamespacePath
	ListQuery
	WatchQuery
	SubscriptionQuery
}

func (h subscriptionHandlers) listSubscriptions(
	ctx context.Context, who model.Caller, in *listSubscriptionsInput,
) (*listOutput[model.Subscription], error) {
	return h.list(ctx, who, in.ListQuery, in.SubscriptionQuery, in.Cluster, in.Namespace)
}

type getSubscriptionInput struct {
	ObjectPath
	ReadQuery
}

func (h subscriptionHandlers) getSubscription(
	ctx context.Context, who model.Caller, in *getSubscriptionInput,
) (*output[model.Subscription], error) {
	if err := h.wait(ctx, who, subscriptions.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Subscriptions.Get(ctx, who, in.Cluster, in.Namespace, in.Name))
}

type getSubscriptionBadgeInput struct {
	ObjectPath
	ReadQuery
	Label string `query:"label" maxLength:"32" default:"operator" doc:"What stands before the state, in characters that can be seen"`
}

func (h subscriptionHandlers) getSubscriptionBadge(
	ctx context.Context, who model.Caller, in *getSubscriptionBadgeInput,
) (*picture, error) {
	if err := badge.CheckLabel("query.label", in.Label); err != nil {
		return nil, err
	}
	if err := h.wait(ctx, who, subscriptions.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	s, err := h.Reads.Subscriptions.Get(ctx, who, in.Cluster, in.Namespace, in.Name)
	if err != nil {
		return nil, err
	}
	drawn, err := badge.Draw(in.Label, s.ShownState())
	if err != nil {
		return nil, err
	}
	return pictureOf(badge.MediaType, "", drawn, badgeFresh), nil
}

type createSubscriptionInput struct {
	NamespacePath
	ValidateQuery
	DryRunQuery
	Body model.CreateSubscription
}

func (h subscriptionHandlers) createSubscription(
	ctx context.Context, who model.Caller, in *createSubscriptionInput,
) (*tried, error) {
	name := subscription.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Body.Name}
	if in.DryRun {
		return h.drySubscription(ctx, who, name, model.PreviewCreate, in.Body.Intent(), in.Validate)
	}
	s, err := h.Intents.Subscriptions.Create(ctx, who, name, in.Body.Intent(), model.Validate(in.Validate))
	return wroteOr(http.StatusCreated, s, s.Position, objectLocation("subscriptions", s.Cluster, s.Namespace, s.Name),
		err)
}

type changeSubscriptionInput struct {
	ObjectPath
	MatchHeaders
	ValidateQuery
	DryRunQuery
	Body model.ChangeSubscription
}

func (h subscriptionHandlers) changeSubscription(
	ctx context.Context, who model.Caller, in *changeSubscriptionInput,
) (*tried, error) {
	if in.DryRun {
		return h.drySubscription(ctx, who, in.subscription(), model.PreviewReplace, in.Body, in.Validate)
	}
	s, err := h.Intents.Subscriptions.Change(ctx, who, in.subscription(), in.Body, model.Validate(in.Validate))
	return wroteOr(http.StatusOK, s, s.Position, "", err)
}

type patchSubscriptionInput struct {
	ObjectPath
	MayMatchHeaders
	ValidateQuery
	Body map[string]any `contentType:"application/merge-patch+json"`
}

func (h subscriptionHandlers) patchSubscription(
	ctx context.Context, who model.Caller, in *patchSubscriptionInput,
) (*written[model.Subscription], error) {
	s, err := h.Intents.Subscriptions.Patch(ctx, who, in.subscription(), model.Validate(in.Validate),
		func(now model.ChangeSubscription) (model.ChangeSubscription, error) {
			out, err := merge(now, in.Body)
			if err != nil {
				return out, err
			}
			// Who works with some catalogs only may not lead it to another one.
			at := in.target()
			at.Catalog = access.CatalogName(out.CatalogNamespace, out.Catalog)
			if !who.May(access.Update, access.Subscriptions, at) {
				return out, access.Denied(access.Update, access.Subscriptions, at)
			}
			return out, nil
		})
	return wrote(s, s.Position, "", err)
}

type rollbackSubscriptionInput struct {
	ObjectPath
	TryQuery
	Body model.RollBack
}

func (h subscriptionHandlers) rollbackSubscription(
	ctx context.Context, who model.Caller, in *rollbackSubscriptionInput,
) (*written[model.Subscription], error) {
	s, err := h.Intents.Subscriptions.Rollback(ctx, who, in.subscription(), in.Body)
	return wrote(s, s.Position, "", err)
}

type deleteSubscriptionInput struct {
	ObjectPath
	DryRunQuery
}

func (h subscriptionHandlers) deleteSubscription(
	ctx context.Context, who model.Caller, in *deleteSubscriptionInput,
) (*tried, error) {
	if in.DryRun {
		return h.drySubscription(ctx, who, in.subscription(), model.PreviewDelete, model.ChangeSubscription{}, "")
	}
	r, err := h.Intents.Subscriptions.Delete(ctx, who, in.subscription())
	return wroteOr(http.StatusOK, r, r.Position, "", err)
}

func (h subscriptionHandlers) list(
	ctx context.Context, who model.Caller, q ListQuery, s SubscriptionQuery, cluster, namespace string,
) (*listOutput[model.Subscription], error) {
	page, err := h.waitList(ctx, who, subscriptions.Name, q)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Subscriptions.List(ctx, who, model.SubscriptionFilter{
		Cluster: cluster, Namespace: namespace, Package: s.Package, Catalog: s.Catalog, State: s.State, Phase: s.Phase,
		Label: s.Label, Approval: s.Approval, Version: s.Version, Choice: s.choice(s.Sort), Page: page,
	}))
}

// namedPage is how much of a namespace is read at once.
const namedPage = 500

// nameHandlers find what people mean by a name: a package, a subscription or a ClusterServiceVersion.
type nameHandlers struct{ Deps }

func (h nameHandlers) register(a *API) {
	register(a, whereAsked(access.Get, access.Subscriptions),
		operation(http.MethodGet, "/clusters/{cluster}/namespaces/{namespace}/named/{name}",
			"find-named", tagSubscriptions,
			"Find the subscription or the operator that a name means: its own, its package's, its subscription's or its "+
				"CSV's; one that may be several is a conflict that lists them"), h.findNamed)
}

// readNamespace reads the names of a namespace.
func (h nameHandlers) readNamespace(
	ctx context.Context, who model.Caller, at NamespacePath,
) (namelookup.Namespace, error) {
	w := namelookup.Namespace{Cluster: at.Cluster, Namespace: at.Namespace}
	for page := (model.Page{Limit: namedPage}); ; {
		list, next, err := h.Reads.Subscriptions.List(ctx, who,
			model.SubscriptionFilter{Cluster: at.Cluster, Namespace: at.Namespace, Page: page})
		if err != nil {
			return w, err
		}
		for _, s := range list {
			w.Subscriptions = append(w.Subscriptions, namelookup.Subscription{
				Name: s.Name, Package: s.Spec.Package, Installed: s.Status.InstalledCSV, Current: s.Status.CurrentCSV,
			})
		}
		if page.After = next; len(next) == 0 {
			break
		}
	}
	for page := (model.Page{Limit: namedPage}); ; {
		list, next, err := h.Reads.Operators.List(ctx, who,
			model.OperatorFilter{Cluster: at.Cluster, Namespace: at.Namespace, Page: page})
		if err != nil {
			return w, err
		}
		for _, o := range list {
			w.Operators = append(w.Operators, namelookup.Operator{Name: o.Name, Package: o.Package})
		}
		if page.After = next; len(next) == 0 {
			return w, nil
		}
	}
}

type findNamedInput struct {
	ObjectPath
	ReadQuery
	Kind string `query:"kind" required:"true" enum:"subscription,operator" doc:"Kind of the object"`
}

func (h nameHandlers) findNamed(
	ctx context.Context, who model.Caller, in *findNamedInput,
) (*output[model.Named], error) {
	for _, view := range []string{subscriptions.Name, operators.Name} {
		if err := h.wait(ctx, who, view, in.ReadQuery); err != nil {
			return nil, err
		}
	}
	w, err := h.readNamespace(ctx, who, in.NamespacePath)
	if err != nil {
		return nil, err
	}
	found, err := w.Find(namelookup.Kind(in.Kind), in.Name)
	return read(model.Named{Kind: in.Kind, Name: found, Package: w.Package(namelookup.Kind(in.Kind), found)}, err)
}
