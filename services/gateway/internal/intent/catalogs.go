package intent

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// kindCatalogSource is the kind of body that holds a source's settings.
const kindCatalogSource = "catalog-source"

var catalogs = aggregate[catalog.State, catalog.Command]{
	events.KindCatalog, func(s catalog.State) string { return s.Name.Subject() }, catalog.Decide, fold(catalog.Evolve),
}

// AddCatalog offers a catalog.
func (s *Service) AddCatalog(ctx context.Context, who model.Caller, in model.AddCatalog) (model.Catalog, error) {
	name := catalog.Name{Cluster: in.Cluster, Namespace: in.Namespace, Name: in.Name}
	out, err := s.onCatalog(ctx, who, name, func(ctx context.Context, tx pgx.Tx, _ catalog.State) (catalog.Command, error) {
		if name.Cluster != "" {
			if err := s.clusterExists(ctx, tx, who.Tenant, name.Cluster); err != nil {
				return nil, err
			}
		}
		spec, err := s.catalogSpec(ctx, tx, who, name, in.Source, in.Priority, in.Visibility, "")
		return catalog.Add{Name: name, Spec: spec}, err
	})
	if err != nil {
		return model.Catalog{}, err
	}
	return catalogAnswer(out, name, in.Source), nil
}

// ChangeCatalog replaces the intent of a catalog.
func (s *Service) ChangeCatalog(ctx context.Context, who model.Caller, name catalog.Name, in model.ChangeCatalog) (model.Catalog, error) {
	out, err := s.onCatalog(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now catalog.State) (catalog.Command, error) {
		spec, err := s.catalogSpec(ctx, tx, who, name, in.Source, in.Priority, in.Visibility, now.Spec.Settings)
		return catalog.Change{Spec: spec}, err
	})
	if err != nil {
		return model.Catalog{}, err
	}
	return catalogAnswer(out, name, in.Source), nil
}

// RefreshCatalog asks the indexer to look at the source now.
func (s *Service) RefreshCatalog(ctx context.Context, who model.Caller, name catalog.Name) (model.Removed, error) {
	return s.endCatalog(ctx, who, name, catalog.Refresh{})
}

// RemoveCatalog stops offering a catalog.
func (s *Service) RemoveCatalog(ctx context.Context, who model.Caller, name catalog.Name) (model.Removed, error) {
	return s.endCatalog(ctx, who, name, catalog.Remove{})
}

func (s *Service) endCatalog(ctx context.Context, who model.Caller, name catalog.Name, c catalog.Command) (model.Removed, error) {
	out, err := s.onCatalog(ctx, who, name, func(context.Context, pgx.Tx, catalog.State) (catalog.Command, error) { return c, nil })
	return model.Removed{Position: out.Position}, err
}

func (s *Service) onCatalog(ctx context.Context, who model.Caller, name catalog.Name,
	command commander[catalog.State, catalog.Command],
) (outcome[catalog.State], error) {
	return run(ctx, s, who, catalogs, name.Subject(), catalog.State{Name: name}, command)
}

// catalogSpec checks the source and stores its settings.
func (s *Service) catalogSpec(ctx context.Context, tx pgx.Tx, who model.Caller, name catalog.Name,
	source model.CatalogSource, priority int32, visibility, previous string,
) (catalog.Spec, error) {
	spec := catalog.Spec{SourceType: source.Type, Priority: priority}
	if name.Cluster != "" {
		spec.Visibility.Cluster = name.Cluster
		if visibility == "namespace" {
			spec.Visibility.Namespace = name.Namespace
		}
	}
	if err := checkSource(source); err != nil {
		return spec, err
	}
	body, err := json.Marshal(struct {
		Path string `json:"path"`
	}{path.Clean(source.Path)})
	if err != nil {
		return spec, errs.Wrap(errs.Internal, err, "encode the source of catalog %s", name.Subject())
	}
	spec.Settings, err = s.Bodies.Commit(ctx, tx, who.Tenant, kindCatalogSource, body, previous)
	return spec, err
}

// checkSource wants an absolute path without "..": what a relative one means would depend on where
// the indexer was started.
func checkSource(source model.CatalogSource) error {
	var v rule.Violations
	p := source.Path
	if !path.IsAbs(p) || strings.Contains(p, "\x00") || strings.Contains("/"+p+"/", "/../") {
		v.Addf("/source/path", rule.AbsolutePath, "the path of a directory source is %q: want an absolute path without '..'", p)
	}
	return v.Err()
}

func catalogAnswer(out outcome[catalog.State], name catalog.Name, source model.CatalogSource) model.Catalog {
	vis := out.State.Spec.Visibility
	return model.Catalog{
		Name: name.Name, Cluster: name.Cluster, Namespace: name.Namespace, Source: source,
		Priority:   out.State.Spec.Priority,
		Visibility: model.CatalogVisibility{Cluster: vis.Cluster, Namespace: vis.Namespace},
		State:      model.CatalogLoading, AddedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}
}
