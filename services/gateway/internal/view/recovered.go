package view

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// recovered tells which of some catalogs are in good order now, and since when. It is asked about
// catalogs whose last event is a failure: a look that finds the revision in service again changes
// nothing that the log tells of, so that no event says that the failure is over.
func recovered(ctx context.Context, q pg.Querier, tenant string, subjects []string) (map[string]time.Time, error) {
	if len(subjects) == 0 {
		return nil, nil
	}
	rows, err := q.Query(ctx, `select name, updated from catalog_api.catalogs where tenant = $1 and name = any ($2) and state = $3`,
		tenant, subjects, model.CatalogReady)
	if err != nil {
		return nil, err
	}
	found := map[string]time.Time{}
	var name string
	var since time.Time
	_, err = pgx.ForEachRow(rows, []any{&name, &since}, func() error {
		found[name] = since
		return nil
	})
	return found, err
}

// recoverCatalogs shows catalogs whose failure is over as ready.
func recoverCatalogs(ctx context.Context, q pg.Querier, tenant string, items []catalogRow) error {
	var failed []string
	for _, c := range items {
		if c.State == model.CatalogFailed {
			failed = append(failed, c.subject)
		}
	}
	found, err := recovered(ctx, q, tenant, failed)
	for i := range items {
		c := &items[i]
		if since, ok := found[c.subject]; ok && c.State == model.CatalogFailed {
			c.State, c.Reason, c.Rule, c.Findings, c.document, c.Event, c.UpdatedAt = model.CatalogReady, "", "", 0, "", "", since
		}
	}
	return err
}

// concludeSubscriptions gives rows their conditions, from the catalogs as they are now.
func concludeSubscriptions(ctx context.Context, q pg.Querier, tenant string, rows []subscriptionRow) error {
	var failed []string
	for _, s := range rows {
		if s.catalogState == model.CatalogFailed {
			failed = append(failed, s.catalogSubject)
		}
	}
	found, err := recovered(ctx, q, tenant, failed)
	if err != nil {
		return err
	}
	for i := range rows {
		s := &rows[i]
		if since, ok := found[s.catalogSubject]; ok && s.catalogState == model.CatalogFailed {
			s.catalogState, s.catalogReason, s.catalogEvt, s.catalogSince = model.CatalogReady, "", "", &since
		}
		s.Status.Conditions = s.conditions()
	}
	return nil
}
