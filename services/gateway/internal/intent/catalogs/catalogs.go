// Package catalogs carries out intents about catalogs: add, change, refresh, remove, and which of the default catalogs
// of the installation are switched off.
package catalogs

import (
	"context"
	"log/slog"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const span = "intent catalog"

var aggregate = unit.Aggregate[catalog.State, catalog.Command]{
	Kind: events.KindCatalog, Subject: func(s catalog.State) string { return s.Name.Subject() },
	Decide: catalog.Decide, Evolve: evolve,
	Passing: []events.Type{events.CatalogRefreshRequested{}.EventType()},
}

// evolve keeps who added a catalog beside its state.
func evolve(s catalog.State, r eventlog.Recorded) (catalog.State, error) {
	s, err := catalog.Evolve(s, r.Payload)
	if _, added := r.Payload.(events.CatalogAdded); added {
		s.Configured = r.Actor == model.ActorConfiguration
	}
	return s, err
}

// Service carries out intents about catalogs.
type Service struct {
	Units    *unit.Runner
	Secrets  *store.CatalogSecrets
	Hooks    store.Hooks
	Hub      store.OperatorHub // which default catalogs are switched off
	Defaults []model.AddCatalog
	Tenants  *store.Tokens // names every tenant
	// GlobalNamespaces are those whose catalogs a whole cluster sees unless a catalog says otherwise.
	GlobalNamespaces []string
	Slog             *slog.Logger

	served sync.Map // tenants whose default catalogs are what the configuration says
}

type decision = unit.Decision[catalog.State]

// Load folds a catalog; found is false where there is none.
func Load(ctx context.Context, u *unit.Work, name catalog.Name) (now catalog.State, found bool, err error) {
	return unit.Load(ctx, u, aggregate, name.Subject(), catalog.State{Name: name})
}

// Add offers a catalog.
func (s *Service) Add(
	ctx context.Context, who model.Caller, in model.AddCatalog, how model.Validate,
) (model.Catalog, error) {
	name := catalog.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Name}
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.Catalog, error) {
		out, err := s.decide(ctx, u, name, func(now catalog.State) (catalog.Command, error) {
			if s.comesAsDefault(name) && !now.Added { // it is on its way
				return nil, refuseDefault(name, "added")
			}
			if name.Cluster != "" {
				if err := clusters.MustExist(ctx, u, name.Cluster); err != nil {
					return nil, err
				}
			}
			committed, err := bodies.CommitMetadata(ctx, u, events.KindCatalog, in.Metadata, now.Metadata)
			if err != nil {
				return nil, err
			}
			spec, err := s.spec(ctx, u, name, in.Intent(), how, "")
			return catalog.Add{Name: name, Spec: spec, Metadata: committed}, err
		})
		return s.answer(out, name, in.Intent()), err
	})
}

// Change replaces the intent of a catalog.
func (s *Service) Change(
	ctx context.Context, who model.Caller, name catalog.Name, in model.ChangeCatalog, how model.Validate,
) (model.Catalog, error) {
	return s.Patch(ctx, who, name, how, func(model.ChangeCatalog) (model.ChangeCatalog, error) { return in, nil })
}

// Patch makes the intent of a catalog anew from what it is, which patch is given.
func (s *Service) Patch(ctx context.Context, who model.Caller, name catalog.Name, how model.Validate,
	patch func(model.ChangeCatalog) (model.ChangeCatalog, error),
) (model.Catalog, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (model.Catalog, error) {
		return s.PatchIn(ctx, u, name, how, patch)
	})
}

// PatchIn is Patch in a unit of work.
func (s *Service) PatchIn(ctx context.Context, u *unit.Work, name catalog.Name, how model.Validate,
	patch func(model.ChangeCatalog) (model.ChangeCatalog, error),
) (model.Catalog, error) {
	var in model.ChangeCatalog
	out, err := s.decide(ctx, u, name, func(now catalog.State) (catalog.Command, error) {
		if !now.Added { // the aggregate refuses
			return catalog.Change{}, nil
		}
		current, err := currentIntent(ctx, u, now)
		if err != nil {
			return nil, err
		}
		if in, err = patch(current); err != nil {
			return nil, err
		}
		spec, err := s.spec(ctx, u, name, in, how, now.Spec.Settings)
		if err != nil {
			return nil, err
		}
		c := catalog.Change{Spec: spec}
		if c.Metadata, err = bodies.CommitMetadata(ctx, u, events.KindCatalog, in.Metadata, now.Metadata); err != nil {
			return nil, err
		}
		return c, s.guardDefault(ctx, u, now, c)
	})
	return s.answer(out, name, in), err
}

// currentIntent is the intent of a catalog as it was given last.
func currentIntent(ctx context.Context, u *unit.Work, now catalog.State) (model.ChangeCatalog, error) {
	in := model.ChangeCatalog{Priority: now.Spec.Priority, Disabled: now.Spec.Disabled}
	var err error
	if in.Metadata, err = bodies.Metadata(ctx, u, now.Metadata); err != nil {
		return in, err
	}
	body, err := bodies.Read(ctx, u, now.Spec.Settings)
	if err != nil {
		return in, err
	}
	var settings source.Settings
	if body != nil { // else it was erased, and a patch has to give all of it
		if settings, err = source.Decode(body); err != nil {
			return in, errs.Wrap(errs.Internal, err, "read the source of catalog %s", now.Name.Subject())
		}
	}
	in.Source, in.Display = model.SourceOf(source.Type(now.Spec.SourceType), settings)
	switch visibility := now.Spec.Visibility; {
	case visibility.Namespace != "":
		in.Visibility = catalog.VisibleInNamespace
	case visibility.Cluster != "":
		in.Visibility = catalog.VisibleInCluster
	}
	return in, nil
}

// Refresh asks the indexer to read the source now.
func (s *Service) Refresh(ctx context.Context, who model.Caller, name catalog.Name) (model.Removed, error) {
	_, position, err := unit.Write(ctx, s.Units, who, span, func(ctx context.Context, u *unit.Work) (struct{}, error) {
		return struct{}{}, s.RefreshIn(ctx, u, name, func(catalog.State) error { return nil })
	})
	return model.Removed{Position: position}, err
}

// RefreshIn is Refresh in a unit of work; check sees the catalog before.
func (s *Service) RefreshIn(
	ctx context.Context, u *unit.Work, name catalog.Name, check func(now catalog.State) error,
) error {
	_, err := s.decide(ctx, u, name, func(now catalog.State) (catalog.Command,
		error,
	) {
		return catalog.Refresh{}, check(now)
	})
	return err
}

// Remove stops offering a catalog, and deletes its hook.
func (s *Service) Remove(ctx context.Context, who model.Caller, name catalog.Name) (model.Removed, error) {
	_, position, err := unit.Write(ctx, s.Units, who, span, func(ctx context.Context, u *unit.Work) (struct{}, error) {
		return struct{}{}, s.RemoveIn(ctx, u, name)
	})
	return model.Removed{Position: position}, err
}

// RemoveIn is Remove in a unit of work.
func (s *Service) RemoveIn(ctx context.Context, u *unit.Work, name catalog.Name) error {
	_, err := s.decide(ctx, u, name, func(now catalog.State) (catalog.Command, error) {
		if now.Added && s.isDefault(now) {
			return nil, refuseDefault(name, "removed")
		}
		gone, err := s.Hooks.Delete(ctx, u.Tx, u.Caller.Tenant, name.Subject())
		if err == nil && gone {
			err = u.Append(ctx, store.HookStream(name.Subject()), events.HookRevoked{Catalog: name.Subject()})
		}
		return catalog.Remove{}, err
	})
	return err
}

func (s *Service) write(
	ctx context.Context, who model.Caller, do func(ctx context.Context, u *unit.Work) (model.Catalog, error),
) (model.Catalog, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span, do)
	out.Position = position
	return out, err
}

// decide decides on a catalog. The hub and a default catalog change together: they are always locked in this order.
func (s *Service) decide(
	ctx context.Context, u *unit.Work, name catalog.Name, command func(now catalog.State) (catalog.Command, error),
) (decision, error) {
	if s.comesAsDefault(name) {
		if _, err := s.Hub.Lock(ctx, u.Tx, u.Caller.Tenant, u.Now()); err != nil {
			return decision{}, err
		}
	}
	return unit.Change(ctx, u, aggregate, name.Subject(), catalog.State{Name: name}, command)
}

func (s *Service) answer(out decision, name catalog.Name, in model.ChangeCatalog) model.Catalog {
	visibility := out.State.Spec.Visibility
	return model.Catalog{
		Name: name.Name, Cluster: name.Cluster, Namespace: name.Namespace, Metadata: in.Kept(), Source: in.Source,
		Display: in.Display, Priority: out.State.Spec.Priority, Disabled: out.State.Spec.Disabled,
		Default: s.isDefault(out.State), Visibility: model.CatalogVisibility{
			Cluster: visibility.Cluster, Namespace: visibility.Namespace,
		},
		State: model.CatalogLoading, AddedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version,
	}
}
