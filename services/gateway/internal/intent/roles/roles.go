// Package roles carries out intents about roles and bindings.
package roles

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var aggregate = unit.Aggregate[access.State, access.Command]{
	Kind: events.KindAccess, Subject: func(access.State) string { return access.Stream }, Decide: access.Decide,
	Evolve: unit.ByPayload(access.Evolve),
}

// Service carries out intents about roles and bindings.
type Service struct {
	Units  *unit.Runner
	Tokens *store.Tokens
}

// SetRole defines a role, or replaces all of it.
func (s *Service) SetRole(
	ctx context.Context, who model.Caller, name string, in model.RoleSpec,
) (model.AccessRole, error) {
	out, position, err := s.write(ctx, who, func(by access.By) access.Command {
		return access.SetRole{By: by, Name: name, Rules: in.Event()}
	})
	if err != nil {
		return model.AccessRole{}, err
	}
	return model.AccessRole{
		Name: name, Spec: model.RoleSpec{Rules: model.RulesOf(out.State.Roles[name].Rules)}, UpdatedAt: &out.Time,
		Position: position,
	}, nil
}

// DeleteRole ends a role that nobody has.
func (s *Service) DeleteRole(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	_, position, err := s.write(ctx, who, func(access.By) access.Command { return access.DeleteRole{Name: name} })
	return model.Removed{Position: position}, err
}

// SetBinding gives a role, or replaces all of a binding.
func (s *Service) SetBinding(
	ctx context.Context, who model.Caller, name string, in model.RoleBindingSpec,
) (model.RoleBinding, error) {
	out, position, err := s.write(ctx, who, func(by access.By) access.Command {
		return access.SetBinding{By: by, Binding: in.Event(name)}
	})
	if err != nil {
		return model.RoleBinding{}, err
	}
	b := out.State.Bindings[name]
	return model.RoleBinding{
		Name: name, Spec: model.BindingSpecOf(b.Role, b.Subjects, b.Scope), CreatedAt: out.Time, UpdatedAt: out.Time,
		Position: position,
	}, nil
}

// DeleteBinding takes a role away.
func (s *Service) DeleteBinding(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	_, position, err := s.write(ctx, who, func(by access.By) access.Command {
		return access.DeleteBinding{By: by, Name: name}
	})
	return model.Removed{Position: position}, err
}

// write decides on the roles and bindings of the tenant. The tokens of administrators are locked first: who revokes the
// last of them at the same moment waits, and then sees what was decided here.
func (s *Service) write(
	ctx context.Context, who model.Caller, command func(access.By) access.Command,
) (unit.Decision[access.State], string, error) {
	return unit.Write(ctx, s.Units, who, "intent access",
		func(ctx context.Context, u *unit.Work) (unit.Decision[access.State], error) {
			admins, err := s.Tokens.LockAdmins(ctx, u.Tx, who.Tenant)
			if err != nil {
				return unit.Decision[access.State]{}, err
			}
			c := command(access.By{Rights: who.Rights, Admins: admins})
			return unit.Decide(ctx, u, aggregate, access.Stream, access.State{},
				func(access.State) (access.Command, error) { return c, nil })
		})
}
