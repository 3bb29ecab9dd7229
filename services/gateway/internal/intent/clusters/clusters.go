// Package clusters carries out intents about clusters: register, configure, replace credentials, remove.
package clusters

import (
	"context"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/kubeconfig"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const span = "intent cluster"

var aggregate = unit.Aggregate[cluster.State, cluster.Command]{
	Kind: events.KindCluster, Subject: func(s cluster.State) string { return cluster.Subject(s.Name) },
	Decide: cluster.Decide, Evolve: unit.ByPayload(cluster.Evolve),
}

// Service carries out intents about clusters.
type Service struct {
	Units       *unit.Runner
	Credentials *store.Credentials
}

type decision = unit.Decision[cluster.State]

// MustExist refuses a cluster that is not registered.
func MustExist(ctx context.Context, u *unit.Work, name string) error {
	found, err := u.Exists(ctx, events.KindCluster, name)
	if err == nil && !found {
		err = errs.New(errs.NotFound, "no cluster %q is registered: register it before anything is placed on it", name).
			At("cluster", "cluster-registered")
	}
	return err
}

// Register gives a cluster to Chandler.
func (s *Service) Register(ctx context.Context, who model.Caller, in model.RegisterCluster) (model.Cluster, error) {
	config, err := checked(in)
	if err != nil {
		return model.Cluster{}, err
	}
	out, position, err := s.write(ctx, who, in.Name,
		func(ctx context.Context, u *unit.Work, now cluster.State) (cluster.Command, error) {
			c := cluster.Register{
				Name: in.Name, Access: in.Access, Labels: in.Labels, Taints: in.Taints, Waived: config.Waived,
				Ends: config.Ends,
			}
			// Decided before the credential is stored: a refused register must not replace the credential of the
			// cluster that has the name, and the transaction alone would not hide it from Decide.
			if _, err := cluster.Decide(now, c); err != nil {
				return nil, err
			}
			if in.Access == events.AccessAgent {
				return c, nil
			}
			var err error
			c.Credential, err = s.putCredential(ctx, u, in.Name, config.Canonical)
			return c, err
		})
	if err != nil {
		return model.Cluster{}, err
	}
	var ends *time.Time
	if !config.Ends.IsZero() {
		ends = &config.Ends
	}
	now := cluster.Conditions(cluster.New(out.Time))
	return model.Cluster{
		Name: out.State.Name, Access: out.State.Access, Labels: out.State.Labels, Taints: out.State.Taints,
		State: now[0].Type, StateSince: now[0].Since, Reason: now[0].Reason, Conditions: now,
		Connection:   model.ClusterRegistered,
		Waived:       out.State.Waived,
		Settings:     model.ClusterSettings(out.State.Settings.WithDefaults()),
		RegisteredAt: out.Time, UpdatedAt: out.Time, CredentialEndsAt: ends,
		Stream: out.Stream.String(), Version: out.Version, Position: position,
	}, nil
}

// checked is the kubeconfig that a cluster is registered with; none of one that an agent serves.
func checked(in model.RegisterCluster) (kubeconfig.Cluster, error) {
	if in.Access != events.AccessAgent {
		return kubeconfig.CheckCluster("/kubeconfig", []byte(in.Kubeconfig), in.Waive)
	}
	var v rule.Violations
	if in.Kubeconfig != "" {
		v.Addf("/kubeconfig", "cluster-access", "a cluster that an agent serves is registered without a kubeconfig")
	}
	if len(in.Waive) > 0 {
		v.Addf("/waive", "cluster-access", "without a kubeconfig there is nothing to waive")
	}
	return kubeconfig.Cluster{}, v.Err()
}

// ReplaceCredentials gives another kubeconfig for a cluster.
func (s *Service) ReplaceCredentials(
	ctx context.Context, who model.Caller, name string, in model.ReplaceCredentials,
) (model.Removed, error) {
	config, err := kubeconfig.CheckCluster("/kubeconfig", []byte(in.Kubeconfig), in.Waive)
	if err != nil {
		return model.Removed{}, err
	}
	_, position, err := s.write(ctx, who, name, func(ctx context.Context, u *unit.Work,
		now cluster.State,
	) (cluster.Command, error) {
		if !now.Registered {
			return nil, errs.New(errs.NotFound, "no cluster %q is registered", name)
		}
		credential, err := s.putCredential(ctx, u, name, config.Canonical)
		return cluster.ReplaceCredential{Credential: credential, Waived: config.Waived, Ends: config.Ends}, err
	})
	return model.Removed{Position: position}, err
}

// Configure changes how a cluster is treated, its labels and taints, and whether plans are made for it.
func (s *Service) Configure(
	ctx context.Context, who model.Caller, name string, in model.ConfigureCluster,
) (model.ConfiguredCluster, error) {
	out, position, err := s.write(ctx, who, name, func(context.Context, *unit.Work, cluster.State) (cluster.Command,
		error,
	) {
		settings := events.ClusterSettings{
			Mirror: in.Mirror, Drift: in.Drift, Optional: in.Optional, Events: in.Events, CopiedCSVs: in.CopiedCSVs,
		}
		return cluster.Configure{
			Settings: settings, Labels: in.Labels, Taints: in.Taints, Cordoned: in.Cordoned,
		}, nil
	})
	return model.ConfiguredCluster{
		Name: name, Settings: model.ClusterSettings(out.State.Settings.WithDefaults()), Labels: out.State.Labels,
		Taints: out.State.Taints, Cordoned: out.State.Cordoned,
		Version: out.Version, Position: position,
	}, err
}

// Remove lets go of a cluster and erases its credential.
func (s *Service) Remove(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	_, position, err := s.write(ctx, who, name, func(ctx context.Context, u *unit.Work,
		_ cluster.State,
	) (cluster.Command, error) {
		return cluster.Remove{}, s.Credentials.Erase(ctx, u.Tx, who.Tenant,
			events.Key(who.Tenant, events.KindCluster, name))
	})
	return model.Removed{Position: position}, err
}

// write decides on a cluster in a unit of its own.
func (s *Service) write(ctx context.Context, who model.Caller, name string,
	command func(ctx context.Context, u *unit.Work, now cluster.State) (cluster.Command, error),
) (decision, string, error) {
	return unit.Write(ctx, s.Units, who, span, func(ctx context.Context, u *unit.Work) (decision, error) {
		return unit.Decide(ctx, u, aggregate, cluster.Subject(name), cluster.State{Name: name},
			func(now cluster.State) (cluster.Command, error) { return command(ctx, u, now) })
	})
}

func (s *Service) putCredential(ctx context.Context, u *unit.Work, name string, config []byte) (string, error) {
	tenant := u.Caller.Tenant
	return s.Credentials.Put(ctx, u.Tx, tenant, events.Key(tenant, events.KindCluster, name), name, config)
}
