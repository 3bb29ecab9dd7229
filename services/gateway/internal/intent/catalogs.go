package intent

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/catalogsecret"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// kindCatalogSource is the kind of body that holds a source's settings.
const kindCatalogSource = "catalog-source"

var catalogs = aggregate[catalog.State, catalog.Command]{
	events.KindCatalog, func(s catalog.State) string { return s.Name.Subject() }, catalog.Decide, evolveCatalog,
}

// evolveCatalog remembers who added a catalog, beside what it is.
func evolveCatalog(s catalog.State, r eventlog.Recorded) (catalog.State, error) {
	s, err := catalog.Evolve(s, r.Payload)
	if _, added := r.Payload.(events.CatalogAdded); added {
		s.Configured = r.Actor == model.ActorConfiguration
	}
	return s, err
}

// AddCatalog offers a catalog.
func (s *Service) AddCatalog(ctx context.Context, who model.Caller, in model.AddCatalog, how model.Validate) (model.Catalog, error) {
	name := catalog.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Name}
	out, err := s.onCatalog(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now catalog.State) (catalog.Command, error) {
		if s.comesAsDefault(name) && !now.Added { // it is on its way
			return nil, refuseDefault(name, "added")
		}
		if name.Cluster != "" {
			if err := s.clusterExists(ctx, tx, who.Tenant, name.Cluster); err != nil {
				return nil, err
			}
		}
		noted, err := s.metadata(ctx, tx, who, events.KindCatalog, in.Metadata, now.Metadata)
		if err != nil {
			return nil, err
		}
		spec, err := s.catalogSpec(ctx, tx, who, name, in.Intent(), how, "")
		return catalog.Add{Name: name, Spec: spec, Metadata: noted}, err
	})
	if err != nil {
		return model.Catalog{}, err
	}
	return s.catalogAnswer(out, name, in.Intent()), nil
}

// ChangeCatalog replaces the intent of a catalog.
func (s *Service) ChangeCatalog(ctx context.Context, who model.Caller, name catalog.Name, in model.ChangeCatalog, how model.Validate) (model.Catalog, error) {
	return s.PatchCatalog(ctx, who, name, how, func(model.ChangeCatalog) (model.ChangeCatalog, error) { return in, nil })
}

// PatchCatalog makes the intent of a catalog anew from what it is, which patch is given.
func (s *Service) PatchCatalog(ctx context.Context, who model.Caller, name catalog.Name, how model.Validate,
	patch func(model.ChangeCatalog) (model.ChangeCatalog, error),
) (model.Catalog, error) {
	var in model.ChangeCatalog
	out, err := s.onCatalog(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now catalog.State) (catalog.Command, error) {
		if !now.Added { // the aggregate's to say
			return catalog.Change{}, nil
		}
		current, err := s.currentIntent(ctx, tx, who, now)
		if err != nil {
			return nil, err
		}
		if in, err = patch(current); err != nil {
			return nil, err
		}
		spec, err := s.catalogSpec(ctx, tx, who, name, in, how, now.Spec.Settings)
		if err != nil {
			return nil, err
		}
		c := catalog.Change{Spec: spec}
		if c.Metadata, err = s.metadata(ctx, tx, who, events.KindCatalog, in.Metadata, now.Metadata); err != nil {
			return nil, err
		}
		return c, s.guardDefault(ctx, tx, who, now, c)
	})
	if err != nil {
		return model.Catalog{}, err
	}
	return s.catalogAnswer(out, name, in), nil
}

// currentIntent is what people last said of a catalog.
func (s *Service) currentIntent(ctx context.Context, tx pgx.Tx, who model.Caller, now catalog.State) (model.ChangeCatalog, error) {
	in := model.ChangeCatalog{Priority: now.Spec.Priority, Disabled: now.Spec.Disabled}
	var err error
	if in.Metadata, err = s.currentMetadata(ctx, tx, who, now.Metadata); err != nil {
		return in, err
	}
	body, err := s.Bodies.Body(ctx, tx, who.Tenant, now.Spec.Settings)
	if err != nil {
		return in, err
	}
	var settings source.Settings
	if body != nil { // else it was erased, and a patch says all of it anew
		if settings, err = source.Decode(body); err != nil {
			return in, errs.Wrap(errs.Internal, err, "read the source of catalog %s", now.Name.Subject())
		}
	}
	in.Source, in.Display = model.SourceOf(source.Type(now.Spec.SourceType), settings)
	switch vis := now.Spec.Visibility; {
	case vis.Namespace != "":
		in.Visibility = visibleInNamespace
	case vis.Cluster != "":
		in.Visibility = visibleInCluster
	}
	return in, nil
}

// RefreshCatalog asks the indexer to look at the source now.
func (s *Service) RefreshCatalog(ctx context.Context, who model.Caller, name catalog.Name) (model.Removed, error) {
	out, err := s.onCatalog(ctx, who, name, func(context.Context, pgx.Tx, catalog.State) (catalog.Command, error) {
		return catalog.Refresh{}, nil
	})
	return model.Removed{Position: out.Position}, err
}

// RemoveCatalog stops offering a catalog, and ends its hook.
func (s *Service) RemoveCatalog(ctx context.Context, who model.Caller, name catalog.Name) (model.Removed, error) {
	out, err := s.onCatalog(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now catalog.State) (catalog.Command, error) {
		if now.Added && s.isDefault(now) {
			return nil, refuseDefault(name, "removed")
		}
		return catalog.Remove{}, s.Hooks.Delete(ctx, tx, who.Tenant, name.Subject())
	})
	return model.Removed{Position: out.Position}, err
}

func (s *Service) onCatalog(ctx context.Context, who model.Caller, name catalog.Name,
	command commander[catalog.State, catalog.Command],
) (outcome[catalog.State], error) {
	var out outcome[catalog.State]
	var appended eventlog.Appended
	err := s.transact(ctx, who, "intent "+string(catalogs.kind), func(ctx context.Context, tx pgx.Tx) (err error) {
		if s.comesAsDefault(name) {
			// What the hub says and what the catalog says change together, always in this order.
			if _, err := s.Hub.Lock(ctx, tx, who.Tenant, s.Now().UTC()); err != nil {
				return err
			}
		}
		out, appended, err = attempt(ctx, s, tx, who, catalogs, name.Subject(), catalog.State{Name: name}, command)
		return err
	})
	if err == nil {
		out.Position = s.position(ctx, appended)
	}
	return out, err
}

// catalogSpec checks the source and stores its settings.
func (s *Service) catalogSpec(ctx context.Context, tx pgx.Tx, who model.Caller, name catalog.Name,
	in model.ChangeCatalog, how model.Validate, previous string,
) (catalog.Spec, error) {
	settings := in.Source.Settings(in.Display)
	spec := catalog.Spec{
		SourceType: string(in.Source.Type), Priority: in.Priority, Disabled: in.Disabled, Templated: source.Templated(settings),
	}
	spec.Visibility = s.visibility(name, in.Visibility)
	if err := checkSource(in.Source.Type, settings); err != nil {
		return spec, err
	}
	if settings.Path != "" { // two ways to write one path are no change
		settings.Path = path.Clean(settings.Path)
	}
	if err := s.checkSecrets(ctx, tx, who, in.Source, how); err != nil {
		return spec, err
	}
	body, err := json.Marshal(settings)
	if err != nil {
		return spec, errs.Wrap(errs.Internal, err, "encode the source of catalog %s", name.Subject())
	}
	spec.Settings, err = s.Bodies.Commit(ctx, tx, who.Tenant, kindCatalogSource, body, announced(ctx).BodyOr(previous))
	return spec, err
}

// What people may say of who sees a catalog of a cluster.
const (
	visibleInCluster   = "cluster"
	visibleInNamespace = "namespace"
)

// visibility says who sees a catalog (R-CAT-85):
//
//	a catalog of the hub                                  all clusters
//	of a cluster, and somebody says cluster or namespace  that
//	of a cluster, in a global catalog namespace           the cluster
//	of a cluster, in any other namespace                  that namespace
func (s *Service) visibility(name catalog.Name, said string) events.CatalogVisibility {
	v := events.CatalogVisibility{Cluster: name.Cluster}
	if said == visibleInNamespace || said == "" && !slices.Contains(s.GlobalCatalogNamespaces, name.Namespace) {
		v.Namespace = name.Namespace // of a catalog of the hub there is none
	}
	return v
}

// checkSource applies the rules that indexer and CLI use, too.
func checkSource(t source.Type, settings source.Settings) error {
	var v rule.Violations
	for _, x := range source.Check(t, settings) {
		field := x.Field
		if !strings.HasPrefix(field, "/display") {
			field = "/source" + field
		}
		v.Addf(field, x.Rule, "%s", x.Message)
	}
	return v.Err()
}

// checkSecrets compares the credentials that a source names with those that are known:
//
//  1. A known one of a kind that this type of source cannot use is refused.
//  2. An unknown one is accepted, and shown as a condition: secrets may come after the catalog.
//  3. With validate=strict an unknown one is refused with the choices; with lenient nothing is.
func (s *Service) checkSecrets(ctx context.Context, tx pgx.Tx, who model.Caller, in model.CatalogSource, how model.Validate) error {
	if len(in.Secrets) == 0 || how == model.ValidateLenient {
		return nil
	}
	known, err := s.Secrets.Kinds(ctx, tx, who.Tenant)
	if err != nil {
		return err
	}
	for _, name := range in.Secrets {
		kind, ok := known[name]
		switch {
		case ok && !catalogsecret.Fits(in.Type, kind):
			return errs.New(errs.Unprocessable, "catalog secret %q is of kind %s, which a source of type %s has no use for", name, kind, in.Type).
				At("/source/secrets", "secret-kind")
		case !ok && how == model.ValidateStrict:
			names := make([]string, 0, len(known))
			for n := range known {
				names = append(names, n)
			}
			slices.Sort(names)
			return errs.New(errs.Unprocessable, "no catalog secret %q is known, and validate=strict was asked for; known are: %s", name, choices(names)).
				At("/source/secrets", "secret-known")
		}
	}
	return nil
}

func (s *Service) catalogAnswer(out outcome[catalog.State], name catalog.Name, in model.ChangeCatalog) model.Catalog {
	vis := out.State.Spec.Visibility
	return model.Catalog{
		Name: name.Name, Cluster: name.Cluster, Namespace: name.Namespace, Metadata: in.Kept(), Source: in.Source, Display: in.Display,
		Priority: out.State.Spec.Priority, Disabled: out.State.Spec.Disabled, Default: s.isDefault(out.State),
		Visibility: model.CatalogVisibility{Cluster: vis.Cluster, Namespace: vis.Namespace},
		State:      model.CatalogLoading, AddedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}
}
