package intent

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operator"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// allCRDs stands for every definition of the operator's own.
const allCRDs = "*"

// Subscribers names the subscriptions of a namespace that want an operator.
type Subscribers interface {
	Subscribers(ctx context.Context, q pg.Querier, tenant, cluster, namespace, csv, packageName string) ([]string, error)
}

var operators = aggregate[operator.State, operator.Command]{
	events.KindCSV, func(s operator.State) string { return s.Name.Subject() }, operator.Decide, fold(operator.Evolve),
}

// RemovalPlan asks the cluster what uninstalling an operator would do (P14). Nothing is changed.
func (s *Service) RemovalPlan(ctx context.Context, who model.Caller, name operator.Name, crds []string) (model.RemovalPlan, error) {
	var p model.RemovalPlan
	subscribers, err := s.installed(ctx, who, name)
	if err != nil {
		return p, err
	}
	after, err := s.afterRemoval(ctx, who, name, subscribers)
	if err != nil {
		return p, err
	}
	p, err = s.askRemoval(ctx, who, name, crds, after.Dependants)
	p.Subscriptions = subscribers
	for _, d := range after.Dependants {
		p.Requires = append(p.Requires, model.RemovalDependant{Operator: d.String(), Requires: d.Requires})
	}
	next := model.PreviewScopeOf(after.After)
	p.Next = &next
	return p, err
}

// afterRemoval asks the resolver who depends on an operator, and what it would decide once that and its subscriptions are
// gone.
func (s *Service) afterRemoval(ctx context.Context, who model.Caller, name operator.Name, subscribers []string) (out previewapi.RemovalPreview, err error) {
	err = s.ask(ctx, previewapi.RemovalSubject, previewapi.RemovalQuestion{
		Tenant: who.Tenant, Cluster: name.Cluster, Namespace: name.Namespace, CSV: name.Name, Subscriptions: subscribers,
	}, &out)
	return out, err
}

// Uninstall asks that an operator is removed from its cluster (R-UNI-1). Subscriptions that want it are a conflict, since
// they would bring it back, or are deleted with the request.
func (s *Service) Uninstall(ctx context.Context, who model.Caller, name operator.Name, in model.Uninstall) (model.RemovalRequested, error) {
	wanted, err := s.installed(ctx, who, name) // nobody is asked about what is not there
	if err != nil {
		return model.RemovalRequested{}, err
	}
	after, err := s.afterRemoval(ctx, who, name, wanted)
	if err != nil {
		return model.RemovalRequested{}, err
	}
	if slices.Contains(in.CRDs, allCRDs) {
		p, err := s.askRemoval(ctx, who, name, in.CRDs, after.Dependants)
		if err != nil {
			return model.RemovalRequested{}, err
		}
		in.CRDs = append(named(in.CRDs), doomed(p)...)
	}
	var out outcome[operator.State]
	var subscribers []string
	u := &unit{}
	err = s.transact(ctx, who, "intent uninstall", func(ctx context.Context, tx pgx.Tx) (err error) {
		*u = unit{tx: tx}
		out, subscribers, err = s.uninstall(withUnit(ctx, u), who, name, in, after.Dependants)
		return err
	})
	if err != nil {
		return model.RemovalRequested{}, err
	}
	r := model.RemovalRequested{
		Removal: out.State.Removal.Removal, Cluster: name.Cluster, Namespace: name.Namespace, Name: name.Name, Plan: out.State.Removal.Plan,
		CRDs: out.State.Removal.CRDs, Subscriptions: subscribers, Stream: out.Stream.String(), Version: out.Version,
	}
	r.Position = s.position(ctx, last(u.appended))
	return r, nil
}

// uninstall appends the request and the ends of subscriptions in the unit of the context.
func (s *Service) uninstall(ctx context.Context, who model.Caller, name operator.Name, in model.Uninstall, dependants []previewapi.Dependant) (out outcome[operator.State], subscribers []string, err error) {
	out, err = run(ctx, s, who, operators, name.Subject(), operator.State{Name: name}, func(ctx context.Context, tx pgx.Tx, now operator.State) (operator.Command, error) {
		if now.Installed {
			if subscribers, err = s.subscribers(ctx, tx, who, name, now); err != nil {
				return nil, err
			}
		}
		if len(subscribers) > 0 && !in.Subscriptions {
			return nil, errs.New(errs.Conflict, "subscription %s wants operator %s and would bring it back: delete it, too, with subscriptions=delete, or before", strings.Join(subscribers, ", "), name.Name).
				At("query.subscriptions", "no-subscription-wants-it")
		}
		return operator.Uninstall{ID: s.NewID().String(), CRDs: in.CRDs, Plan: in.Plan, Dependants: dependants}, nil
	})
	if err != nil {
		return out, nil, err
	}
	for _, n := range subscribers {
		_, err := s.DeleteSubscription(ctx, who, subscription.Name{Cluster: name.Cluster, Namespace: name.Namespace, Name: n})
		if err != nil && !errs.Is(err, errs.NotFound) { // the list of them may be a moment old
			return out, nil, err
		}
	}
	return out, subscribers, nil
}

// last is what was appended last: its position covers all of a transaction.
func last(list []eventlog.Appended) eventlog.Appended { return list[len(list)-1] }

// installed refuses an operator that is not installed, and names the subscriptions that want it.
func (s *Service) installed(ctx context.Context, who model.Caller, name operator.Name) (subscribers []string, err error) {
	state := operator.State{Name: name}
	err = s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		head, err := s.Log.Latest(ctx, tx, who.Tenant, events.KindCSV, name.Subject())
		if err != nil {
			return err
		}
		if head.Exists() {
			if state, err = replay(ctx, s, tx, who.Tenant, operators, head, state); err != nil {
				return err
			}
		}
		if !state.Installed {
			_, err := operator.Decide(state, operator.Uninstall{})
			return err
		}
		subscribers, err = s.subscribers(ctx, tx, who, name, state)
		return err
	})
	return subscribers, err
}

func (s *Service) subscribers(ctx context.Context, tx pgx.Tx, who model.Caller, name operator.Name, state operator.State) ([]string, error) {
	return s.Subscribers.Subscribers(ctx, tx, who.Tenant, name.Cluster, name.Namespace, name.Name, state.Package)
}

// askRemoval has the installer ask the cluster, which adds to the dependants those that need an API by what it knows.
func (s *Service) askRemoval(ctx context.Context, who model.Caller, name operator.Name, crds []string, dependants []previewapi.Dependant) (model.RemovalPlan, error) {
	p := model.RemovalPlan{}
	q := protocol.RemovalQuestion{Namespace: name.Namespace, CSV: name.Name, CRDs: crds}
	for _, d := range dependants {
		q.Dependants = append(q.Dependants, d.String())
	}
	err := s.Asker.Ask(ctx, protocol.AskInstallerRemoval, protocol.OperatorQuestion{
		Tenant: who.Tenant, Cluster: name.Cluster,
		RemovalQuestion: q,
	}, &p)
	if errs.Is(err, errs.Unavailable) {
		s.Slog.WarnContext(ctx, "a cluster cannot be asked about a removal", "cluster", name.Cluster, "error", err)
		return p, errs.New(errs.Unavailable, "cluster %q cannot be asked at the moment what would be removed; nothing was changed: try again in a moment, or name the definitions and ask without a plan", name.Cluster)
	}
	return p, err
}

// named are the definitions that are given by name.
func named(crds []string) []string {
	return slices.DeleteFunc(slices.Clone(crds), func(n string) bool { return n == allCRDs })
}

// doomed are the definitions that a plan deletes.
func doomed(p model.RemovalPlan) []string {
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
