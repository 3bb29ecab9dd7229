package client

import (
	"context"
	"maps"
	"net/url"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/client"
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
	// FieldSelector is one of Kubernetes, ClusterSelector one over labels of clusters.
	FieldSelector, ClusterSelector string
	Sort                           string // as the API sorts, with - the other way round
	// Limit ends the list after so many things; 0 lists all.
	Limit int
	// MinPosition is a position that the answer must take into account.
	MinPosition string
}

func (s Selection) query() url.Values {
	q := url.Values{
		"cluster": {s.Cluster}, "namespace": {s.Namespace}, "package": {s.Package}, "catalog": {s.Catalog},
		"phase": {s.Phase}, "state": {s.State}, "serves": {s.Serves}, "blocked": {s.Blocked}, "label": {s.Label},
		"fieldSelector": {s.FieldSelector}, "clusterSelector": {s.ClusterSelector}, "sort": {s.Sort},
		"minPosition": {s.MinPosition},
	}
	if s.Limit > 0 {
		q.Set("limit", strconv.Itoa(s.Limit))
	}
	return q
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

// Clusters lists clusters.
func (c *Client) Clusters(ctx context.Context, s Selection) ([]model.Cluster, error) {
	req := client.NewListClustersRequest(&client.ListClustersParams{
		State: client.ListClustersParamsState(s.State), Label: s.Label, FieldSelector: s.FieldSelector,
		ClusterSelector: s.ClusterSelector, Sort: client.ListClustersParamsSort(s.Sort), MinPosition: s.MinPosition,
	})
	return all[model.Cluster](ctx, c, req)
}

// Cluster returns one cluster.
func (c *Client) Cluster(ctx context.Context, name string) (model.Cluster, error) {
	return get[model.Cluster](ctx, c, client.NewGetClusterRequest(name, nil))
}

// RegisterCluster registers a cluster.
func (c *Client) RegisterCluster(ctx context.Context, in model.RegisterCluster) (model.Cluster, error) {
	return get[model.Cluster](ctx, c, with(client.NewRegisterClusterRequest(client.RegisterCluster{}), in))
}

// ReplaceCredentials gives another kubeconfig for a cluster.
func (c *Client) ReplaceCredentials(
	ctx context.Context, name string, in model.ReplaceCredentials,
) (model.Cluster, error) {
	req := client.NewReplaceCredentialsRequest(name, client.ReplaceCredentials{})
	return get[model.Cluster](ctx, c, with(req, in))
}

// AgentConfig is what the agent of a cluster is to know, encrypted to a public age key.
func (c *Client) AgentConfig(ctx context.Context, name, recipient string) (model.AgentConfig, error) {
	req := client.NewIssueAgentConfigRequest(name, client.AgentConfigRequest{})
	return get[model.AgentConfig](ctx, c, with(req, model.AgentConfigRequest{Recipient: recipient}))
}

// IssueJoinToken lets whoever has a token ask to become the agent of a cluster.
func (c *Client) IssueJoinToken(ctx context.Context, name string, in model.IssueJoinToken) (
	model.IssuedJoinToken, error,
) {
	return get[model.IssuedJoinToken](ctx, c, with(client.NewIssueJoinTokenRequest(name, client.IssueJoinToken{}), in))
}

// Agent is who serves a cluster from within, or wants to.
func (c *Client) Agent(ctx context.Context, name string) (model.Agent, error) {
	return get[model.Agent](ctx, c, client.NewGetAgentRequest(name))
}

// DecideAgent accepts or rejects who asks to become the agent of a cluster, or revokes agent and token.
func (c *Client) DecideAgent(ctx context.Context, name string, in model.DecideAgent) (model.Agent, error) {
	return get[model.Agent](ctx, c, with(client.NewDecideAgentRequest(name, client.DecideAgent{}), in))
}

// ConfigureCluster changes how a cluster is treated.
func (c *Client) ConfigureCluster(ctx context.Context, name string, in model.ConfigureCluster) (
	model.ConfiguredCluster, error,
) {
	req := client.NewConfigureClusterRequest(name, nil, client.ConfigureCluster{})
	return get[model.ConfiguredCluster](ctx, c, with(req, in))
}

// RemoveCluster lets go of a cluster.
func (c *Client) RemoveCluster(ctx context.Context, name string) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewRemoveClusterRequest(name, nil))
}

// Subscriptions lists subscriptions of the fleet.
func (c *Client) Subscriptions(ctx context.Context, s Selection) ([]model.Subscription, error) {
	return all[model.Subscription](ctx, c, where(client.NewListAllSubscriptionsRequest(nil), s.query()))
}

// Summary counts what there is in the chosen part of the fleet, by cluster.
func (c *Client) Summary(ctx context.Context, s Selection) (model.FleetSummary, error) {
	q := s.query()
	maps.DeleteFunc(q, func(_ string, v []string) bool { return v[0] == "" })
	return get[model.FleetSummary](ctx, c, where(client.NewSummarizeRequest(nil), q))
}

// Subscription returns one subscription.
func (c *Client) Subscription(ctx context.Context, r Ref) (model.Subscription, error) {
	return get[model.Subscription](ctx, c, client.NewGetSubscriptionRequest(r.Cluster, r.Namespace, r.Name, nil))
}

// CreateSubscription subscribes.
func (c *Client) CreateSubscription(ctx context.Context, r Ref, want model.ChangeSubscription) (
	model.Subscription, error,
) {
	in := model.CreateSubscription{Name: r.Name, Metadata: want.Metadata, SubscriptionSpec: want.SubscriptionSpec}
	req := client.NewCreateSubscriptionRequest(r.Cluster, r.Namespace, nil, client.CreateSubscription{})
	return get[model.Subscription](ctx, c, with(req, in))
}

// ChangeSubscription replaces the intent of a subscription whose tag is match.
func (c *Client) ChangeSubscription(ctx context.Context, r Ref, match string, want model.ChangeSubscription) (
	model.Subscription, error,
) {
	req := client.NewChangeSubscriptionRequest(r.Cluster, r.Namespace, r.Name, nil, client.ChangeSubscription{})
	return replace[model.Subscription](ctx, c, with(req, want), match)
}

// Rollback asks to go back to a version that was installed before.
func (c *Client) Rollback(ctx context.Context, r Ref, in model.RollBack) (model.Subscription, error) {
	return get[model.Subscription](ctx, c, with(client.NewRollbackSubscriptionRequest(
		r.Cluster, r.Namespace, r.Name, nil, client.RollBack{}), in))
}

// DeleteSubscription ends a subscription; the installed operator stays.
func (c *Client) DeleteSubscription(ctx context.Context, r Ref) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteSubscriptionRequest(r.Cluster, r.Namespace, r.Name))
}

// OperatorGroups lists operator groups of the fleet.
func (c *Client) OperatorGroups(ctx context.Context, s Selection) ([]model.OperatorGroup, error) {
	return all[model.OperatorGroup](ctx, c, where(client.NewListAllOperatorgroupsRequest(nil), s.query()))
}

// OperatorGroup returns one operator group.
func (c *Client) OperatorGroup(ctx context.Context, r Ref) (model.OperatorGroup, error) {
	return get[model.OperatorGroup](ctx, c, client.NewGetOperatorgroupRequest(r.Cluster, r.Namespace, r.Name, nil))
}

// CreateOperatorGroup makes an operator group.
func (c *Client) CreateOperatorGroup(ctx context.Context, r Ref, want model.ChangeOperatorGroup) (
	model.OperatorGroup, error,
) {
	in := model.CreateOperatorGroup{Name: r.Name, Metadata: want.Metadata, OperatorGroupSpec: want.OperatorGroupSpec}
	req := client.NewCreateOperatorgroupRequest(r.Cluster, r.Namespace, client.CreateOperatorGroup{})
	return get[model.OperatorGroup](ctx, c, with(req, in))
}

// ChangeOperatorGroup replaces the intent of an operator group whose tag is match.
func (c *Client) ChangeOperatorGroup(ctx context.Context, r Ref, match string, want model.ChangeOperatorGroup) (
	model.OperatorGroup, error,
) {
	req := client.NewChangeOperatorgroupRequest(r.Cluster, r.Namespace, r.Name, client.ChangeOperatorGroup{})
	return replace[model.OperatorGroup](ctx, c, with(req, want), match)
}

// DeleteOperatorGroup ends an operator group.
func (c *Client) DeleteOperatorGroup(ctx context.Context, r Ref) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteOperatorgroupRequest(r.Cluster, r.Namespace, r.Name))
}

// InstallPlans lists install plans of the fleet.
func (c *Client) InstallPlans(ctx context.Context, s Selection) ([]model.InstallPlan, error) {
	return all[model.InstallPlan](ctx, c, where(client.NewListInstallplansRequest(nil), s.query()))
}

// InstallPlan returns one install plan with its document.
func (c *Client) InstallPlan(ctx context.Context, id string) (model.InstallPlan, error) {
	return get[model.InstallPlan](ctx, c, client.NewGetInstallplanRequest(id, nil))
}

// PlanNamed returns the plan of a name; one that several plans have, in the cluster and the namespace of the reference
// where it has these, is a conflict that lists them.
func (c *Client) PlanNamed(ctx context.Context, r Ref) (model.InstallPlan, error) {
	query := url.Values{}
	for key, value := range map[string]string{"cluster": r.Cluster, "namespace": r.Namespace} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return get[model.InstallPlan](ctx, c, where(client.NewGetInstallplanRequest(r.Name, nil), query))
}

// PlanComments are what people said of an install plan.
func (c *Client) PlanComments(ctx context.Context, id string) ([]model.PlanComment, error) {
	return all[model.PlanComment](ctx, c, client.NewListInstallplanCommentsRequest(id, nil))
}

// CommentPlan says something of an install plan.
func (c *Client) CommentPlan(ctx context.Context, id, text string) (model.PlanComment, error) {
	req := client.NewCommentInstallplanRequest(id, nil, client.CommentPlan{})
	return get[model.PlanComment](ctx, c, with(req, model.CommentPlan{Text: text}))
}

// Approve approves exactly the plan with this digest.
func (c *Client) Approve(ctx context.Context, id string, in model.ApprovePlan) (model.InstallPlan, error) {
	req := client.NewApproveInstallplanRequest(id, nil, client.ApprovePlan{})
	return get[model.InstallPlan](ctx, c, with(req, in))
}

// SetPlanMetadata replaces the labels and annotations of a plan.
func (c *Client) SetPlanMetadata(ctx context.Context, id string, in model.Metadata) (model.InstallPlan, error) {
	return get[model.InstallPlan](ctx, c, with(client.NewNoteInstallplanRequest(id, nil, client.Metadata{}), in))
}

// Reject ends a plan.
func (c *Client) Reject(ctx context.Context, id string, in model.RejectPlan) (model.InstallPlan, error) {
	return get[model.InstallPlan](ctx, c, with(client.NewRejectInstallplanRequest(id, nil, client.RejectPlan{}), in))
}

// Operators lists installed operators.
func (c *Client) Operators(ctx context.Context, s Selection) ([]model.Operator, error) {
	return all[model.Operator](ctx, c, where(client.NewListOperatorsRequest(nil), s.query()))
}

// Named returns the subscription or operator that a name means: its own name, that of its package, subscription or CSV.
func (c *Client) Named(ctx context.Context, kind string, r Ref) (model.Named, error) {
	req := client.NewFindNamedRequest(r.Cluster, r.Namespace, r.Name, &client.FindNamedParams{
		Kind: client.FindNamedParamsKind(kind),
	})
	return get[model.Named](ctx, c, req)
}

// Operator returns one installed operator with what its cluster says of it.
func (c *Client) Operator(ctx context.Context, r Ref) (model.Operator, error) {
	return get[model.Operator](ctx, c, client.NewGetOperatorRequest(r.Cluster, r.Namespace, r.Name, nil))
}

// Effects says whether plans may take steps.
func (c *Client) Effects(ctx context.Context) (model.Effects, error) {
	return get[model.Effects](ctx, c, client.NewGetEffectsRequest(nil))
}

// SetEffects stops effects or lets them go on.
func (c *Client) SetEffects(ctx context.Context, in model.EffectsRequest) (model.Effects, error) {
	return get[model.Effects](ctx, c, with(client.NewSetEffectsRequest(client.EffectsRequest{}), in))
}

// EventSelection narrows events.
type EventSelection struct {
	Types   []string
	Subject string
	Stream  string
	Cluster string
	Actor   string
	Since   string // a time
	Until   string // a time; of lists alone
	After   string // position; "" is the beginning
	Limit   int    // of one page; 0 is the server's choice
}

func (s EventSelection) query() url.Values {
	q := url.Values{}
	for k, v := range map[string]string{
		"subject": s.Subject, "stream": s.Stream, "cluster": s.Cluster,
		"actor": s.Actor, "since": s.Since, "until": s.Until, "after": s.After,
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
	return get[EventPage](ctx, c, where(client.NewListEventsRequest(nil), s.query()))
}
