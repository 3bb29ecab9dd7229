package app

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// choose puts the image that is meant into the settings, as the version of Kubernetes says it (R-CAT-92). A look at a
// templated catalog as such settles its variants; its own source is looked at only as long as the image that
// it falls back to is used. It is false where there is nothing to look at.
func (a *App) choose(ctx context.Context, l *looking) (bool, error) {
	version := ""
	if l.catalog.Templated {
		uses, err := a.store.Uses(ctx, l.catalog)
		if err != nil {
			return false, err
		}
		if l.catalog.Variant == "" {
			if own, err := a.settle(ctx, l, uses); err != nil || !own {
				return false, err
			}
		}
		if version = versionOf(uses, l.catalog.Variant); version == "" && l.catalog.Variant != "" {
			return false, nil // not used any more
		}
	}
	r, err := source.Resolve(l.settings, version)
	l.out.Report.Template, l.out.Report.TemplateMessage = r.Reason, r.Message
	if err != nil {
		return false, a.refuse(ctx, l, reasonTemplate, err)
	}
	l.settings.Image, l.settings.Template = r.Image, ""
	l.out.Report.Reference = r.Image
	return true, nil
}

// settle makes the variants that are in use, and has new ones looked at. It is true where the catalog's own source is
// used beside them: by clusters whose version is not known, or by nobody yet.
func (a *App) settle(ctx context.Context, l *looking, uses []store.Use) (own bool, err error) {
	references := map[string]string{}
	var minors []string
	for _, u := range uses {
		if u.Minor == "" {
			continue
		}
		r, _ := source.Resolve(l.settings, u.Version) // what is wrong is told by the look at the variant
		references[u.Minor] = r.Image
		minors = append(minors, u.Minor)
	}
	err = a.Pool.Tx(ctx, func(tx pgx.Tx) error {
		keys, err := a.store.PutVariants(ctx, tx, l.catalog, references)
		if err != nil {
			return err
		}
		return a.lanes.Mark(ctx, tx, l.lane, scopes(keys, l.out.Meta.Causation, l.out.Meta.TraceParent)...)
	})
	if err != nil {
		return false, err
	}
	a.lanes.Wake()
	_, malformed := source.Variables(l.settings.Template)
	if len(minors) == len(uses) && len(uses) > 0 || l.settings.Image == "" && malformed == nil {
		return false, a.store.Settled(ctx, l.catalog, settledMessage(minors))
	}
	return true, nil
}

func settledMessage(minors []string) string {
	if len(minors) == 0 {
		return "waits for a cluster whose version of Kubernetes is known: its image depends on it"
	}
	slices.Sort(minors)
	return "served by version of Kubernetes: " + strings.Join(minors, ", ")
}

func versionOf(uses []store.Use, minor string) string {
	for _, u := range uses {
		if u.Minor == minor && minor != "" {
			return u.Version
		}
	}
	return ""
}
