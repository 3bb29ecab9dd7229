package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Selection narrows a list; empty fields choose all.
type Selection struct {
	Cluster   string
	Namespace string
	Package   string
	Catalog   string
	Phase     string
	State     string
	Label     string // of a cluster: key=value, or key
	Serves    string // a namespace that an operator serves
	Blocked   string // of an install plan: true or false
	// MinPosition is a position that the answer must take into account.
	MinPosition string
}

func (s Selection) query() url.Values {
	return url.Values{
		"cluster": {s.Cluster}, "namespace": {s.Namespace}, "package": {s.Package}, "catalog": {s.Catalog},
		"phase": {s.Phase}, "state": {s.State}, "serves": {s.Serves}, "blocked": {s.Blocked}, "label": {s.Label},
		"minPosition": {s.MinPosition},
	}
}

// Ref names one thing of a namespace of a cluster; a hub catalog and a cluster have a name alone.
type Ref struct {
	Cluster   string
	Namespace string
	Name      string
}

// String is the natural key: cluster/namespace/name, or the name alone.
func (r Ref) String() string {
	if r.Cluster == "" {
		return r.Name
	}
	return r.Cluster + "/" + r.Namespace + "/" + r.Name
}

func (r Ref) path(plural string) string {
	return join("clusters", r.Cluster, "namespaces", r.Namespace, plural, r.Name)
}

func (r Ref) collection(plural string) string {
	return join("clusters", r.Cluster, "namespaces", r.Namespace, plural)
}

// Clusters lists clusters.
func (c *Client) Clusters(ctx context.Context, s Selection) ([]model.Cluster, error) {
	return list[model.Cluster](ctx, c, "/clusters", url.Values{
		"state": {s.State}, "label": {s.Label},
		"minPosition": {s.MinPosition},
	})
}

// Cluster returns one cluster.
func (c *Client) Cluster(ctx context.Context, name string) (model.Cluster, error) {
	return ask[model.Cluster](ctx, c, http.MethodGet, join("clusters", name), nil, nil)
}

// RegisterCluster registers a cluster.
func (c *Client) RegisterCluster(ctx context.Context, in model.RegisterCluster) (model.Cluster, error) {
	return ask[model.Cluster](ctx, c, http.MethodPost, "/clusters", nil, in)
}

// ReplaceCredentials gives another kubeconfig for a cluster.
func (c *Client) ReplaceCredentials(
	ctx context.Context, name string, in model.ReplaceCredentials,
) (model.Cluster, error) {
	return ask[model.Cluster](ctx, c, http.MethodPut, join("clusters", name, "credentials"), nil, in)
}

// ConfigureCluster changes how a cluster is treated.
func (c *Client) ConfigureCluster(ctx context.Context, name string, in model.ConfigureCluster) (
	model.ConfiguredCluster, error,
) {
	return ask[model.ConfiguredCluster](ctx, c, http.MethodPatch, join("clusters", name), nil, in)
}

// RemoveCluster lets go of a cluster.
func (c *Client) RemoveCluster(ctx context.Context, name string) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, join("clusters", name), nil, nil)
}

// Subscriptions lists subscriptions of the fleet.
func (c *Client) Subscriptions(ctx context.Context, s Selection) ([]model.Subscription, error) {
	return list[model.Subscription](ctx, c, "/subscriptions", s.query())
}

// Subscription returns one subscription.
func (c *Client) Subscription(ctx context.Context, r Ref) (model.Subscription, error) {
	return ask[model.Subscription](ctx, c, http.MethodGet, r.path("subscriptions"), nil, nil)
}

// CreateSubscription subscribes.
func (c *Client) CreateSubscription(ctx context.Context, r Ref, want model.ChangeSubscription) (
	model.Subscription, error,
) {
	in := model.CreateSubscription{Name: r.Name, Metadata: want.Metadata, SubscriptionSpec: want.SubscriptionSpec}
	return ask[model.Subscription](ctx, c, http.MethodPost, r.collection("subscriptions"), nil, in)
}

// ChangeSubscription replaces the intent of a subscription.
func (c *Client) ChangeSubscription(ctx context.Context, r Ref, want model.ChangeSubscription) (
	model.Subscription, error,
) {
	return ask[model.Subscription](ctx, c, http.MethodPut, r.path("subscriptions"), nil, want)
}

// Rollback asks to go back to a version that was installed before.
func (c *Client) Rollback(ctx context.Context, r Ref, in model.RollBack) (model.Subscription, error) {
	return ask[model.Subscription](ctx, c, http.MethodPost, r.path("subscriptions")+"/rollback", nil, in)
}

// DeleteSubscription ends a subscription; the installed operator stays.
func (c *Client) DeleteSubscription(ctx context.Context, r Ref) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, r.path("subscriptions"), nil, nil)
}

// OperatorGroups lists operator groups of the fleet.
func (c *Client) OperatorGroups(ctx context.Context, s Selection) ([]model.OperatorGroup, error) {
	return list[model.OperatorGroup](ctx, c, "/operatorgroups", s.query())
}

// OperatorGroup returns one operator group.
func (c *Client) OperatorGroup(ctx context.Context, r Ref) (model.OperatorGroup, error) {
	return ask[model.OperatorGroup](ctx, c, http.MethodGet, r.path("operatorgroups"), nil, nil)
}

// CreateOperatorGroup makes an operator group.
func (c *Client) CreateOperatorGroup(ctx context.Context, r Ref, want model.ChangeOperatorGroup) (
	model.OperatorGroup, error,
) {
	in := model.CreateOperatorGroup{Name: r.Name, Metadata: want.Metadata, OperatorGroupSpec: want.OperatorGroupSpec}
	return ask[model.OperatorGroup](ctx, c, http.MethodPost, r.collection("operatorgroups"), nil, in)
}

// ChangeOperatorGroup replaces the intent of an operator group.
func (c *Client) ChangeOperatorGroup(ctx context.Context, r Ref, want model.ChangeOperatorGroup) (
	model.OperatorGroup, error,
) {
	return ask[model.OperatorGroup](ctx, c, http.MethodPut, r.path("operatorgroups"), nil, want)
}

// DeleteOperatorGroup ends an operator group.
func (c *Client) DeleteOperatorGroup(ctx context.Context, r Ref) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, r.path("operatorgroups"), nil, nil)
}

// InstallPlans lists install plans of the fleet.
func (c *Client) InstallPlans(ctx context.Context, s Selection) ([]model.InstallPlan, error) {
	return list[model.InstallPlan](ctx, c, "/installplans", s.query())
}

// InstallPlan returns one install plan with its document.
func (c *Client) InstallPlan(ctx context.Context, id string) (model.InstallPlan, error) {
	return ask[model.InstallPlan](ctx, c, http.MethodGet, join("installplans", id), nil, nil)
}

// Approve approves exactly the plan with this digest.
func (c *Client) Approve(ctx context.Context, id string, in model.ApprovePlan) (model.InstallPlan, error) {
	return ask[model.InstallPlan](ctx, c, http.MethodPost, join("installplans", id, "approve"), nil, in)
}

// SetPlanMetadata replaces the labels and annotations of a plan.
func (c *Client) SetPlanMetadata(ctx context.Context, id string, in model.Metadata) (model.InstallPlan, error) {
	return ask[model.InstallPlan](ctx, c, http.MethodPut, join("installplans", id, "metadata"), nil, in)
}

// Reject ends a plan.
func (c *Client) Reject(ctx context.Context, id string, in model.RejectPlan) (model.InstallPlan, error) {
	return ask[model.InstallPlan](ctx, c, http.MethodPost, join("installplans", id, "reject"), nil, in)
}

// Operators lists installed operators.
func (c *Client) Operators(ctx context.Context, s Selection) ([]model.Operator, error) {
	return list[model.Operator](ctx, c, "/operators", s.query())
}

// Named returns the subscription or operator that a name means: its own name, that of its package, subscription or CSV.
func (c *Client) Named(ctx context.Context, kind string, r Ref) (model.Named, error) {
	return ask[model.Named](ctx, c, http.MethodGet, r.path("named"), url.Values{"kind": {kind}}, nil)
}

// Operator returns one installed operator with what its cluster says of it.
func (c *Client) Operator(ctx context.Context, r Ref) (model.Operator, error) {
	return ask[model.Operator](ctx, c, http.MethodGet, r.path("operators"), nil, nil)
}

// Effects says whether plans may take steps.
func (c *Client) Effects(ctx context.Context) (model.Effects, error) {
	return ask[model.Effects](ctx, c, http.MethodGet, "/effects", nil, nil)
}

// SetEffects stops effects or lets them go on.
func (c *Client) SetEffects(ctx context.Context, in model.EffectsRequest) (model.Effects, error) {
	return ask[model.Effects](ctx, c, http.MethodPost, "/effects", nil, in)
}

// EventSelection narrows events.
type EventSelection struct {
	Types   []string
	Subject string
	Stream  string
	Cluster string
	After   string // position; "" is the beginning
	Limit   int    // of one page; 0 is the server's choice
}

func (s EventSelection) query() url.Values {
	q := url.Values{}
	for k, v := range map[string]string{
		"subject": s.Subject, "stream": s.Stream, "cluster": s.Cluster,
		"after": s.After,
	} {
		if v != "" {
			q.Set(k, v)
		}
	}
	for _, t := range s.Types {
		q.Add("type", t)
	}
	if s.Limit > 0 {
		q.Set("limit", strconv.Itoa(s.Limit))
	}
	return q
}

// EventPage is a part of the log.
type EventPage struct {
	Items []model.Event `json:"items"`
	Next  string        `json:"next"` // position to go on from
	Done  bool          `json:"done"` // the end of the log was reached
}

// Events returns one page of events in the order of the log.
func (c *Client) Events(ctx context.Context, s EventSelection) (EventPage, error) {
	return ask[EventPage](ctx, c, http.MethodGet, "/events", s.query(), nil)
}
