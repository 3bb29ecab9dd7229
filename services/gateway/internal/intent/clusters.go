package intent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/kubeconfig"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var clusters = aggregate[cluster.State, cluster.Command]{
	events.KindCluster, func(s cluster.State) string { return cluster.Subject(s.Name) }, cluster.Decide, fold(cluster.Evolve),
}

// RegisterCluster gives a cluster to Chandler.
func (s *Service) RegisterCluster(ctx context.Context, who model.Caller, in model.RegisterCluster) (model.Cluster, error) {
	if err := kubeconfig.Check("/kubeconfig", []byte(in.Kubeconfig)); err != nil {
		return model.Cluster{}, err
	}
	out, err := s.onCluster(ctx, who, in.Name, func(ctx context.Context, tx pgx.Tx, now cluster.State) (cluster.Command, error) {
		c := cluster.Register{Name: in.Name, Labels: in.Labels}
		// Decided before the credential is stored: a refused register must not replace the credential of
		// the cluster that has the name, and the transaction alone would not hide it from Decide.
		if _, err := cluster.Decide(now, c); err != nil {
			return nil, err
		}
		var err error
		c.Credential, err = s.putCredential(ctx, tx, who, in.Name, in.Kubeconfig)
		return c, err
	})
	if err != nil {
		return model.Cluster{}, err
	}
	return clusterAnswer(out), nil
}

// ReplaceCredentials gives another kubeconfig for a cluster.
func (s *Service) ReplaceCredentials(ctx context.Context, who model.Caller, name string, in model.ReplaceCredentials) (model.Removed, error) {
	if err := kubeconfig.Check("/kubeconfig", []byte(in.Kubeconfig)); err != nil {
		return model.Removed{}, err
	}
	out, err := s.onCluster(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now cluster.State) (cluster.Command, error) {
		if !now.Registered {
			return nil, errs.New(errs.NotFound, "no cluster %q is registered", name)
		}
		credential, err := s.putCredential(ctx, tx, who, name, in.Kubeconfig)
		return cluster.ReplaceCredential{Credential: credential}, err
	})
	return model.Removed{Position: out.Position}, err
}

// ConfigureCluster changes how a cluster is treated, and its labels.
func (s *Service) ConfigureCluster(ctx context.Context, who model.Caller, name string, in model.ConfigureCluster) (model.ConfiguredCluster, error) {
	out, err := s.onCluster(ctx, who, name, func(context.Context, pgx.Tx, cluster.State) (cluster.Command, error) {
		return cluster.Configure{Settings: events.ClusterSettings{Mirror: in.Mirror, Drift: in.Drift, Optional: in.Optional, Events: in.Events}, Labels: in.Labels}, nil
	})
	return model.ConfiguredCluster{
		Name: name, Settings: model.ClusterSettings(out.State.Settings.WithDefaults()), Labels: out.State.Labels, Version: out.Version, Position: out.Position,
	}, err
}

// RemoveCluster lets go of a cluster and erases its credential.
func (s *Service) RemoveCluster(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	out, err := s.onCluster(ctx, who, name, func(ctx context.Context, tx pgx.Tx, _ cluster.State) (cluster.Command, error) {
		return cluster.Remove{}, s.Credentials.Erase(ctx, tx, who.Tenant, events.Key(who.Tenant, events.KindCluster, name))
	})
	return model.Removed{Position: out.Position}, err
}

func (s *Service) onCluster(ctx context.Context, who model.Caller, name string,
	command commander[cluster.State, cluster.Command],
) (outcome[cluster.State], error) {
	return run(ctx, s, who, clusters, cluster.Subject(name), cluster.State{Name: name}, command)
}

func (s *Service) putCredential(ctx context.Context, tx pgx.Tx, who model.Caller, name, config string) (string, error) {
	return s.Credentials.Put(ctx, tx, who.Tenant, events.Key(who.Tenant, events.KindCluster, name), name, []byte(config))
}

func clusterAnswer(out outcome[cluster.State]) model.Cluster {
	return model.Cluster{
		Name: out.State.Name, Labels: out.State.Labels, State: model.ClusterRegistered,
		Settings:     model.ClusterSettings(out.State.Settings),
		RegisteredAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}
}
