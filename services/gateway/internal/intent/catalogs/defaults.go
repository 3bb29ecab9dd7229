package catalogs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorhub"
)

const (
	// defaultsInterval is how often the gateway checks for tenants that do not have their default catalogs yet: those
	// that were made since, and those where something failed.
	defaultsInterval = 5 * time.Second
	// ownName is the status of a default catalog whose name was taken before.
	ownName = "a catalog of your own has this name and stays as it is: remove it, and the default one comes with the " +
		"next start of the gateway or the next change of the hub"
)

// comesAsDefault reports whether the configuration names a catalog.
func (s *Service) comesAsDefault(name catalog.Name) bool {
	return name.Cluster == "" && slices.ContainsFunc(s.Defaults,
		func(d model.AddCatalog) bool { return d.Name == name.Name })
}

// isDefault reports whether a catalog is one that the configuration names and made: a tenant's own of the
// same name is none.
func (s *Service) isDefault(now catalog.State) bool {
	return now.Configured && s.comesAsDefault(now.Name)
}

func refuseDefault(name catalog.Name, what string) error {
	return errs.New(errs.Conflict,
		"catalog %q comes with this installation (setting default-catalogs) and cannot be %s: disable it, and add "+
			"one of your own under another name",
		name.Subject(), what).At("/name", "default-catalog")
}

// guardDefault refuses every change of a default catalog but switching it (R-CAT-110), and keeps what was
// said in the hub, so that a restart does not undo it. The unit's transaction holds the lock of the hub.
func (s *Service) guardDefault(ctx context.Context, u *unit.Work, now catalog.State, wanted catalog.Change) error {
	if !s.isDefault(now) {
		return nil
	}
	switched := now.Spec
	switched.Disabled = wanted.Spec.Disabled
	if switched != wanted.Spec || !now.Metadata.Equal(wanted.Metadata) {
		return refuseDefault(now.Name, "changed")
	}
	if now.Spec.Disabled == wanted.Spec.Disabled {
		return nil
	}
	tenant := u.Caller.Tenant
	hub, err := s.Hub.Lock(ctx, u.Tx, tenant, u.Now())
	if err != nil {
		return err
	}
	return s.Hub.Put(ctx, u.Tx, tenant, hub.With(now.Name.Name, wanted.Spec.Disabled), u.Now())
}

// KeepDefaults makes the default catalogs of every tenant what the configuration says, switched as people
// said: of each tenant once, as soon as it is known. It returns nil when ctx ends. What goes wrong for one
// tenant is logged and tried again; the others have theirs.
func (s *Service) KeepDefaults(ctx context.Context) error {
	if len(s.Defaults) == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(defaultsInterval)
	defer tick.Stop()
	for logged := ""; ; {
		if err := s.EnsureDefaults(ctx); err == nil {
			logged = ""
		} else if ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			s.Slog.ErrorContext(ctx, "default catalogs are not what the configuration says; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// EnsureDefaults is one round of KeepDefaults: it serves the tenants that were not served yet. A catalog that
// the configuration no longer names stays and becomes an ordinary one.
func (s *Service) EnsureDefaults(ctx context.Context) error {
	if len(s.Defaults) == 0 {
		return nil
	}
	tenants, err := s.Tenants.List(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, tenant := range tenants {
		if _, served := s.served.Load(tenant); served {
			continue
		}
		if err := s.ensureDefaults(ctx, tenant); err != nil {
			failed = append(failed, errs.Wrap(errs.KindOf(err), err, "tenant %s", tenant))
			continue
		}
		s.served.Store(tenant, true)
	}
	return errors.Join(failed...)
}

func (s *Service) ensureDefaults(ctx context.Context, tenant string) error {
	who := model.Caller{Tenant: tenant, Actor: model.ActorConfiguration}
	var own []string
	err := s.Units.Run(ctx, who, "intent default catalogs", func(ctx context.Context, u *unit.Work) error {
		hub, err := s.Hub.Lock(ctx, u.Tx, tenant, u.Now())
		if err != nil {
			return err
		}
		own, err = s.applyHub(ctx, u, hub)
		return err
	})
	if err == nil && len(own) > 0 {
		s.Slog.WarnContext(
			ctx, "a tenant has catalogs of its own under the names of default catalogs; they stay as they are",
			"tenant", tenant, "catalogs", own)
	}
	return err
}

// applyHub makes each default catalog of the caller's tenant what configuration and hub say, in the
// transaction that holds the lock of the hub. It returns the names that stand for a catalog of the tenant's own.
func (s *Service) applyHub(ctx context.Context, u *unit.Work, hub operatorhub.Hub) (own []string, err error) {
	for _, d := range s.Defaults {
		now, _, err := Load(ctx, u, catalog.Name{Name: d.Name})
		if err != nil {
			return nil, err
		}
		if now.Added && !now.Configured {
			own = append(own, d.Name)
			continue
		}
		by := u
		if !now.Added {
			by = u.As(model.ActorConfiguration)
		}
		_, err = unit.Decide(ctx, by, aggregate, d.Name, catalog.State{Name: now.Name}, s.toDefault(ctx, by, d, hub))
		if err != nil {
			return nil, errs.Wrap(errs.KindOf(err), err, "default catalog %s", d.Name)
		}
	}
	return own, nil
}

// toDefault is the command that makes a catalog what configuration and hub say.
func (s *Service) toDefault(
	ctx context.Context, u *unit.Work, d model.AddCatalog, hub operatorhub.Hub,
) func(now catalog.State) (catalog.Command, error) {
	return func(now catalog.State) (catalog.Command, error) {
		in := d.Intent()
		in.Disabled = hub.Disabled(d.Name)
		spec, err := s.spec(ctx, u, now.Name, in, model.ValidateLenient, now.Spec.Settings)
		if err != nil {
			return nil, err
		}
		committed, err := bodies.CommitMetadata(ctx, u, events.KindCatalog, in.Metadata, now.Metadata)
		if err != nil {
			return nil, err
		}
		if now.Added {
			return catalog.Change{Spec: spec, Metadata: committed}, nil
		}
		return catalog.Add{Name: now.Name, Spec: spec, Metadata: committed}, nil
	}
}

// GetHub returns which default catalogs are switched off.
func (s *Service) GetHub(ctx context.Context, who model.Caller) (model.OperatorHub, error) {
	var hub operatorhub.Hub
	var own []string
	err := s.Units.Once(ctx, who, func(u *unit.Work) (err error) {
		if hub, err = s.Hub.Get(ctx, u.Tx, who.Tenant); err != nil {
			return err
		}
		for _, d := range s.Defaults {
			now, _, err := Load(ctx, u, catalog.Name{Name: d.Name})
			if err != nil {
				return err
			}
			if now.Added && !now.Configured {
				own = append(own, d.Name)
			}
		}
		return nil
	})
	return s.hubAnswer(hub, own), err
}

// SetHub switches default catalogs on and off, all in one transaction. A name that none bears is kept
// and shown in the status: the catalog may come with the next version of the configuration.
func (s *Service) SetHub(ctx context.Context, who model.Caller, in model.SetOperatorHub) (model.OperatorHub, error) {
	hub := operatorhub.Hub{DisableAll: in.DisableAllDefaultSources, Sources: map[string]bool{}}
	for _, source := range in.Sources {
		if _, twice := hub.Sources[source.Name]; twice {
			return model.OperatorHub{}, errs.New(errs.Invalid, "source %q is named twice", source.Name).At("/sources",
				"unique")
		}
		hub.Sources[source.Name] = source.Disabled
	}
	var own []string
	err := s.Units.Run(ctx, who, "intent operator hub", func(ctx context.Context, u *unit.Work) error {
		if _, err := s.Hub.Lock(ctx, u.Tx, who.Tenant, u.Now()); err != nil {
			return err
		}
		if err := s.Hub.Put(ctx, u.Tx, who.Tenant, hub, u.Now()); err != nil {
			return err
		}
		var err error
		own, err = s.applyHub(ctx, u, hub)
		return err
	})
	if err != nil {
		return model.OperatorHub{}, err
	}
	return s.hubAnswer(hub, own), nil
}

func (s *Service) hubAnswer(hub operatorhub.Hub, own []string) model.OperatorHub {
	out := model.OperatorHub{
		DisableAllDefaultSources: hub.DisableAll, Sources: []model.HubSource{}, Status: []model.SourceStatus{},
	}
	for _, d := range s.Defaults {
		status := model.SourceStatus{Name: d.Name, Disabled: hub.Disabled(d.Name), Status: "Success"}
		if slices.Contains(own, d.Name) {
			status.Status, status.Message = "Error", ownName
		}
		out.Status = append(out.Status, status)
	}
	for _, name := range hub.Names() {
		out.Sources = append(out.Sources, model.HubSource{Name: name, Disabled: hub.Sources[name]})
		if !s.comesAsDefault(catalog.Name{Name: name}) {
			out.Status = append(out.Status, model.SourceStatus{
				Name: name, Disabled: hub.Sources[name], Status: "Error", Message: "no default catalog has this name",
			})
		}
	}
	return out
}
