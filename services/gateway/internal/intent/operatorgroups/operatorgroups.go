// Package operatorgroups carries out intents about operator groups.
package operatorgroups

import (
	"context"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

const span = "intent operatorgroup"

var aggregate = unit.Aggregate[operatorgroup.State, operatorgroup.Command]{
	Kind: events.KindOperatorGroup, Subject: func(s operatorgroup.State) string { return s.Name.Subject() },
	Decide: operatorgroup.Decide, Evolve: unit.ByPayload(operatorgroup.Evolve),
}

// Service carries out intents about operator groups.
type Service struct {
	Units *unit.Runner
	// GlobalNamespaces are those in which operators serve all namespaces unless a group says otherwise.
	GlobalNamespaces []string
}

// Create makes an operator group.
func (s *Service) Create(
	ctx context.Context, who model.Caller, name operatorgroup.Name, in model.ChangeOperatorGroup,
) (model.OperatorGroup, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.OperatorGroup, error) {
		return s.CreateIn(ctx, u, name, in)
	})
}

// CreateIn is Create in a unit of work.
func (*Service) CreateIn(
	ctx context.Context, u *unit.Work, name operatorgroup.Name, in model.ChangeOperatorGroup,
) (model.OperatorGroup, error) {
	return decide(ctx, u, name, in.Metadata, func(now operatorgroup.State) (operatorgroup.Command, error) {
		if err := clusters.MustExist(ctx, u, name.Cluster); err != nil {
			return nil, err
		}
		if err := mayLabel(u.Caller, name, now.Spec, in.OperatorGroupSpec); err != nil {
			return nil, err
		}
		committed, err := bodies.CommitMetadata(ctx, u, events.KindOperatorGroup, in.Metadata, now.Metadata)
		return operatorgroup.Create{
			Name: name, Spec: events.OperatorGroupSpec(in.OperatorGroupSpec),
			Metadata: committed,
		}, err
	})
}

// mayLabel wants of who changes the labels or annotations of a namespace, or by whose account they are written, what
// approvers of plans there may: they lift what a namespace forbids its pods, and are written without a plan (ADR 0063).
func mayLabel(
	who model.Caller, name operatorgroup.Name, before events.OperatorGroupSpec, next model.OperatorGroupSpec,
) error {
	at := access.Target{Cluster: name.Cluster, Namespace: name.Namespace}
	if !operatorgroup.WritesNamespace(before, events.OperatorGroupSpec(next)) ||
		who.May(access.Approve, access.InstallPlans, at) {
		return nil
	}
	return access.Denied(access.Approve, access.InstallPlans, at)
}

// globalGroup is the name that OLM gives the group of its default global namespaces (R-OG-5).
const globalGroup = "global-operators"

// EnsureGlobal makes the operator group of a global namespace with the first subscription there, in its transaction and
// in the name of the configuration: OLM has such a group there from the start, so people do not bring one. made is a
// sentence about it; it is empty where the namespace is none of those, or has a group.
func (s *Service) EnsureGlobal(
	ctx context.Context, u *unit.Work, clusterName, namespace string,
) (made string, err error) {
	if !slices.Contains(s.GlobalNamespaces, namespace) {
		return "", nil
	}
	has, err := u.AnyOpen(ctx, events.KindOperatorGroup, clusterName+"/"+namespace+"/")
	if err != nil || has {
		return "", err
	}
	name := operatorgroup.Name{Cluster: clusterName, Namespace: namespace, Name: globalGroup}
	_, err = decide(ctx, u.As(model.ActorConfiguration), name, model.Metadata{},
		func(operatorgroup.State) (operatorgroup.Command, error) {
			return operatorgroup.Create{Name: name}, nil
		})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"operator group %s was made in namespace %s of cluster %s, which had none: operators there serve all "+
			"namespaces (setting global-namespaces of the gateway)",
		globalGroup, namespace, clusterName), nil
}

// Change replaces the intent of an operator group.
func (s *Service) Change(
	ctx context.Context, who model.Caller, name operatorgroup.Name, in model.ChangeOperatorGroup,
) (model.OperatorGroup, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.OperatorGroup, error) {
		return s.ChangeIn(ctx, u, name, in)
	})
}

// ChangeIn is Change in a unit of work.
func (*Service) ChangeIn(
	ctx context.Context, u *unit.Work, name operatorgroup.Name, in model.ChangeOperatorGroup,
) (model.OperatorGroup, error) {
	return decide(ctx, u, name, in.Metadata, func(now operatorgroup.State) (operatorgroup.Command, error) {
		if err := mayLabel(u.Caller, name, now.Spec, in.OperatorGroupSpec); err != nil {
			return nil, err
		}
		committed, err := bodies.CommitMetadata(ctx, u, events.KindOperatorGroup, in.Metadata, now.Metadata)
		return operatorgroup.Change{Spec: events.OperatorGroupSpec(in.OperatorGroupSpec), Metadata: committed}, err
	})
}

// Delete ends an operator group.
func (s *Service) Delete(ctx context.Context, who model.Caller, name operatorgroup.Name) (model.Removed, error) {
	_, position, err := unit.Write(ctx, s.Units, who, span, func(ctx context.Context, u *unit.Work) (struct{}, error) {
		return struct{}{}, s.DeleteIn(ctx, u, name)
	})
	return model.Removed{Position: position}, err
}

// DeleteIn is Delete in a unit of work.
func (*Service) DeleteIn(ctx context.Context, u *unit.Work, name operatorgroup.Name) error {
	_, err := decide(ctx, u, name, model.Metadata{}, func(operatorgroup.State) (operatorgroup.Command, error) {
		return operatorgroup.Delete{}, nil
	})
	return err
}

func (s *Service) write(
	ctx context.Context, who model.Caller, do func(ctx context.Context, u *unit.Work) (model.OperatorGroup, error),
) (model.OperatorGroup, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span, do)
	out.Position = position
	return out, err
}

// decide decides on an operator group and answers with what it is from now on.
func decide(ctx context.Context, u *unit.Work, name operatorgroup.Name, given model.Metadata,
	command func(now operatorgroup.State) (operatorgroup.Command, error),
) (model.OperatorGroup, error) {
	out, err := unit.Change(ctx, u, aggregate, name.Subject(), operatorgroup.State{Name: name}, command)
	if err != nil {
		return model.OperatorGroup{}, err
	}
	spec := out.State.Spec
	return model.OperatorGroup{
		Cluster: name.Cluster, Namespace: name.Namespace, Name: name.Name, Metadata: given.Kept(),
		Spec: model.OperatorGroupSpec(spec), Targets: operatorgroup.DeclaredTargets(spec),
		ProvidedAPIs: append([]string{}, spec.ProvidedAPIs...), Conditions: []model.Condition{}, CreatedAt: out.Time,
		UpdatedAt: out.Time, Stream: out.Stream.String(), Version: out.Version,
	}, nil
}
