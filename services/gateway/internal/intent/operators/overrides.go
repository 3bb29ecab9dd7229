package operators

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operator"
)

// overridden is an operator, and who set its overrides last.
type overridden struct {
	operator.State
	set events.Envelope
}

var overriding = unit.Aggregate[overridden, operator.Command]{
	Kind: aggregate.Kind, Subject: func(s overridden) string { return s.Name.Subject() },
	Decide: func(s overridden, c operator.Command) ([]events.Payload, error) { return operator.Decide(s.State, c) },
	Evolve: func(s overridden, r eventlog.Recorded) (overridden, error) {
		var err error
		if s.State, err = operator.Evolve(s.State, r.Payload); err != nil {
			return s, err
		}
		if _, ok := r.Payload.(events.OperatorConditionOverridden); ok {
			s.set = r.Envelope
		}
		return s, nil
	},
	Passing: aggregate.Passing,
}

// Override replaces what counts in the place of an operator's own conditions (R-COND-6).
func (s *Service) Override(
	ctx context.Context, who model.Caller, name operator.Name, in model.SetOverrides,
) (model.OperatorOverrides, error) {
	out, position, err := unit.Write(ctx, s.Units, who, "intent override operator conditions",
		func(ctx context.Context, u *unit.Work) (model.OperatorOverrides, error) {
			d, err := unit.Change(ctx, u, overriding, name.Subject(), overridden{State: operator.State{Name: name}},
				func(overridden) (operator.Command, error) { return operator.Override{Overrides: in.Events()}, nil })
			if err != nil {
				return model.OperatorOverrides{}, err
			}
			return model.OperatorOverrides{
				Cluster: name.Cluster, Namespace: name.Namespace, Name: name.Name,
				Overrides: model.OverridesOf(d.State.Overrides, d.State.set.Actor, d.State.set.Time),
				Stream:    d.Stream.String(), Version: d.Version,
			}, nil
		})
	out.Position = position
	return out, err
}

// RemoveOverrides lets the operator's own conditions count again.
func (s *Service) RemoveOverrides(
	ctx context.Context, who model.Caller, name operator.Name,
) (model.Removed, error) {
	_, position, err := unit.Write(ctx, s.Units, who, "intent remove overrides of operator conditions",
		func(ctx context.Context, u *unit.Work) (struct{}, error) {
			_, err := unit.Decide(ctx, u, aggregate, name.Subject(), operator.State{Name: name},
				func(operator.State) (operator.Command, error) { return operator.RemoveOverrides{}, nil })
			return struct{}{}, err
		})
	return model.Removed{Position: position}, err
}
