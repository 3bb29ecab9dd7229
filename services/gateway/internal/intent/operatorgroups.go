package intent

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

var groups = aggregate[operatorgroup.State, operatorgroup.Command]{
	events.KindOperatorGroup, func(s operatorgroup.State) string { return s.Name.Subject() }, operatorgroup.Decide, fold(operatorgroup.Evolve),
}

// CreateOperatorGroup makes an operator group.
func (s *Service) CreateOperatorGroup(ctx context.Context, who model.Caller, name operatorgroup.Name, in model.ChangeOperatorGroup) (model.OperatorGroup, error) {
	out, err := s.onGroup(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now operatorgroup.State) (operatorgroup.Command, error) {
		if err := s.clusterExists(ctx, tx, who.Tenant, name.Cluster); err != nil {
			return nil, err
		}
		noted, err := s.metadata(ctx, tx, who, events.KindOperatorGroup, in.Metadata, now.Metadata)
		return operatorgroup.Create{Name: name, Spec: events.OperatorGroupSpec(in.OperatorGroupSpec), Metadata: noted}, err
	})
	if err != nil {
		return model.OperatorGroup{}, err
	}
	return groupAnswer(out, in.Metadata), nil
}

// globalGroup is the name that OLM gives the group of its default global namespaces (R-OG-5).
const globalGroup = "global-operators"

// ensureGlobalGroup makes the operator group of a global namespace with the first subscription there, in its transaction
// and in the name of the configuration: OLM has such a group there from the start, so that people bring none. made says
// so; it is empty where the namespace is none of those, or has a group.
func (s *Service) ensureGlobalGroup(ctx context.Context, tx pgx.Tx, who model.Caller, clusterName, namespace string) (made string, err error) {
	if !slices.Contains(s.GlobalNamespaces, namespace) {
		return "", nil
	}
	has, err := s.Log.AnyOpen(ctx, tx, who.Tenant, events.KindOperatorGroup, clusterName+"/"+namespace+"/")
	if err != nil || has {
		return "", err
	}
	name := operatorgroup.Name{Cluster: clusterName, Namespace: namespace, Name: globalGroup}
	by := model.Caller{Tenant: who.Tenant, Actor: model.ActorConfiguration}
	_, _, err = attempt(ctx, s, tx, by, groups, name.Subject(), operatorgroup.State{Name: name},
		func(context.Context, pgx.Tx, operatorgroup.State) (operatorgroup.Command, error) {
			return operatorgroup.Create{Name: name}, nil
		})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("operator group %s was made in namespace %s of cluster %s, which had none: operators there serve all namespaces (setting global-namespaces of the gateway)",
		globalGroup, namespace, clusterName), nil
}

// ChangeOperatorGroup replaces the intent of an operator group.
func (s *Service) ChangeOperatorGroup(ctx context.Context, who model.Caller, name operatorgroup.Name, in model.ChangeOperatorGroup) (model.OperatorGroup, error) {
	out, err := s.onGroup(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now operatorgroup.State) (operatorgroup.Command, error) {
		noted, err := s.metadata(ctx, tx, who, events.KindOperatorGroup, in.Metadata, now.Metadata)
		return operatorgroup.Change{Spec: events.OperatorGroupSpec(in.OperatorGroupSpec), Metadata: noted}, err
	})
	if err != nil {
		return model.OperatorGroup{}, err
	}
	return groupAnswer(out, in.Metadata), nil
}

// DeleteOperatorGroup ends an operator group.
func (s *Service) DeleteOperatorGroup(ctx context.Context, who model.Caller, name operatorgroup.Name) (model.Removed, error) {
	out, err := s.onGroup(ctx, who, name, func(context.Context, pgx.Tx, operatorgroup.State) (operatorgroup.Command, error) {
		return operatorgroup.Delete{}, nil
	})
	return model.Removed{Position: out.Position}, err
}

func (s *Service) onGroup(ctx context.Context, who model.Caller, name operatorgroup.Name,
	command commander[operatorgroup.State, operatorgroup.Command],
) (outcome[operatorgroup.State], error) {
	return run(ctx, s, who, groups, name.Subject(), operatorgroup.State{Name: name}, command)
}

func groupAnswer(out outcome[operatorgroup.State], noted model.Metadata) model.OperatorGroup {
	n := out.State.Name
	return model.OperatorGroup{
		Cluster: n.Cluster, Namespace: n.Namespace, Name: n.Name, Metadata: noted.Kept(), Spec: model.OperatorGroupSpec(out.State.Spec),
		Targets: declared(out.State.Spec), ProvidedAPIs: append([]string{}, out.State.Spec.ProvidedAPIs...),
		Conditions: []model.Condition{}, CreatedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}
}

// declared are the targets as far as the intent alone says them.
func declared(s events.OperatorGroupSpec) []string {
	if s.Global() {
		return []string{""}
	}
	return append([]string{}, s.TargetNamespaces...)
}
