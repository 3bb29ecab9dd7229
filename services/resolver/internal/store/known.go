package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// Hypotheses finds what supposed events are about, and which scopes they touch.
type Hypotheses struct {
	pool *pg.Pool
	apis APIs
}

// Known refuses hypotheses that would be answered "nothing changes" because what they are about is not there: a catalog
// that is misspelt, disabled or not offered to the cluster and namespace that the question is narrowed to, a revision
// that is not stored, an operator that is not installed. field is the place in the question.
func (hs *Hypotheses) Known(ctx context.Context, tenant string, narrow previewapi.Scope, field string,
	list []previewapi.Hypothesis,
) error {
	for _, h := range list {
		p, err := h.Payload()
		if err != nil {
			return err
		}
		switch p := p.(type) {
		case events.CatalogRevisionPublished:
			err = cmp.Or(hs.knownCatalog(ctx, tenant, narrow, field, h.Subject, enabled(h.Subject, list)),
				hs.knownRevision(ctx, tenant, field, p.Revision))
		case events.CatalogChanged, events.CatalogRemoved:
			err = hs.knownCatalog(ctx, tenant, narrow, field, h.Subject, true)
		case events.CSVRemoved:
			err = hs.knownOperator(ctx, tenant, field, h.Subject)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enabled says whether a catalog is supposed to be enabled.
func enabled(subject string, list []previewapi.Hypothesis) bool {
	return slices.ContainsFunc(list, func(h previewapi.Hypothesis) bool {
		p, err := h.Payload()
		change, is := p.(events.CatalogChanged)
		return err == nil && is && h.Subject == subject && !change.Disabled
	})
}

// knownCatalog wants a catalog to be there and to be offered; evenDisabled is for what is said of one that is not.
func (hs *Hypotheses) knownCatalog(ctx context.Context, tenant string, narrow previewapi.Scope, field, subject string,
	evenDisabled bool,
) error {
	var disabled bool
	var cluster, namespace string
	err := hs.pool.QueryRow(ctx, `select disabled, visibility_cluster, visibility_namespace from resolver.catalogs
		where tenant = $1 and subject = $2`, tenant, subject).
		Scan(&disabled, &cluster, &namespace)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errs.New(errs.NotFound, "there is no catalog %s", subject).At(field, "catalog-known")
	case err != nil:
		return fmt.Errorf("read catalog %s: %w", subject, pg.Err(err))
	case disabled && !evenDisabled:
		return errs.New(errs.Unprocessable, "catalog %s is disabled", subject).At(field, "catalog-offered")
	case !offered(cluster, narrow.Cluster), !offered(namespace, narrow.Namespace):
		return errs.New(errs.Unprocessable, "catalog %s is visible in %s/%s alone, which the question leaves out",
			subject, cluster, cmp.Or(namespace, "*")).
			At(field, "catalog-offered")
	}
	return nil
}

// offered says whether what a catalog is offered to may be what a question is narrowed to; "" is all.
func offered(to, narrow string) bool { return to == "" || narrow == "" || to == narrow }

func (hs *Hypotheses) knownRevision(ctx context.Context, tenant, field, revision string) error {
	return hs.exists(ctx, errs.New(errs.NotFound, "catalog revision %s is not stored, or is empty", revision).At(
		field, "revision-known"),
		`select exists (select from catalog_api.revision_packages where tenant = $1 and revision = $2)`, tenant,
		revision)
}

func (hs *Hypotheses) knownOperator(ctx context.Context, tenant, field, subject string) error {
	cluster, namespace, name, err := splitSubject(subject)
	if err != nil {
		return err
	}
	return hs.exists(ctx, errs.New(errs.NotFound, "no operator %s is installed in %s/%s", name, cluster, namespace).At(
		field, "operator-known"),
		`select exists (select from resolver.installed where tenant = $1 and cluster = $2 and namespace = $3
			and name = $4)`, tenant, cluster, namespace, name)
}

// exists returns missing where a query says no.
func (hs *Hypotheses) exists(ctx context.Context, missing error, query string, args ...any) error {
	var there bool
	if err := hs.pool.QueryRow(ctx, query, args...).Scan(&there); err != nil {
		return fmt.Errorf("look for what a question is about: %w", pg.Err(err))
	}
	if there {
		return nil
	}
	return missing
}
