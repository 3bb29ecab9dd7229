// Package operators carries out intents about installed operators: what uninstalling one would do, and uninstalling it.
package operators

import (
	"context"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/internal/installerclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operator"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// allCRDs stands for every definition of the operator's own.
const allCRDs = "*"

// Subscribers names the subscriptions of a namespace that want an operator.
type Subscribers interface {
	Subscribers(ctx context.Context, q pg.Querier, tenant, cluster, namespace, csv, packageName string) ([]string,
		error)
}

var aggregate = unit.Aggregate[operator.State, operator.Command]{
	Kind: events.KindCSV, Subject: func(s operator.State) string { return s.Name.Subject() },
	Decide: operator.Decide, Evolve: unit.ByPayload(operator.Evolve),
	// A removal is refused or ends the stream: what overrides were set on stays as it is.
	Passing: []events.Type{events.CSVRemovalRequested{}.EventType()},
}

// Service carries out intents about installed operators.
type Service struct {
	Units         *unit.Runner
	Subscriptions *subscriptions.Service
	Subscribers   Subscribers
	Resolver      resolverclient.Client
	Installer     installerclient.Client
}

// RemovalPlan asks the cluster what uninstalling an operator would do (P14). Nothing is changed.
func (s *Service) RemovalPlan(
	ctx context.Context, who model.Caller, name operator.Name, crds []string,
) (model.RemovalPlan, error) {
	var p model.RemovalPlan
	subscribers, err := s.installed(ctx, who, name)
	if err != nil {
		return p, err
	}
	after, err := s.afterRemoval(ctx, who, name, subscribers)
	if err != nil {
		return p, err
	}
	p, err = s.removalPlan(ctx, who, name, crds, after.Dependants)
	p.Subscriptions = subscribers
	for _, d := range after.Dependants {
		p.Requires = append(p.Requires, model.RemovalDependant{Operator: d.String(), Requires: d.Requires})
	}
	next := model.PreviewScopeOf(after.After)
	p.Next = &next
	return p, err
}

// afterRemoval asks the resolver who depends on an operator, and what it would decide once that and its subscriptions
// are gone.
func (s *Service) afterRemoval(
	ctx context.Context, who model.Caller, name operator.Name, subscribers []string,
) (previewapi.RemovalPreview, error) {
	return s.Resolver.AfterRemoval(ctx, previewapi.RemovalQuestion{
		Tenant: who.Tenant, Cluster: name.Cluster, Namespace: name.Namespace, CSV: name.Name,
		Subscriptions: subscribers,
	})
}

// Uninstall asks that an operator is removed from its cluster (R-UNI-1). Subscriptions that want it are a conflict,
// since they would bring it back, or are deleted with the request.
func (s *Service) Uninstall(
	ctx context.Context, who model.Caller, name operator.Name, in model.Uninstall,
) (model.RemovalRequested, error) {
	wanted, err := s.installed(ctx, who, name) // what is not installed is refused before others are asked
	if err != nil {
		return model.RemovalRequested{}, err
	}
	after, err := s.afterRemoval(ctx, who, name, wanted)
	if err != nil {
		return model.RemovalRequested{}, err
	}
	if slices.Contains(in.CRDs, allCRDs) {
		p, err := s.removalPlan(ctx, who, name, in.CRDs, after.Dependants)
		if err != nil {
			return model.RemovalRequested{}, err
		}
		in.CRDs = append(named(in.CRDs), deleted(p)...)
	}
	out, position, err := unit.Write(ctx, s.Units, who, "intent uninstall",
		func(ctx context.Context, u *unit.Work) (model.RemovalRequested, error) {
			return s.uninstallIn(ctx, u, name, in, after.Dependants)
		})
	out.Position = position
	return out, err
}

// uninstallIn appends the request and deletes the subscriptions in one unit of work.
func (s *Service) uninstallIn(
	ctx context.Context, u *unit.Work, name operator.Name, in model.Uninstall, dependants []previewapi.Dependant,
) (model.RemovalRequested, error) {
	var subscribers []string
	out, err := unit.Decide(ctx, u, aggregate, name.Subject(), operator.State{Name: name},
		func(now operator.State) (operator.Command, error) {
			if now.Installed {
				var err error
				if subscribers, err = s.subscribers(ctx, u, now); err != nil {
					return nil, err
				}
			}
			if len(subscribers) > 0 && !in.Subscriptions {
				return nil, errs.New(errs.Conflict,
					"subscription %s wants operator %s and would bring it back: delete it, too, with "+
						"subscriptions=delete, or before",
					strings.Join(subscribers, ", "), name.Name).At("query.subscriptions", "no-subscription-wants-it")
			}
			return operator.Uninstall{ID: u.NewID().String(), CRDs: in.CRDs, Plan: in.Plan, Dependants: dependants}, nil
		})
	if err != nil {
		return model.RemovalRequested{}, err
	}
	for _, n := range subscribers {
		err := s.Subscriptions.DeleteIn(ctx, u, subscription.Name{
			Cluster: name.Cluster, Namespace: name.Namespace, Name: n,
		})
		if err != nil && !errs.Is(err, errs.NotFound) { // the list of them may be a moment old
			return model.RemovalRequested{}, err
		}
	}
	return model.RemovalRequested{
		Removal: out.State.Removal.Removal, Cluster: name.Cluster, Namespace: name.Namespace, Name: name.Name,
		Plan: out.State.Removal.Plan, CRDs: out.State.Removal.CRDs, Subscriptions: subscribers,
		Stream: out.Stream.String(), Version: out.Version,
	}, nil
}

// installed refuses an operator that is not installed, and names the subscriptions that want it.
func (s *Service) installed(
	ctx context.Context, who model.Caller, name operator.Name,
) (subscribers []string, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		state, _, err := unit.Load(ctx, u, aggregate, name.Subject(), operator.State{Name: name})
		if err != nil {
			return err
		}
		if !state.Installed {
			_, err := operator.Decide(state, operator.Uninstall{})
			return err
		}
		subscribers, err = s.subscribers(ctx, u, state)
		return err
	})
	return subscribers, err
}

func (s *Service) subscribers(ctx context.Context, u *unit.Work, o operator.State) ([]string, error) {
	n := o.Name
	return s.Subscribers.Subscribers(ctx, u.Tx, u.Caller.Tenant, n.Cluster, n.Namespace, n.Name, o.Package)
}

// removalPlan asks the cluster what uninstalling would do there.
func (s *Service) removalPlan(
	ctx context.Context, who model.Caller, name operator.Name, crds []string, dependants []previewapi.Dependant,
) (model.RemovalPlan, error) {
	q := protocol.RemovalQuestion{Namespace: name.Namespace, CSV: name.Name, CRDs: crds}
	for _, d := range dependants {
		q.Dependants = append(q.Dependants, d.String())
	}
	return s.Installer.RemovalPlan(ctx, who, name.Cluster, q)
}

// named are the definitions that are given by name.
func named(crds []string) []string {
	return slices.DeleteFunc(slices.Clone(crds), func(n string) bool { return n == allCRDs })
}

// deleted are the definitions that a plan deletes.
func deleted(p model.RemovalPlan) []string {
	var out []string
	for _, step := range p.Steps {
		if step.Action != protocol.RemovalCRDs {
			continue
		}
		for _, o := range step.Objects {
			out = append(out, o.Name)
		}
	}
	return out
}
