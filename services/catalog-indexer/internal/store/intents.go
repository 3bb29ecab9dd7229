package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
)

// Poll marks catalogs that are to be polled because of an event, in the transaction that folds it.
type Poll func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, catalogs []Key) error

// Intents fold what people want of catalogs, and have polled what that concerns.
func (s *Store) Intents(poll Poll) bus.Handlers {
	h := bus.Handlers{}
	on(h, poll, added)
	on(h, poll, sourceChanged)
	on(h, poll, refreshed)
	on(h, poll, removed)
	on(h, poll, secretMoved[events.CatalogSecretSet](s.Catalogs.bodies))
	on(h, poll, secretMoved[events.CatalogSecretDeleted](s.Catalogs.bodies))
	return h
}

// on sets how the events with a payload of type P are folded. fold returns the catalogs that are to be polled.
func on[P events.Payload](h bus.Handlers, poll Poll,
	fold func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p P) ([]Key, error),
) {
	bus.On(h, func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p P) error {
		catalogs, err := fold(ctx, tx, e, p)
		if err != nil {
			return err
		}
		return poll(ctx, tx, e, catalogs)
	})
}

func added(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogAdded) ([]Key, error) {
	stream := e.StreamID.String()
	_, err := tx.Exec(ctx, `insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority,
		visibility_cluster, visibility_namespace, templated, disabled, signatures)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict (tenant, stream) do nothing`,
		e.Tenant, stream, e.Subject, p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster, p.Visibility.Namespace,
		p.Templated, p.Disabled, p.Signatures)
	return []Key{{Tenant: e.Tenant, Stream: stream}}, pg.Err(err)
}

// sourceChanged asks for another poll where the source is another one; variants that are not wanted any more go.
func sourceChanged(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogChanged) ([]Key, error) {
	stream := e.StreamID.String()
	var another, policy bool
	err := tx.QueryRow(ctx, `update catalog.catalogs c set wanted = c.wanted + ((o.source_type, o.spec) is distinct
		from ($3, $4))::int, source_type = $3, spec = $4,
		  priority = $5, visibility_cluster = $6, visibility_namespace = $7, templated = $8, disabled = $9,
		  signatures = $10, updated = now()
		from catalog.catalogs o where c.tenant = $1 and c.stream = $2 and o.tenant = c.tenant and o.stream = c.stream
		returning (o.source_type, o.spec) is distinct from ($3, $4), o.signatures <> $10 and $10 <> ''`,
		e.Tenant, stream, p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster, p.Visibility.Namespace, p.Templated,
		p.Disabled, p.Signatures).Scan(&another, &policy)
	if err != nil {
		return nil, fmt.Errorf("change catalog %s: %w", e.Subject, pg.Err(err))
	}
	if policy {
		if err := fetchAgain(ctx, tx, e.Tenant, stream); err != nil {
			return nil, err
		}
	}
	if err := dropUnused(ctx, tx, e.Tenant); err != nil {
		return nil, err
	}
	if another {
		return refreshVariants(ctx, tx, e)
	}
	return keysOf(ctx, tx, e.Tenant, stream)
}

func removed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.CatalogRemoved) ([]Key, error) {
	_, err := tx.Exec(ctx, `update catalog.catalogs set removed = true, updated = now()
		where tenant = $1 and stream = $2`, e.Tenant, e.StreamID.String())
	return nil, pg.Err(err)
}

// refreshed asks for a poll of every variant.
func refreshed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.CatalogRefreshRequested) ([]Key, error) {
	_, err := tx.Exec(ctx, `update catalog.catalogs set wanted = wanted + 1 where tenant = $1 and stream = $2`,
		e.Tenant, e.StreamID.String())
	if err != nil {
		return nil, pg.Err(err)
	}
	// And at every bundle image that could not be had, also those that would not be tried again (R-SUB-31).
	_, err = tx.Exec(ctx, `update catalog.bundle_images set next_try = now() where tenant = $1 and catalog = $2
		and content = ''`, e.Tenant, e.StreamID.String())
	if err != nil {
		return nil, pg.Err(err)
	}
	return refreshVariants(ctx, tx, e)
}

func refreshVariants(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) ([]Key, error) {
	_, err := tx.Exec(ctx, `update catalog.variants set wanted = wanted + 1 where tenant = $1 and stream = $2`,
		e.Tenant, e.StreamID.String())
	if err != nil {
		return nil, pg.Err(err)
	}
	return keysOf(ctx, tx, e.Tenant, e.StreamID.String())
}

// keysOf are a catalog and its variants.
func keysOf(ctx context.Context, q pg.Querier, tenant, stream string) ([]Key, error) {
	rows, err := q.Query(ctx, `select $1::text, $2::text, '' union all select tenant, stream, variant
		from catalog.variants
		where tenant = $1 and stream = $2`, tenant, stream)
	if err != nil {
		return nil, pg.Err(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
	return keys, pg.Err(err)
}

func secretMoved[P events.Payload](
	keys bodies.Keys,
) func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ P) ([]Key, error) {
	return func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ P) ([]Key, error) {
		return naming(ctx, tx, keys, e.Tenant, e.Subject)
	}
}

// naming are the catalogs whose settings name a credential (R-DIS-4): a new one may make them readable.
func naming(ctx context.Context, tx pgx.Tx, opening bodies.Keys, tenant, secret string) ([]Key, error) {
	rows, err := tx.Query(ctx, `select stream, spec from catalog.catalogs where tenant = $1 and not removed`, tenant)
	if err != nil {
		return nil, pg.Err(err)
	}
	specs := map[string]string{}
	var stream, spec string
	_, err = pgx.ForEachRow(rows, []any{&stream, &spec}, func() error {
		specs[stream] = spec
		return nil
	})
	if err != nil {
		return nil, pg.Err(err)
	}
	settings, err := opening.ReadAll(ctx, tx, bodies.View, tenant, slices.Collect(maps.Values(specs)))
	if err != nil {
		return nil, err
	}
	var found []string
	for stream, spec := range specs {
		if body, ok := settings[spec]; ok && mayName(body, secret) {
			found = append(found, stream)
		}
	}
	rows, err = tx.Query(ctx, `select s.tenant, s.stream, s.variant from (
		  select tenant, stream, variant from catalog.catalogs union all select tenant, stream, variant
		  from catalog.variants) s
		where s.tenant = $1 and s.stream = any ($2) order by 1, 2, 3`, tenant, found)
	if err != nil {
		return nil, pg.Err(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
	if err != nil {
		return nil, pg.Err(err)
	}
	return keys, again(ctx, tx, tenant, found)
}

// mayName says whether settings name a credential. Those that do not open may: the poll, which looks at them then, says
// in the status of the catalog why they do not.
func mayName(b bodies.Body, secret string) bool {
	var settings source.Settings
	return b.Err != nil || json.Unmarshal(b.Text, &settings) == nil && slices.Contains(settings.Secrets, secret)
}

// again lets bundle images that could not be fetched be tried at once.
func again(ctx context.Context, tx pgx.Tx, tenant string, streams []string) error {
	_, err := tx.Exec(ctx, `update catalog.bundle_images set next_try = now() where tenant = $1 and catalog = any ($2)
		and content = '' and next_try is not null`, tenant, streams)
	return pg.Err(err)
}
