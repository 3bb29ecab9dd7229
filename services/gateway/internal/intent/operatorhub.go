package intent

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorhub"
)

// actorConfiguration stands where a person's id stands in what people decide.
const actorConfiguration = "configuration"

func (s *Service) isDefault(name catalog.Name) bool {
	_, ok := s.defaultCatalog(name)
	return ok
}

func (s *Service) defaultCatalog(name catalog.Name) (model.AddCatalog, bool) {
	if name.Cluster != "" {
		return model.AddCatalog{}, false
	}
	i := slices.IndexFunc(s.Defaults, func(d model.AddCatalog) bool { return d.Name == name.Name })
	if i < 0 {
		return model.AddCatalog{}, false
	}
	return s.Defaults[i], true
}

func refuseDefault(name catalog.Name, what string) error {
	return errs.New(errs.Conflict, "catalog %q comes with this installation (setting default-catalogs) and cannot be %s: disable it, and add one of your own under another name",
		name.Subject(), what).At("/name", "default-catalog")
}

// guardDefault refuses every change of a default catalog but switching it (R-CAT-110), and keeps what was
// said in the hub, so that a restart does not undo it.
func (s *Service) guardDefault(ctx context.Context, tx pgx.Tx, who model.Caller, name catalog.Name, now, wanted catalog.Spec) error {
	if !s.isDefault(name) {
		return nil
	}
	switched := now
	switched.Disabled = wanted.Disabled
	if switched != wanted {
		return refuseDefault(name, "changed")
	}
	if now.Disabled == wanted.Disabled {
		return nil
	}
	hub, err := s.Hub.Get(ctx, tx, who.Tenant)
	if err != nil {
		return err
	}
	return s.Hub.Put(ctx, tx, who.Tenant, hub.With(name.Name, wanted.Disabled), s.Now().UTC())
}

// EnsureDefaults makes the default catalogs of every tenant what the configuration says, switched as
// people said. A catalog that the configuration no longer names stays and becomes an ordinary one.
func (s *Service) EnsureDefaults(ctx context.Context) error {
	if len(s.Defaults) == 0 {
		return nil
	}
	tenants, err := s.Tenants.List(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		if err := s.applyHub(ctx, model.Caller{Tenant: tenant, Actor: actorConfiguration}); err != nil {
			return err
		}
	}
	return nil
}

// applyHub makes each default catalog of the caller's tenant what configuration and hub say.
func (s *Service) applyHub(ctx context.Context, who model.Caller) error {
	for _, d := range s.Defaults {
		name := catalog.Name{Name: d.Name}
		_, err := s.onCatalog(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now catalog.State) (catalog.Command, error) {
			hub, err := s.Hub.Get(ctx, tx, who.Tenant)
			if err != nil {
				return nil, err
			}
			in := d.Intent()
			in.Disabled = hub.Disabled(d.Name)
			spec, err := s.catalogSpec(ctx, tx, who, name, in, model.ValidateLenient, now.Spec.Settings)
			if err != nil {
				return nil, err
			}
			if now.Added {
				return catalog.Change{Spec: spec}, nil
			}
			return catalog.Add{Name: name, Spec: spec}, nil
		})
		if err != nil && !errs.Is(err, errs.AlreadyExists) { // another gateway was faster
			return errs.Wrap(errs.KindOf(err), err, "default catalog %s", d.Name)
		}
	}
	return nil
}

// OperatorHub says which default catalogs are switched off.
func (s *Service) OperatorHub(ctx context.Context, who model.Caller) (model.OperatorHub, error) {
	var hub operatorhub.Hub
	err := s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		hub, err = s.Hub.Get(ctx, tx, who.Tenant)
		return err
	})
	return s.hubAnswer(hub), err
}

// SetOperatorHub switches default catalogs on and off. A name that none bears is kept and told in the
// status: the catalog may come with the next version of the configuration.
func (s *Service) SetOperatorHub(ctx context.Context, who model.Caller, in model.SetOperatorHub) (model.OperatorHub, error) {
	hub := operatorhub.Hub{DisableAll: in.DisableAllDefaultSources, Sources: map[string]bool{}}
	for _, source := range in.Sources {
		if _, twice := hub.Sources[source.Name]; twice {
			return model.OperatorHub{}, errs.New(errs.Invalid, "source %q is named twice", source.Name).At("/sources", "unique")
		}
		hub.Sources[source.Name] = source.Disabled
	}
	err := s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error { return s.Hub.Put(ctx, tx, who.Tenant, hub, s.Now().UTC()) })
	if err != nil {
		return model.OperatorHub{}, err
	}
	if err := s.applyHub(ctx, who); err != nil {
		return model.OperatorHub{}, err
	}
	return s.hubAnswer(hub), nil
}

func (s *Service) hubAnswer(hub operatorhub.Hub) model.OperatorHub {
	out := model.OperatorHub{DisableAllDefaultSources: hub.DisableAll, Sources: []model.HubSource{}, Status: []model.SourceStatus{}}
	for _, d := range s.Defaults {
		out.Status = append(out.Status, model.SourceStatus{Name: d.Name, Disabled: hub.Disabled(d.Name), Status: "Success"})
	}
	for _, name := range hub.Names() {
		out.Sources = append(out.Sources, model.HubSource{Name: name, Disabled: hub.Sources[name]})
		if !s.isDefault(catalog.Name{Name: name}) {
			out.Status = append(out.Status, model.SourceStatus{
				Name: name, Disabled: hub.Sources[name], Status: "Error", Message: "no default catalog has this name",
			})
		}
	}
	return out
}
