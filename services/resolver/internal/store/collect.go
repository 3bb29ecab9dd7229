package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Collector removes what nothing needs any more.
type Collector struct {
	pool *pg.Pool
	log  *eventlog.Log
}

// collectCommands is the UUIDv5 namespace of the collector's command ids. It is arbitrary and must never change.
var collectCommands = uuid.MustParse("0a6f8d53-9c0b-5b7e-a9d4-3f4c2f1b7e60")

// collectSubject is the subject of the events about what went: one stream of a tenant.
const collectSubject = "resolver"

// How long things are kept, beside the record, which keeps every event.
const (
	// KeptPlans is how many ended plans of a namespace stay in the working tables (R-IP-4). Beyond them stay the newest
	// plan of each package, since what failed or was rejected is not tried again because it was forgotten, and the
	// plans of what is installed.
	KeptPlans = 5
	// keptAnew is how old a kept document may be that a decision names again without its retention beginning anew:
	// to write it down each time would be a write for each decision.
	keptAnew = 24 * time.Hour
	// sweepRows bounds what one transaction of a sweep takes up.
	sweepRows = 500
)

// keepAnew ends an insert of a document that may be there, as i; $4 is now and $5 keptAnew before. It also keeps the
// document from a sweep that is about to remove it: one of both waits for the other's row.
const keepAnew = `on conflict (tenant, digest) do update set created = excluded.created where i.created < $5`

// Swept is what one sweep did.
type Swept struct {
	Plans, Documents, Inputs, Explanations, References int64
	// Postponed is why nothing was removed that events refer to: a reader of the log does not know yet the event that
	// says so. It goes in a later sweep.
	Postponed error
}

// Any says whether anything was removed.
func (s Swept) Any() bool {
	s.Postponed = nil
	return s != Swept{}
}

// page is one transaction of a step: it takes up at most sweepRows, of which it removes what is not needed.
type page struct {
	now time.Time
	// before is when something must have been needed last to go.
	before time.Time
	// keep is the retention, 0 where it has no bound.
	keep time.Duration
	// behind is the namespace that the page before ended with, for steps that go through the namespaces.
	behind [3]string
	// taken is how many the page took up, removed how many of them are gone.
	taken, removed int64
}

// step removes what is not needed of one kind, page after page until one is not full.
type step struct {
	what  string
	count *int64
	turn  func(context.Context, pgx.Tx, *page) error
}

// Sweep removes what nothing needs any more. Each page of each step is a transaction that leaves nothing half done:
// what is removed takes its references along, so that a sweep that ends between two pages, or in one, is gone on with
// by the next. One replica sweeps at a time: where another one does, this one leaves it to that.
//
// Documents, inputs and explanations go when nothing has needed them for keep; where that is 0 they stay. An event in
// the same transaction says what went: one for each page, kind and tenant.
func (c *Collector) Sweep(ctx context.Context, now time.Time, keep time.Duration) (Swept, error) {
	var done Swept
	var referred int64
	steps := []step{
		{"references of inputs", &referred, referInputs},
		{"ended plans", &done.Plans, sweepPlans},
	}
	if keep > 0 {
		_, err := c.log.Newest(ctx, c.pool, events.DecisionsCollected{})
		if err != nil && !errs.Is(err, errs.Unavailable) {
			return done, err
		}
		done.Postponed = err
	}
	if keep > 0 && done.Postponed == nil {
		steps = append(
			steps,
			step{"plan documents", &done.Documents, c.sweepOld("plan-documents", oldDocuments)},
			step{"inputs", &done.Inputs, c.sweepOld("inputs", oldInputs)},
			step{"explanations", &done.Explanations, c.sweepOld("explanations", oldExplanations)},
			step{"references without a holder", &done.References, sweepUnheld},
		)
	}
	for _, st := range steps {
		alone, err := c.sweep(ctx, page{now: now, before: now.Add(-keep), keep: keep}, st)
		if err != nil || !alone {
			return done, err
		}
	}
	return done, nil
}

// sweep carries a step out; alone is false where another replica sweeps.
func (c *Collector) sweep(ctx context.Context, first page, st step) (alone bool, err error) {
	p := &first
	p.taken = sweepRows
	for alone = true; alone && p.taken == sweepRows; {
		p.taken, p.removed = 0, 0
		err := c.pool.Tx(ctx, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, collectLock).Scan(&alone); err != nil || !alone {
				return pg.Err(err)
			}
			return st.turn(ctx, tx, p)
		})
		if err != nil {
			return alone, fmt.Errorf("collect %s: %w", st.what, err)
		}
		*st.count += p.removed
	}
	return alone, nil
}

// collectLock lets one replica sweep at a time, until its transaction ends. Nobody sweeps while the log is read again:
// what half-built tables do not refer to may be what a decision rested on (DESIGN D5).
const collectLock = `select pg_try_advisory_xact_lock(hashtext('resolver.collect'))
	and eventlog.hold_work('` + Consumer + `')`

// sweepPlans removes ended plans of the next namespaces. A plan that was superseded was never tried, so that nothing
// follows from it.
func sweepPlans(ctx context.Context, tx pgx.Tx, p *page) error {
	args := pgx.NamedArgs{
		"keep": KeptPlans, "rows": sweepRows, "tenant": p.behind[0], "cluster": p.behind[1],
		"namespace": p.behind[2],
	}
	return pg.Err(tx.QueryRow(ctx, endedPlans, args).Scan(&p.taken, &p.behind[0], &p.behind[1], &p.behind[2],
		&p.removed))
}

const endedPlans = `with scopes as (
	  select distinct tenant, cluster, namespace from resolver.plans
	  where (tenant, cluster, namespace) > (@tenant, @cluster, @namespace)
	  order by tenant, cluster, namespace limit @rows),
	ended as (
	  select p.tenant, p.plan, p.cluster, p.namespace, p.generation, p.phase, p.packages,
	    row_number() over (partition by p.tenant, p.cluster, p.namespace order by p.generation desc) as n
	  from scopes join resolver.plans p using (tenant, cluster, namespace)
	  where not p.live and (p.settled or p.phase <> 'Complete')),
	gone as (
	  select e.tenant, e.plan from ended e where e.n > @keep
	    and not exists (select from resolver.installed i where i.tenant = e.tenant and i.cluster = e.cluster
	    and i.namespace = e.namespace and i.plan = e.plan)
	    and (e.phase = 'Superseded' or not exists (select from unnest(e.packages) as k(package) where not exists (
	      select from resolver.plans q where q.tenant = e.tenant and q.cluster = e.cluster and q.namespace = e.namespace
	        and q.generation > e.generation and not q.live and q.phase <> 'Superseded'
	        and k.package = any (q.packages))))),
	removed as (delete from resolver.plans p using gone g where p.tenant = g.tenant and p.plan = g.plan and not p.live
	returning 1),
	last as (select * from scopes order by tenant desc, cluster desc, namespace desc limit 1)
	select (select count(*) from scopes), coalesce(last.tenant, ''), coalesce(last.cluster, ''),
	coalesce(last.namespace, ''), (select count(*) from removed)
	from (values (1)) as one left join last on true`

// sweepOld takes up the documents of a table whose retention is over, and records which of them went.
func (c *Collector) sweepOld(what, sql string) func(context.Context, pgx.Tx, *page) error {
	return func(ctx context.Context, tx pgx.Tx, p *page) error {
		rows, err := tx.Query(ctx, sql, pgx.NamedArgs{"rows": sweepRows, "now": p.now, "before": p.before})
		if err != nil {
			return pg.Err(err)
		}
		gone, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (g gone, err error) {
			return g, r.Scan(&p.taken, &g.tenant, &g.ids, &g.oldest, &g.newest)
		})
		if err != nil {
			return pg.Err(err)
		}
		for _, g := range gone {
			if len(g.ids) == 0 {
				continue
			}
			p.removed += int64(len(g.ids))
			m := events.Meta{Tenant: g.tenant, Source: events.Resolver, Time: p.now.UTC()}
			if _, err := c.log.AppendFact(ctx, tx, m, collectCommands, events.KindRetention, collectSubject,
				events.DecisionsCollected{
					Removed: events.NewRemoved(what, g.ids, g.oldest, g.newest, p.keep),
				}); err != nil {
				return err
			}
		}
		return nil
	}
}

// gone is what a page removed of one tenant; a page that removed nothing has one without ids.
type gone struct {
	tenant         string
	ids            []string
	oldest, newest time.Time
}

// Who needs a document, as o, is looked up by key for each one.
var ( //nolint:gochecknoglobals // statements, put together
	oldDocuments = old("plan_documents", "plan", `exists (select from resolver.plans p where p.tenant = o.tenant
		and p.plan = o.plan)`)
	oldInputs = old("inputs", "digest", `exists (select from resolver.subscriptions s where s.tenant = o.tenant
		and s.input = o.digest)
		or exists (select from resolver.plans p where p.tenant = o.tenant and p.input = o.digest)`)
	oldExplanations = old("explanations", "digest", `exists (select from resolver.subscriptions s
		where s.tenant = o.tenant and s.explanation = o.digest)`)
)

// old takes up documents of a table whose retention is over: those that are needed are kept anew, and come up again
// after another retention; the others go, and with them the references that they hold.
func old(table, key, needed string) string {
	return `with old as (
		  select o.tenant, o.` + key + ` as key, (` + needed + `) as needed from resolver.` + table + ` o
		  where o.created < @before order by o.created limit @rows for update of o skip locked),
		kept as (update resolver.` + table + ` o set created = @now from old where old.needed and o.tenant = old.tenant and o.` + key + ` = old.key),
		gone as (delete from resolver.` + table + ` o using old where not old.needed and o.tenant = old.tenant and o.` + key + ` = old.key
		  returning o.tenant, o.` + key + ` as key, o.created),
		released as (delete from resolver.content_references r using gone where r.tenant = gone.tenant and r.holder = gone.key)
		select (select count(*) from old), coalesce(g.tenant, ''), coalesce(array_agg(g.key) filter (where g.key is not null), '{}'),
		  coalesce(min(g.created), @now), coalesce(max(g.created), @now)
		from (values (1)) as one left join gone g on true group by g.tenant`
}

// sweepUnheld removes references that were written before they had holders, once no input is left whose references are
// not written down.
func sweepUnheld(ctx context.Context, tx pgx.Tx, p *page) error {
	err := tx.QueryRow(ctx, `with gone as (
		  select tenant, kind, digest from resolver.content_references
		  where holder = '' and created < @before and not exists (select from resolver.inputs where not referred)
		  order by created limit @rows for update skip locked),
		removed as (delete from resolver.content_references r using gone g
		  where r.holder = '' and r.tenant = g.tenant and r.kind = g.kind and r.digest = g.digest returning 1)
		select count(*) from removed`, pgx.NamedArgs{"rows": sweepRows, "before": p.before}).Scan(&p.removed)
	p.taken = p.removed
	return pg.Err(err)
}

// referInputs writes down what inputs refer to that were kept before references had holders.
func referInputs(ctx context.Context, tx pgx.Tx, p *page) error {
	rows, err := tx.Query(ctx, `select tenant, digest, document from resolver.inputs where not referred
		order by tenant, digest limit $1 for update skip locked`, sweepRows)
	if err != nil {
		return pg.Err(err)
	}
	type input struct {
		tenant, digest string
		document       []byte
	}
	inputs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (i input, err error) {
		return i, r.Scan(&i.tenant, &i.digest, &i.document)
	})
	if err != nil {
		return pg.Err(err)
	}
	p.taken = int64(len(inputs))
	for _, i := range inputs {
		record, err := unpackRecord(i.digest, i.document)
		if err != nil {
			return err
		}
		if err := exec(ctx, tx, referTo, i.tenant, refPackage, i.digest, ordered(packagesOf(record))); err != nil {
			return err
		}
		if err := exec(ctx, tx, `update resolver.inputs set referred = true where tenant = $1 and digest = $2`,
			i.tenant, i.digest); err != nil {
			return err
		}
	}
	return nil
}
