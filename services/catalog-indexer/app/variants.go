package app

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// choose puts the image that is meant into the settings, as the version of Kubernetes says it (R-CAT-92). A poll of a
// templated catalog as such settles its variants; its own source is polled only as long as the image that
// it falls back to is used. It is false where there is nothing to poll.
func (r *poller) choose(ctx context.Context, p *polling) (bool, error) {
	version := ""
	if p.catalog.Templated {
		uses, err := r.store.Catalogs.Uses(ctx, p.catalog)
		if err != nil {
			return false, err
		}
		if p.catalog.Variant == "" {
			if own, err := r.settle(ctx, p, uses); err != nil || !own {
				return false, err
			}
		}
		if version = versionOf(uses, p.catalog.Variant); version == "" && p.catalog.Variant != "" {
			return false, nil // not used any more
		}
	}
	image, err := source.Resolve(p.settings, version)
	p.out.Report.Template, p.out.Report.TemplateMessage = image.Reason, image.Message
	if err != nil {
		return false, r.refuse(ctx, p, reasonTemplate, err)
	}
	p.settings.Image, p.settings.Template = image.Image, ""
	p.out.Report.Reference = image.Image
	return true, nil
}

// settle makes the variants that are in use, and has new ones polled. It is true where the catalog's own source is
// used beside them: by clusters whose version is not known, or by nobody yet.
func (r *poller) settle(ctx context.Context, p *polling, uses []store.Use) (own bool, err error) {
	references := map[string]string{}
	var minors []string
	for _, u := range uses {
		if u.Minor == "" {
			continue
		}
		image, _ := source.Resolve(p.settings, u.Version) // what is wrong is recorded by the poll of the variant
		references[u.Minor] = image.Image
		minors = append(minors, u.Minor)
	}
	err = r.pool.Tx(ctx, func(tx pgx.Tx) error {
		keys, err := store.PutVariants(ctx, tx, p.catalog, references)
		if err != nil {
			return err
		}
		return r.lanes.Mark(ctx, tx, p.lane, scopes(keys, p.out.Meta.Causation, p.out.Meta.TraceParent)...)
	})
	if err != nil {
		return false, err
	}
	r.lanes.Wake()
	_, malformed := source.Variables(p.settings.Template)
	if len(minors) == len(uses) && len(uses) > 0 || p.settings.Image == "" && malformed == nil {
		return false, r.store.Outcomes.Settled(ctx, p.catalog, settledMessage(minors))
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
