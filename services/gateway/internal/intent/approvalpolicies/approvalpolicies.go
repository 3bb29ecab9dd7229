// Package approvalpolicies carries out intents about approval policies.
package approvalpolicies

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const span = "intent policy"

var aggregate = unit.Aggregate[approvalpolicy.State, approvalpolicy.Command]{
	Kind: events.KindPolicy, Subject: func(s approvalpolicy.State) string { return approvalpolicy.Subject(s.Name) },
	Decide: approvalpolicy.Decide, Evolve: unit.ByPayload(approvalpolicy.Evolve),
}

// Service carries out intents about approval policies.
type Service struct{ Units *unit.Runner }

// Set makes a policy, or replaces all of it.
func (s *Service) Set(
	ctx context.Context, who model.Caller, name string, in model.SetApprovalPolicy,
) (model.ApprovalPolicy, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span,
		func(ctx context.Context, u *unit.Work) (model.ApprovalPolicy, error) {
			return s.SetIn(ctx, u, name, in)
		})
	out.Position = position
	return out, err
}

// SetIn is Set in a unit of work.
func (*Service) SetIn(
	ctx context.Context, u *unit.Work, name string, in model.SetApprovalPolicy,
) (model.ApprovalPolicy, error) {
	out, err := unit.Change(ctx, u, aggregate, approvalpolicy.Subject(name), approvalpolicy.State{Name: name},
		func(now approvalpolicy.State) (approvalpolicy.Command, error) {
			others, err := countOthers(ctx, u, name)
			if err != nil {
				return nil, err
			}
			committed, err := bodies.CommitMetadata(ctx, u, events.KindPolicy, in.Metadata, now.Metadata)
			return approvalpolicy.Set{Spec: in.Event(), Metadata: committed, Others: others}, err
		})
	return model.ApprovalPolicy{
		Name: name, Metadata: in.Metadata.Kept(), Spec: model.PolicySpec(out.State.Spec), CreatedAt: out.Time,
		UpdatedAt: out.Time, Stream: out.Stream.String(), Version: out.Version,
	}, err
}

// Delete ends a policy.
func (s *Service) Delete(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span,
		func(ctx context.Context, u *unit.Work) (model.Removed, error) {
			return model.Removed{}, s.DeleteIn(ctx, u, name)
		})
	out.Position = position
	return out, err
}

// DeleteIn is Delete in a unit of work.
func (*Service) DeleteIn(ctx context.Context, u *unit.Work, name string) error {
	_, err := unit.Decide(ctx, u, aggregate, approvalpolicy.Subject(name), approvalpolicy.State{Name: name},
		func(approvalpolicy.State) (approvalpolicy.Command, error) { return approvalpolicy.Delete{}, nil })
	return err
}

// countOthers counts the policies of a tenant beside one, as the read model has them: those that are made in the same
// moment may exceed the bound by a few.
func countOthers(ctx context.Context, u *unit.Work, name string) (n int, err error) {
	err = u.Tx.QueryRow(ctx, `select count(*) from approval_policies where tenant = $1 and name <> $2`,
		u.Caller.Tenant, name).Scan(&n)
	return n, pg.Err(err)
}
