// Package subscriptions carries out intents about subscriptions: create, change, roll back, delete.
package subscriptions

import (
	"context"
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

const span = "intent subscription"

var aggregate = unit.Aggregate[subscription.State, subscription.Command]{
	Kind: events.KindSubscription, Subject: func(s subscription.State) string { return s.Name.Subject() },
	Decide: subscription.Decide, Evolve: unit.ByPayload(subscription.Evolve),
}

// Offers returns what a catalog offers to a cluster, by the subject of its stream.
type Offers interface {
	Offer(ctx context.Context, q pg.Querier, tenant, subject, cluster, pkg string) (catalog.Offer, error)
}

// Clusters returns what was last observed of a cluster; the zero value while nothing is known.
type Clusters interface {
	Observed(ctx context.Context, q pg.Querier, tenant, cluster string) (events.ClusterObserved, error)
}

// History returns what a subscription has installed, and what it had before.
type History interface {
	Past(ctx context.Context, q pg.Querier, tenant string, name subscription.Name) (model.Past, error)
}

// Service carries out intents about subscriptions.
type Service struct {
	Units    *unit.Runner
	Groups   *operatorgroups.Service
	Offers   Offers
	Clusters Clusters
	History  History
}

type decision = unit.Decision[subscription.State]

// Create subscribes.
func (s *Service) Create(
	ctx context.Context, who model.Caller, name subscription.Name, in model.ChangeSubscription, how model.Validate,
) (model.Subscription, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.Subscription, error) {
		return s.CreateIn(ctx, u, name, in, how)
	})
}

// CreateIn is Create in a unit of work.
func (s *Service) CreateIn(
	ctx context.Context, u *unit.Work, name subscription.Name, in model.ChangeSubscription, how model.Validate,
) (model.Subscription, error) {
	made, err := s.Groups.EnsureGlobal(ctx, u, name.Cluster, name.Namespace)
	if err != nil {
		return model.Subscription{}, err
	}
	var warnings []string
	out, err := decide(ctx, u, access.Create, name, func(now subscription.State) (subscription.Command, error) {
		if err := clusters.MustExist(ctx, u, name.Cluster); err != nil {
			return nil, err
		}
		// What is wrong in itself, or exists, is reported before what does not fit its catalog.
		c := subscription.Create{Name: name, Spec: specOf(in.SubscriptionSpec)}
		if _, err := subscription.Decide(now, c); err != nil {
			return nil, err
		}
		var err error
		if c.Metadata, err = bodies.CommitMetadata(ctx, u, events.KindSubscription, in.Metadata,
			now.Metadata); err != nil {
			return nil, err
		}
		c.Spec.Config, warnings, err = s.commitConfig(ctx, u, name, in.SubscriptionSpec, how, "")
		return c, err
	})
	if err != nil {
		return model.Subscription{}, err
	}
	if made != "" {
		warnings = append(warnings, made)
	}
	u.Warn(warnings...)
	return answer(out, in, warnings), nil
}

// Change replaces the intent of a subscription.
func (s *Service) Change(
	ctx context.Context, who model.Caller, name subscription.Name, in model.ChangeSubscription, how model.Validate,
) (model.Subscription, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.Subscription, error) {
		return s.ChangeIn(ctx, u, name, in, how)
	})
}

// ChangeIn is Change in a unit of work.
func (s *Service) ChangeIn(
	ctx context.Context, u *unit.Work, name subscription.Name, in model.ChangeSubscription, how model.Validate,
) (model.Subscription, error) {
	var warnings []string
	out, err := decide(ctx, u, access.Update, name, func(now subscription.State) (c subscription.Command, err error) {
		c, warnings, err = s.change(ctx, u, now, in, how)
		return c, err
	})
	if err != nil {
		return model.Subscription{}, err
	}
	u.Warn(warnings...)
	return answer(out, in, warnings), nil
}

// change is the command that replaces the intent of a subscription.
func (s *Service) change(
	ctx context.Context, u *unit.Work, now subscription.State, in model.ChangeSubscription, how model.Validate,
) (subscription.Command, []string, error) {
	c := subscription.Change{Spec: specOf(in.SubscriptionSpec)}
	// What is not committed to yet is taken for unchanged.
	first := subscription.Change{Spec: c.Spec, Metadata: now.Metadata}
	first.Spec.Config = now.Spec.Config
	if _, err := subscription.Decide(now, first); err != nil {
		return nil, nil, err
	}
	var warnings []string
	var err error
	if c.Metadata, err = bodies.CommitMetadata(ctx, u, events.KindSubscription, in.Metadata, now.Metadata); err != nil {
		return nil, nil, err
	}
	c.Spec.Config, warnings, err = s.commitConfig(ctx, u, now.Name, in.SubscriptionSpec, how, now.Spec.Config)
	return c, warnings, err
}

// Patch changes parts of the intent of a subscription: patch makes the new one of the one that holds.
func (s *Service) Patch(ctx context.Context, who model.Caller, name subscription.Name, how model.Validate,
	patch func(model.ChangeSubscription) (model.ChangeSubscription, error),
) (model.Subscription, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.Subscription, error) {
		var in model.ChangeSubscription
		var warnings []string
		out, err := decide(ctx, u, access.Update, name, func(now subscription.State) (subscription.Command, error) {
			if !now.Created { // the aggregate refuses
				return subscription.Change{}, nil
			}
			current, err := currentIntent(ctx, u, now)
			if err != nil {
				return nil, err
			}
			if in, err = patch(current); err != nil {
				return nil, err
			}
			var c subscription.Command
			c, warnings, err = s.change(ctx, u, now, in, how)
			return c, err
		})
		if err != nil {
			return model.Subscription{}, err
		}
		u.Warn(warnings...)
		return answer(out, in, warnings), nil
	})
}

// currentIntent is the intent of a subscription as it was given last, without what was erased of it.
func currentIntent(
	ctx context.Context, u *unit.Work, now subscription.State,
) (in model.ChangeSubscription, err error) {
	in.SubscriptionSpec = model.SubscriptionSpec{
		Package: now.Spec.Package, Channel: now.Spec.Channel, Catalog: now.Spec.Catalog,
		CatalogNamespace: now.Spec.CatalogNamespace, StartingCSV: now.Spec.StartingCSV, Approval: now.Spec.Approval,
	}
	if in.Metadata, err = bodies.Metadata(ctx, u, now.Metadata); err != nil || now.Spec.Config == "" {
		return in, err
	}
	in.Config, err = bodies.Read(ctx, u, now.Spec.Config)
	return in, err
}

// Rollback asks to go back to a version that was installed before.
func (s *Service) Rollback(
	ctx context.Context, who model.Caller, name subscription.Name, in model.RollBack,
) (model.Subscription, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.Subscription, error) {
		var asked subscription.Rollback
		out, err := decide(ctx, u, access.Rollback, name, func(now subscription.State) (subscription.Command, error) {
			if !now.Created || now.Owner != "" {
				return subscription.Rollback{}, nil // the aggregate refuses
			}
			past, err := s.History.Past(ctx, u.Tx, who.Tenant, name)
			if err != nil {
				return nil, err
			}
			asked, err = subscription.RollbackTo(name, past, in.To)
			return asked, err
		})
		a := answer(out, model.ChangeSubscription{
			Metadata: model.Metadata{Labels: out.State.Metadata.Labels},
			SubscriptionSpec: model.SubscriptionSpec{
				Package: out.State.Spec.Package, Channel: out.State.Spec.Channel, Catalog: out.State.Spec.Catalog,
				CatalogNamespace: out.State.Spec.CatalogNamespace, StartingCSV: out.State.Spec.StartingCSV,
			},
		}, nil)
		a.Status.InstalledCSV, a.Status.Rollback = asked.From, &model.Rollback{From: asked.From, To: asked.To}
		return a, err
	})
}

// Delete ends the intent; the installed operator stays (R-SUB-32).
func (s *Service) Delete(ctx context.Context, who model.Caller, name subscription.Name) (model.Removed, error) {
	_, position, err := unit.Write(ctx, s.Units, who, span, func(ctx context.Context, u *unit.Work) (struct{}, error) {
		return struct{}{}, s.DeleteIn(ctx, u, name)
	})
	return model.Removed{Position: position}, err
}

// DeleteIn is Delete in a unit of work.
func (*Service) DeleteIn(ctx context.Context, u *unit.Work, name subscription.Name) error {
	_, err := decide(ctx, u, access.Delete, name, func(subscription.State) (subscription.Command, error) {
		return subscription.Delete{}, nil
	})
	return err
}

func (s *Service) write(
	ctx context.Context, who model.Caller, do func(ctx context.Context, u *unit.Work) (model.Subscription, error),
) (model.Subscription, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span, do)
	out.Position = position
	return out, err
}

func decide(
	ctx context.Context, u *unit.Work, v access.Verb, name subscription.Name,
	command func(now subscription.State) (subscription.Command, error),
) (decision, error) {
	none := subscription.State{Name: name}
	return unit.Change(ctx, u, aggregate, name.Subject(), none,
		func(now subscription.State) (subscription.Command, error) {
			if now.Created && v != access.Create {
				if err := allowed(u.Caller, v, now); err != nil {
					return nil, err
				}
			}
			return command(now)
		})
}

// allowed asks for the catalog that the subscription names now: who may work with those of some catalogs only must not
// take another one over.
func allowed(who model.Caller, v access.Verb, now subscription.State) error {
	at := access.Target{
		Cluster: now.Name.Cluster, Namespace: now.Name.Namespace,
		Catalog: access.CatalogName(now.Spec.CatalogNamespace, now.Spec.Catalog),
	}
	switch {
	case who.May(v, access.Subscriptions, at):
		return nil
	case who.May(access.Get, access.Subscriptions, at):
		return access.Denied(v, access.Subscriptions, at)
	default:
		_, err := subscription.Decide(subscription.State{Name: now.Name},
			subscription.Delete{}) // as if it were not there
		return err
	}
}

func specOf(in model.SubscriptionSpec) events.SubscriptionSpec {
	return events.SubscriptionSpec{
		Package: in.Package, Channel: in.Channel, Catalog: in.Catalog, CatalogNamespace: in.CatalogNamespace,
		StartingCSV: in.StartingCSV, Approval: in.Approval,
	}
}

// commitConfig compares the subscription with its catalog and stores its configuration. What is only advised comes back
// as warnings.
func (s *Service) commitConfig(ctx context.Context, u *unit.Work, name subscription.Name, in model.SubscriptionSpec,
	how model.Validate, previous string) (
	commitment string, warnings []string, err error,
) {
	offer, warnings, err := s.checkOffer(ctx, u, name, in, how)
	if err != nil {
		return "", nil, err
	}
	body, err := subscription.CanonicalConfig(in.Config)
	if err != nil {
		return "", nil, err
	}
	lacking, err := s.adviseTokens(ctx, u, name, in, offer, body)
	if warnings = append(warnings, lacking...); err != nil || body == nil {
		return "", warnings, err
	}
	warnings = append(warnings, render.AdviseConfig(body)...)
	if how != model.ValidateLenient {
		advice, err := subscription.CheckIdentities(body, in.Approval, how)
		if err != nil {
			return "", nil, err
		}
		warnings = append(warnings, advice...)
	}
	commitment, err = bodies.Commit(ctx, u, store.KindSubscriptionConfig, body, u.Announced().BodyOr(previous))
	return commitment, warnings, err
}

// adviseTokens names what config.env lacks for the operator to get short-lived tokens of the cluster's cloud (R-TOK-1).
func (s *Service) adviseTokens(
	ctx context.Context, u *unit.Work, name subscription.Name, in model.SubscriptionSpec, offer catalog.Offer,
	config []byte,
) ([]string, error) {
	b, ok := subscription.FirstBundle(in, offer.Package)
	if !ok {
		return nil, nil
	}
	c, err := s.Clusters.Observed(ctx, u.Tx, u.Caller.Tenant, name.Cluster)
	if err != nil {
		return nil, err
	}
	missing, err := subscription.MissingTokens(c.TokenAuth, display.Read(b).Annotations, config)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf(
		"cluster %s gives operators short-lived tokens of %s, which %s can use: config.env lacks %s",
		name.Cluster, c.TokenAuth, b.Name, strings.Join(missing, ", "))}, nil
}

// checkOffer compares a subscription with its catalog, and returns what it compared with. Only a ready catalog is a
// reason to refuse, unless the caller wants it stricter or not at all. Without a ready one nothing could be compared,
// which is a warning.
func (s *Service) checkOffer(ctx context.Context, u *unit.Work, name subscription.Name, in model.SubscriptionSpec,
	how model.Validate) (
	offer catalog.Offer, warnings []string, err error,
) {
	if how == model.ValidateLenient {
		return offer, nil, nil
	}
	subject, known, err := findCatalog(ctx, u, name, in)
	if err != nil {
		return offer, nil, err
	}
	if known {
		if offer, err = s.Offers.Offer(ctx, u.Tx, u.Caller.Tenant, subject, name.Cluster, in.Package); err != nil {
			return offer, nil, err
		}
	}
	switch {
	case offer.Ready:
		return offer, nil, subscription.CheckOffer(in, offer)
	case how == model.ValidateStrict && !known:
		return offer, nil, errs.New(errs.Unprocessable, "no catalog %q is known, and validate=strict was asked for",
			subject).At("/catalog", "catalog-known")
	case how == model.ValidateStrict:
		return offer, nil, errs.New(errs.Unprocessable, "catalog %q is not ready, and validate=strict was asked for",
			subject).At("/catalog", "catalog-ready")
	case !known:
		return offer, []string{fmt.Sprintf(
			"no catalog %q is known: nothing is planned until there is one, and package %q could not be checked",
			subject, in.Package)}, nil
	default:
		return offer, []string{fmt.Sprintf(
			"catalog %q is not ready yet: nothing is planned until it is, and package %q could not be checked", subject,
			in.Package)}, nil
	}
}

// findCatalog names the catalog that a subscription means: the cluster's own one of that namespace, or the hub's. One
// that the subscription's namespace does not see is not known there, and the hub's of that name is not meant
// (R-CAT-85).
func findCatalog(
	ctx context.Context, u *unit.Work, name subscription.Name, in model.SubscriptionSpec,
) (subject string, known bool, err error) {
	candidates := []string{in.Catalog}
	if in.CatalogNamespace != "" {
		own := catalog.Name{Cluster: name.Cluster, Namespace: in.CatalogNamespace, Name: in.Catalog}
		candidates = []string{own.Subject(), in.Catalog}
	}
	for _, c := range candidates {
		found, err := u.Exists(ctx, events.KindCatalog, c)
		if err != nil {
			return "", false, err
		}
		if !found {
			continue
		}
		if c != in.Catalog && in.CatalogNamespace != name.Namespace {
			state, _, err := catalogs.Load(ctx, u, catalog.ParseSubject(c))
			if err != nil {
				return "", false, err
			}
			if state.Spec.Visibility.Namespace != "" && !state.Spec.Disabled {
				return c, false, nil
			}
		}
		return c, true, nil
	}
	return candidates[0], false, nil
}

func answer(out decision, in model.ChangeSubscription, warnings []string) model.Subscription {
	n := out.State.Name
	in.Approval = out.State.Spec.Approval
	return model.Subscription{
		Cluster: n.Cluster, Namespace: n.Namespace, Name: n.Name, Metadata: in.Kept(), Spec: in.SubscriptionSpec,
		Status:    model.SubscriptionStatus{Conditions: []model.Condition{}},
		CreatedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Warnings: warnings,
		Owner: out.State.Owner, Target: model.TargetOf(out.State.Target, out.State.Rollout),
	}
}
