package intent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var policies = aggregate[approvalpolicy.State, approvalpolicy.Command]{
	events.KindPolicy, func(s approvalpolicy.State) string { return approvalpolicy.Subject(s.Name) }, approvalpolicy.Decide, fold(approvalpolicy.Evolve),
}

// SetApprovalPolicy makes a policy, or replaces all of it.
func (s *Service) SetApprovalPolicy(ctx context.Context, who model.Caller, name string, in model.ApprovalPolicySpec) (model.ApprovalPolicy, error) {
	out, err := s.onPolicy(ctx, who, name, approvalpolicy.Set{Spec: in.Event()})
	return model.ApprovalPolicy{
		Name: name, Spec: model.PolicySpec(out.State.Spec), CreatedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}, err
}

// DeleteApprovalPolicy ends a policy.
func (s *Service) DeleteApprovalPolicy(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	out, err := s.onPolicy(ctx, who, name, approvalpolicy.Delete{})
	return model.Removed{Position: out.Position}, err
}

func (s *Service) onPolicy(ctx context.Context, who model.Caller, name string, c approvalpolicy.Command) (outcome[approvalpolicy.State], error) {
	return run(ctx, s, who, policies, approvalpolicy.Subject(name), approvalpolicy.State{Name: name},
		func(context.Context, pgx.Tx, approvalpolicy.State) (approvalpolicy.Command, error) { return c, nil })
}
