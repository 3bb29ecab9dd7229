package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
)

// How long things are kept, beside the record, which keeps every event.
const (
	// KeptPlans is how many ended plans of a namespace stay in the working tables (R-IP-4). Beyond them stay the newest
	// plan of each package, since what failed or was rejected is not tried again because it was forgotten, and the
	// plans of what is installed.
	KeptPlans = 5
	// Retention is how long documents, inputs and explanations of decisions are kept after they were last needed: long
	// enough for a quarter's audit to look at a decision with all that it rested on. What is installed, planned or
	// subscribed needs them for as long as it is.
	Retention = 90 * 24 * time.Hour
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
type Swept struct{ Plans, Documents, Inputs, Explanations, References int64 }

// Any says whether there may be more to do.
func (s Swept) Any() bool { return s != Swept{} }

// step is one transaction of a sweep: it removes, or keeps anew, at most sweepRows.
type step struct {
	what  string
	count *int64
	sql   string
}

// Sweep removes what nothing needs any more, a bounded number of rows at a time. Each step is a transaction that leaves
// nothing half done: what is removed takes its references along, so that a sweep that ends between two steps, or in
// one, is gone on with by the next. Replicas may sweep at once: they pass over each other's rows.
func (s *Store) Sweep(ctx context.Context, now time.Time) (Swept, error) {
	var done Swept
	if err := s.referInputs(ctx); err != nil {
		return done, err
	}
	for _, st := range []step{
		{"ended plans", &done.Plans, sweepPlans},
		{"plan documents", &done.Documents, sweepOld("plan_documents", "plan", `exists (select from resolver.plans p where p.tenant = o.tenant and p.plan = o.plan)`)},
		{"inputs", &done.Inputs, sweepOld("inputs", "digest", `(o.tenant, o.digest) in (select tenant, outcome ->> 'input' from resolver.subscriptions where outcome ? 'input')
			or (o.tenant, o.digest) in (select tenant, state -> 'Proposed' ->> 'input' from resolver.plans where state -> 'Proposed' ? 'input')`)},
		{"explanations", &done.Explanations, sweepOld("explanations", "digest", `(o.tenant, o.digest) in (select tenant, outcome ->> 'explanation' from resolver.subscriptions where outcome ? 'explanation')`)},
		{"references without a holder", &done.References, sweepUnheld},
	} {
		err := s.pool.Tx(ctx, func(tx pgx.Tx) error {
			args := pgx.NamedArgs{"keep": KeptPlans, "rows": sweepRows, "now": now, "before": now.Add(-Retention)}
			return pg.Err(tx.QueryRow(ctx, st.sql, args).Scan(st.count))
		})
		if err != nil {
			return done, fmt.Errorf("collect %s: %w", st.what, err)
		}
	}
	return done, nil
}

// sweepPlans removes ended plans, the oldest first. A plan that was superseded was never tried, so that it tells nothing.
const sweepPlans = `with ended as (
	  select tenant, plan, cluster, namespace, generation, phase, packages,
	    row_number() over (partition by tenant, cluster, namespace order by generation desc) as n
	  from resolver.plans where not live and (settled or phase <> 'Complete')),
	gone as (
	  select e.tenant, e.plan from ended e where e.n > @keep
	    and not exists (select from resolver.installed i where i.tenant = e.tenant and i.cluster = e.cluster and i.namespace = e.namespace and i.plan = e.plan)
	    and (e.phase = 'Superseded' or not exists (select from unnest(e.packages) as k(package) where not exists (
	      select from resolver.plans q where q.tenant = e.tenant and q.cluster = e.cluster and q.namespace = e.namespace
	        and q.generation > e.generation and not q.live and q.phase <> 'Superseded' and k.package = any (q.packages))))
	  order by e.generation limit @rows),
	removed as (delete from resolver.plans p using gone g where p.tenant = g.tenant and p.plan = g.plan and not p.live returning 1)
	select count(*) from removed`

// sweepOld looks at the documents of a table whose retention is over: those that are needed are kept anew, and come up
// again after another retention; the others go, and with them the references that they hold. needed must look things up by key, or list them without reference to the row, of which
// PostgreSQL makes one table for all rows.
func sweepOld(table, key, needed string) string {
	return `with old as (
		  select o.tenant, o.` + key + ` as key, (` + needed + `) as needed from resolver.` + table + ` o
		  where o.created < @before order by o.created limit @rows for update of o skip locked),
		kept as (update resolver.` + table + ` o set created = @now from old where old.needed and o.tenant = old.tenant and o.` + key + ` = old.key),
		gone as (delete from resolver.` + table + ` o using old where not old.needed and o.tenant = old.tenant and o.` + key + ` = old.key
		  returning o.tenant, o.` + key + ` as key),
		released as (delete from resolver.content_references r using gone where r.tenant = gone.tenant and r.holder = gone.key)
		select count(*) from gone`
}

// sweepUnheld removes references that were written before they had holders, once no input is left whose references are
// not written down.
const sweepUnheld = `with gone as (
	  select tenant, kind, digest from resolver.content_references
	  where holder = '' and created < @before and not exists (select from resolver.inputs where not referred)
	  order by created limit @rows for update skip locked),
	removed as (delete from resolver.content_references r using gone g
	  where r.holder = '' and r.tenant = g.tenant and r.kind = g.kind and r.digest = g.digest returning 1)
	select count(*) from removed`

// referInputs writes down what inputs refer to that were kept before references had holders.
func (s *Store) referInputs(ctx context.Context) error {
	return s.pool.Tx(ctx, func(tx pgx.Tx) error {
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
		for _, i := range inputs {
			record, err := unpackRecord(i.digest, i.document)
			if err != nil {
				return err
			}
			if err := exec(ctx, tx, referTo, i.tenant, refPackage, i.digest, ordered(packagesOf(record))); err != nil {
				return err
			}
			if err := exec(ctx, tx, `update resolver.inputs set referred = true where tenant = $1 and digest = $2`, i.tenant, i.digest); err != nil {
				return err
			}
		}
		return nil
	})
}
