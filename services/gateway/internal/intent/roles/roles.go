// Package roles carries out intents about roles and bindings.
package roles

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// state is the roles and bindings of a tenant, as a change of one of them sees them.
type state struct {
	access.State

	// version is that of the stream at which the one was defined last; 0 where it is not there. Being unexported, it is
	// no part of what a preview has a digest of.
	version int64
}

// aggregate is that of all roles and bindings, for a change of one.
func aggregate(one access.Object) unit.Aggregate[state, access.Command] {
	return unit.Aggregate[state, access.Command]{
		Kind: events.KindAccess, Subject: func(state) string { return access.Stream },
		Decide: func(s state, c access.Command) ([]events.Payload, error) { return access.Decide(s.State, c) },
		Evolve: func(s state, r eventlog.Recorded) (state, error) {
			var err error
			s.State, err = access.Evolve(s.State, r.Payload)
			if object, there := access.About(r.Payload); object == one {
				s.version = 0
				if there {
					s.version = r.Version
				}
			}
			return s, err
		},
		Version: func(s state) int64 { return s.version },
	}
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
	out, position, err := s.write(ctx, who, access.Object{Kind: access.Roles, Name: name},
		func(by access.By) access.Command { return access.SetRole{By: by, Name: name, Rules: in.Event()} })
	if err != nil {
		return model.AccessRole{}, err
	}
	return model.AccessRole{
		Name: name, Spec: model.RoleSpec{Rules: model.RulesOf(out.State.Roles[name].Rules)}, UpdatedAt: &out.Time,
		Stream: out.Stream.String(), Version: out.State.version, Position: position,
	}, nil
}

// DeleteRole ends a role that nobody has.
func (s *Service) DeleteRole(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	_, position, err := s.write(ctx, who, access.Object{Kind: access.Roles, Name: name},
		func(access.By) access.Command { return access.DeleteRole{Name: name} })
	return model.Removed{Position: position}, err
}

// SetBinding gives a role, or replaces all of a binding.
func (s *Service) SetBinding(
	ctx context.Context, who model.Caller, name string, in model.RoleBindingSpec,
) (model.RoleBinding, error) {
	out, position, err := s.write(ctx, who, access.Object{Kind: access.RoleBindings, Name: name},
		func(by access.By) access.Command { return access.SetBinding{By: by, Binding: in.Event(name)} })
	if err != nil {
		return model.RoleBinding{}, err
	}
	b := out.State.Bindings[name]
	return model.RoleBinding{
		Name: name, Spec: model.BindingSpecOf(b.Role, b.Subjects, b.Scope), CreatedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.State.version, Position: position,
	}, nil
}

// DeleteBinding takes a role away.
func (s *Service) DeleteBinding(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	_, position, err := s.write(ctx, who, access.Object{Kind: access.RoleBindings, Name: name},
		func(by access.By) access.Command { return access.DeleteBinding{By: by, Name: name} })
	return model.Removed{Position: position}, err
}

// write decides on the roles and bindings of the tenant, of which a change is about one. The tokens of administrators
// are locked first: who revokes the last of them at the same moment waits, and then sees what was decided here.
func (s *Service) write(
	ctx context.Context, who model.Caller, one access.Object, command func(access.By) access.Command,
) (unit.Decision[state], string, error) {
	return unit.Write(ctx, s.Units, who, "intent access",
		func(ctx context.Context, u *unit.Work) (unit.Decision[state], error) {
			admins, err := s.Tokens.LockAdmins(ctx, u.Tx, who.Tenant)
			if err != nil {
				return unit.Decision[state]{}, err
			}
			c := command(access.By{Rights: who.Rights, Admins: admins})
			return unit.Change(ctx, u, aggregate(one), access.Stream, state{},
				func(state) (access.Command, error) { return c, nil })
		})
}
