package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagClusters = "Clusters"

// clusterHandlers are the operations on clusters.
type clusterHandlers struct{ Deps }

func (h clusterHandlers) register(a *API) {
	post := created("/clusters", "register-cluster", tagClusters, "Give a cluster to Chandler")
	post.MaxBodyBytes = maxKubeconfigBody
	register(a, whereAsked(access.Create, access.Clusters), lasting(a, post), h.registerCluster)

	registerList(a, whatIsSeen(access.List, access.Clusters),
		operation(http.MethodGet, "/clusters", "list-clusters", tagClusters, "List clusters"),
		watchedClusters, h.listClusters)

	register(a, whereAsked(access.Get, access.Clusters),
		operation(http.MethodGet, "/clusters/{cluster}", "get-cluster", tagClusters, "Get a cluster"),
		h.getCluster)

	h.clusterChanges(a)
}

func (h clusterHandlers) clusterChanges(a *API) {
	register(a, whereAsked(access.Update, access.Clusters),
		operation(http.MethodPatch, "/clusters/{cluster}", "configure-cluster", tagClusters,
			"Change how a cluster is treated, its labels or its taints; what is left out stays"), h.configureCluster)

	register(a, whereAsked(access.Delete, access.Clusters),
		operation(http.MethodDelete, "/clusters/{cluster}", "remove-cluster", tagClusters,
			"Let go of a cluster: its credential is erased, what is installed there stays"), h.removeCluster)

	put := operation(http.MethodPut, "/clusters/{cluster}/credentials", "replace-credentials", tagClusters,
		"Give another kubeconfig for a cluster")
	put.MaxBodyBytes = maxKubeconfigBody
	register(a, whereAsked(access.Update, access.Clusters), put, h.replaceCredentials)

	register(a, whereAsked(access.Create, access.Clusters),
		operation(http.MethodPost, "/clusters/{cluster}/agent-config", "issue-agent-config", tagClusters,
			"What the agent of a cluster is to know; for those who may register clusters"), h.issueAgentConfig)
}

type agentConfigInput struct {
	ClusterPath
	Body model.AgentConfigRequest
}

func (h clusterHandlers) issueAgentConfig(
	ctx context.Context, who model.Caller, in *agentConfigInput,
) (*output[model.AgentConfig], error) {
	return read(h.Installer.AgentConfig(ctx, who, in.Cluster, in.Body.Recipient))
}

type registerClusterInput struct{ Body model.RegisterCluster }

func (h clusterHandlers) registerCluster(
	ctx context.Context, who model.Caller, in *registerClusterInput,
) (*written[model.Cluster], error) {
	c, err := h.Intents.Clusters.Register(ctx, who, in.Body)
	return wrote(c, c.Position, prefix+"/clusters/"+c.Name, err)
}

var watchedClusters = watchedAs[model.Cluster]{
	kinds: []events.Kind{events.KindCluster},
	name: func(c model.Cluster) (watch.Scope, watch.Name) {
		return watch.Scope{Cluster: c.Name}, watch.Name{Name: c.Name}
	},
}

type listClustersInput struct {
	ListQuery
	WatchQuery
	State string `query:"state" enum:"Pending,Connected,Degraded,Unreachable,HeldElsewhere,Cordoned,OLMRunning"`
	LabelQuery
	Sort string `query:"sort" enum:"name,-name,state,-state,created,-created,changed,-changed" doc:"What to sort by, with - the other way round; by name without it"`
	ChoiceQuery

	name string // of the one that a watch reads again; a term of the field selector more could be one too many
}

func (in *listClustersInput) part(of watch.Scope) bool {
	in.name = of.Cluster
	return true
}

func (h clusterHandlers) listClusters(
	ctx context.Context, who model.Caller, in *listClustersInput,
) (*listOutput[model.Cluster], error) {
	page, err := h.waitList(ctx, who, clusters.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Clusters.List(ctx, who, model.ClusterFilter{
		Name: in.name, State: in.State, Label: in.Label, Choice: in.choice(in.Sort), Page: page,
	}))
}

type getClusterInput struct {
	ClusterPath
	ReadQuery
}

func (h clusterHandlers) getCluster(
	ctx context.Context, who model.Caller, in *getClusterInput,
) (*output[model.Cluster], error) {
	if err := h.wait(ctx, who, clusters.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Clusters.Get(ctx, who, in.Cluster))
}

type configureClusterInput struct {
	ClusterPath
	TryQuery
	Body model.ConfigureCluster
}

func (h clusterHandlers) configureCluster(
	ctx context.Context, who model.Caller, in *configureClusterInput,
) (*written[model.ConfiguredCluster], error) {
	c, err := h.Intents.Clusters.Configure(ctx, who, in.Cluster, in.Body)
	return wrote(c, c.Position, "", err)
}

type removeClusterInput struct {
	ClusterPath
	TryQuery
}

func (h clusterHandlers) removeCluster(
	ctx context.Context, who model.Caller, in *removeClusterInput,
) (*written[model.Removed], error) {
	r, err := h.Intents.Clusters.Remove(ctx, who, in.Cluster)
	return wrote(r, r.Position, "", err)
}

type replaceCredentialsInput struct {
	ClusterPath
	Body model.ReplaceCredentials
}

func (h clusterHandlers) replaceCredentials(
	ctx context.Context, who model.Caller, in *replaceCredentialsInput,
) (*written[model.Removed], error) {
	r, err := h.Intents.Clusters.ReplaceCredentials(ctx, who, in.Cluster, in.Body)
	return wrote(r, r.Position, "", err)
}

const tagEffects = "Effects"

// effectsHandlers are the operations on the stop switch.
type effectsHandlers struct{ Deps }

func (h effectsHandlers) register(a *API) {
	register(a, whereAsked(access.Get, access.Effects), operation(http.MethodGet, "/effects", "get-effects", tagEffects,
		"Whether plans may take steps"), h.getEffects)
	register(a, whereAsked(access.Stop, access.Effects),
		operation(http.MethodPost, "/effects", "set-effects", tagEffects,
			"Stop plans from taking steps, or let them go on"), h.setEffects)
}

type getEffectsInput struct {
	Cluster string `query:"cluster" maxLength:"63" doc:"Of this cluster; of the fleet without it"`
}

func (h effectsHandlers) getEffects(
	ctx context.Context, who model.Caller, in *getEffectsInput,
) (*output[model.Effects], error) {
	return read(h.Intents.Effects.Get(ctx, who, in.Cluster))
}

type setEffectsInput struct{ Body model.EffectsRequest }

func (h effectsHandlers) setEffects(
	ctx context.Context, who model.Caller, in *setEffectsInput,
) (*written[model.Effects], error) {
	e, err := h.Intents.Effects.Set(ctx, who, in.Body)
	return wrote(e, e.Position, "", err)
}

const tagReplicas = "Replicas"

// replicaHandlers are the operations on the replicas of the installer. They are the installation's, as its keys are:
// administrators see and drain them.
type replicaHandlers struct{ Deps }

func (h replicaHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Replicas),
		operation(http.MethodGet, "/replicas", "list-replicas", tagReplicas,
			"List the replicas of the installer and what they run; for administrators"), h.list)
	register(a, fleetWide(access.Update, access.Replicas),
		operation(http.MethodPost, "/replicas/drain", "drain-replica", tagReplicas,
			"Have a replica give its clusters to others, or take clusters again"), h.drain)
}

func (h replicaHandlers) list(
	ctx context.Context, who model.Caller, _ *struct{},
) (*listOutput[model.Replica], error) {
	items, err := h.Intents.Replicas.List(ctx, who)
	return listed(items, nil, err)
}

type drainReplicaInput struct{ Body model.DrainReplica }

func (h replicaHandlers) drain(ctx context.Context, who model.Caller, in *drainReplicaInput) (*struct{}, error) {
	if err := h.Intents.Replicas.Drain(ctx, who, in.Body); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}

const tagLog = "Event log"

// parkedHandlers are the operations on parked events; all of them are for administrators, since the bytes of an event
// are shown, and a skipped one changes what is shown for good.
type parkedHandlers struct{ Deps }

func (h parkedHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Parked),
		operation(http.MethodGet, "/log/parked", "list-parked-events", tagLog,
			"List events that a consumer of the log could not take, and those that wait behind them; for administrators"),
		h.list)
	register(a, fleetWide(access.Get, access.Parked),
		operation(http.MethodGet, "/log/parked/event", "get-parked-event", tagLog,
			"Get a parked event with its bytes; for administrators"), h.get)
	register(a, fleetWide(access.Update, access.Parked),
		operation(http.MethodPost, "/log/parked/retry", "retry-parked-events", tagLog,
			"Have parked events tried again at once"), h.retry)
	register(a, fleetWide(access.Update, access.Parked),
		operation(http.MethodPost, "/log/parked/skip", "skip-parked-event", tagLog,
			"Have a consumer go on without an event, for good"), h.skip)
	register(a, fleetWide(access.List, access.Parked),
		operation(http.MethodGet, "/log/skipped", "list-skipped-events", tagLog,
			"List events that consumers went on without, who decided that and why; for administrators"), h.skipped)
}

type consumerQuery struct {
	Consumer string `query:"consumer" maxLength:"200" doc:"Of this consumer; of all without it"`
}

func (h parkedHandlers) list(
	ctx context.Context, who model.Caller, in *consumerQuery,
) (*listOutput[model.ParkedEvent], error) {
	items, err := h.Intents.Parked.List(ctx, who, in.Consumer)
	return listed(items, nil, err)
}

func (h parkedHandlers) skipped(
	ctx context.Context, who model.Caller, in *consumerQuery,
) (*listOutput[model.SkippedEvent], error) {
	items, err := h.Intents.Parked.Skipped(ctx, who, in.Consumer)
	return listed(items, nil, err)
}

type parkedQuery struct {
	Consumer string `query:"consumer" required:"true" minLength:"1" maxLength:"200" doc:"As the list names it"`
	Stream   string `query:"stream" required:"true" minLength:"1" maxLength:"200" doc:"As the list names it"`
	Version  int64  `query:"version" required:"true" minimum:"1"`
}

func (h parkedHandlers) get(
	ctx context.Context, who model.Caller, in *parkedQuery,
) (*output[model.ParkedEvent], error) {
	return read(h.Intents.Parked.Get(ctx, who, model.ParkedRef(*in)))
}

type retryParkedInput struct{ Body model.RetryParked }

func (h parkedHandlers) retry(ctx context.Context, who model.Caller, in *retryParkedInput) (*struct{}, error) {
	if err := h.Intents.Parked.Retry(ctx, who, in.Body); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}

type skipParkedInput struct{ Body model.SkipParked }

func (h parkedHandlers) skip(ctx context.Context, who model.Caller, in *skipParkedInput) (*struct{}, error) {
	if err := h.Intents.Parked.Skip(ctx, who, in.Body); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}
