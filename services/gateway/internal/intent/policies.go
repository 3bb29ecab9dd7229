package intent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var policies = aggregate[approvalpolicy.State, approvalpolicy.Command]{
	events.KindPolicy, func(s approvalpolicy.State) string { return approvalpolicy.Subject(s.Name) }, approvalpolicy.Decide, fold(approvalpolicy.Evolve),
}

// SetApprovalPolicy makes a policy, or replaces all of it.
func (s *Service) SetApprovalPolicy(ctx context.Context, who model.Caller, name string, in model.SetApprovalPolicy) (model.ApprovalPolicy, error) {
	out, err := run(ctx, s, who, policies, approvalpolicy.Subject(name), approvalpolicy.State{Name: name},
		func(ctx context.Context, tx pgx.Tx, now approvalpolicy.State) (approvalpolicy.Command, error) {
			others, err := otherPolicies(ctx, tx, who.Tenant, name)
			if err != nil {
				return nil, err
			}
			noted, err := s.metadata(ctx, tx, who, events.KindPolicy, in.Metadata, now.Metadata)
			return approvalpolicy.Set{Spec: in.Event(), Metadata: noted, Others: others}, err
		})
	return model.ApprovalPolicy{
		Name: name, Metadata: in.Metadata.Kept(), Spec: model.PolicySpec(out.State.Spec), CreatedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}, err
}

// DeleteApprovalPolicy ends a policy.
func (s *Service) DeleteApprovalPolicy(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	out, err := run(ctx, s, who, policies, approvalpolicy.Subject(name), approvalpolicy.State{Name: name},
		func(context.Context, pgx.Tx, approvalpolicy.State) (approvalpolicy.Command, error) {
			return approvalpolicy.Delete{}, nil
		})
	return model.Removed{Position: out.Position}, err
}

// otherPolicies counts the policies of a tenant beside one, as the read model has them: those that are made in the same
// moment may exceed the bound by a few.
func otherPolicies(ctx context.Context, tx pgx.Tx, tenant, name string) (n int, err error) {
	err = tx.QueryRow(ctx, `select count(*) from gateway.approval_policies where tenant = $1 and name <> $2`, tenant, name).Scan(&n)
	return n, pg.Err(err)
}
