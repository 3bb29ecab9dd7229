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
	register(a, whereAsked(access.Create, access.Clusters), post, h.registerCluster)

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
			"Change how a cluster is treated, or its labels; what is left out stays"), h.configureCluster)

	register(a, whereAsked(access.Delete, access.Clusters),
		operation(http.MethodDelete, "/clusters/{cluster}", "remove-cluster", tagClusters,
			"Let go of a cluster: its credential is erased, what is installed there stays"), h.removeCluster)

	put := operation(http.MethodPut, "/clusters/{cluster}/credentials", "replace-credentials", tagClusters,
		"Give another kubeconfig for a cluster")
	put.MaxBodyBytes = maxKubeconfigBody
	register(a, whereAsked(access.Update, access.Clusters), put, h.replaceCredentials)
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
	State string `query:"state" enum:"Registered,Connected,Unreachable,Unauthorized,Refused,HeldElsewhere"`
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
