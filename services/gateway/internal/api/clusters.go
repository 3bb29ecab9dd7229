package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagClusters = "Clusters"

func (a *API) clusters() {
	post := created("/clusters", "register-cluster", tagClusters, "Give a cluster to Chandler")
	post.MaxBodyBytes = maxKubeconfigBody
	register(a, needWrite, post, func(ctx context.Context, who model.Caller, in *struct{ Body model.RegisterCluster }) (*written[model.Cluster], error) {
		c, err := a.d.Intents.Clusters.Register(ctx, who, in.Body)
		return wrote(c, c.Position, prefix+"/clusters/"+c.Name, err)
	})

	register(a, needRead, operation(http.MethodGet, "/clusters", "list-clusters", tagClusters, "List clusters"),
		func(ctx context.Context, who model.Caller, in *struct {
			ListQuery
			State string `query:"state" enum:"Registered,Connected,Unreachable,Unauthorized,Refused,HeldElsewhere"`
			LabelQuery
		},
		) (*listOutput[model.Cluster], error) {
			page, err := a.waitList(ctx, who, a.d.Views.Clusters, in.ListQuery)
			if err != nil {
				return nil, err
			}
			return listed(a.d.Reads.Clusters(ctx, who, model.ClusterFilter{State: in.State, Label: in.Label, Page: page}))
		})

	register(a, needRead, operation(http.MethodGet, "/clusters/{cluster}", "get-cluster", tagClusters, "Get a cluster"),
		func(ctx context.Context, who model.Caller, in *struct {
			ClusterPath
			ReadQuery
		},
		) (*output[model.Cluster], error) {
			if err := a.wait(ctx, who, a.d.Views.Clusters, in.ReadQuery); err != nil {
				return nil, err
			}
			return read(a.d.Reads.Cluster(ctx, who, in.Cluster))
		})

	a.clusterChanges()
}

func (a *API) clusterChanges() {
	register(a, needWrite, operation(http.MethodPatch, "/clusters/{cluster}", "configure-cluster", tagClusters,
		"Change how a cluster is treated, or its labels; what is left out stays"),
		func(ctx context.Context, who model.Caller, in *struct {
			ClusterPath
			Body model.ConfigureCluster
		},
		) (*written[model.ConfiguredCluster], error) {
			c, err := a.d.Intents.Clusters.Configure(ctx, who, in.Cluster, in.Body)
			return wrote(c, c.Position, "", err)
		})

	register(a, needWrite, operation(http.MethodDelete, "/clusters/{cluster}", "remove-cluster", tagClusters,
		"Let go of a cluster: its credential is erased, what is installed there stays"),
		func(ctx context.Context, who model.Caller, in *ClusterPath) (*written[model.Removed], error) {
			r, err := a.d.Intents.Clusters.Remove(ctx, who, in.Cluster)
			return wrote(r, r.Position, "", err)
		})

	put := operation(http.MethodPut, "/clusters/{cluster}/credentials", "replace-credentials", tagClusters, "Give another kubeconfig for a cluster")
	put.MaxBodyBytes = maxKubeconfigBody
	register(a, needWrite, put, func(ctx context.Context, who model.Caller, in *struct {
		ClusterPath
		Body model.ReplaceCredentials
	},
	) (*written[model.Removed], error) {
		r, err := a.d.Intents.Clusters.ReplaceCredentials(ctx, who, in.Cluster, in.Body)
		return wrote(r, r.Position, "", err)
	})
}

const tagEffects = "Effects"

func (a *API) effects() {
	register(a, needRead, operation(http.MethodGet, "/effects", "get-effects", tagEffects, "Whether plans may take steps"),
		func(ctx context.Context, who model.Caller, in *struct {
			Cluster string `query:"cluster" maxLength:"63" doc:"Of this cluster; of the fleet without it"`
		},
		) (*output[model.Effects], error) {
			return read(a.d.Intents.Effects.Get(ctx, who, in.Cluster))
		})
	register(a, needWrite, operation(http.MethodPost, "/effects", "set-effects", tagEffects, "Stop plans from taking steps, or let them go on"),
		func(ctx context.Context, who model.Caller, in *struct{ Body model.EffectsRequest }) (*written[model.Effects], error) {
			e, err := a.d.Intents.Effects.Set(ctx, who, in.Body)
			return wrote(e, e.Position, "", err)
		})
}
