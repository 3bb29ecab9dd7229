package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// installedFolds folds which operators are installed.
type installedFolds struct {
	dirty *dirtyScopes
	log   *eventlog.Log
}

// changed folds a phase. Only phases that free or hold a component make the scope dirty.
func (f *installedFolds) changed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CSVPhaseChanged) error {
	if err := f.put(ctx, tx, e.Tenant, p); err != nil {
		return err
	}
	if !slices.Contains([]string{"Succeeded", "Failed"}, p.Phase) {
		return nil
	}
	return f.dirty.markOwn(ctx, tx, scopeOf(e, p.Cluster, p.Namespace))
}

func (f *installedFolds) removed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.CSVRemoved) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	if err := exec(ctx, tx, `delete from resolver.installed where tenant = $1 and cluster = $2 and namespace = $3
		and name = $4`,
		e.Tenant, cluster, namespace, name); err != nil {
		return err
	}
	return f.dirty.markOwn(ctx, tx, scopeOf(e, cluster, namespace))
}

// condition notes whether an operator lets itself be upgraded. No scope is dirty: the executor asks the operator
// itself.
func (f *installedFolds) condition(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.OperatorConditionChanged,
) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `update resolver.installed set upgradeable = $5 where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`, e.Tenant, cluster, namespace, name, p.Upgradeable)
}

// put adds what the plan knows of the CSV: its properties, what it replaced, and who subscribed to it.
func (f *installedFolds) put(ctx context.Context, tx pgx.Tx, tenant string, p events.CSVPhaseChanged) error {
	err := exec(ctx, tx, `insert into resolver.installed
		(tenant, cluster, namespace, name, package, version, content, plan, phase, replaces, properties)
		select $1, $2, $3, $4, $5, $6, $7, $8, $9,
		  coalesce((select b ->> 'replaces' from resolver.plans pl, jsonb_array_elements(pl.state -> 'Proposed' ->
		  'bundles') b
		    where pl.tenant = $1 and pl.plan = $8 and b ->> 'csv' = $4), ''),
		  coalesce((select d.properties -> $4 from resolver.plan_documents d where d.tenant = $1 and d.plan = $8), '[]')
		on conflict (tenant, cluster, namespace, name) do update set package = excluded.package,
		version = excluded.version,
		  content = excluded.content, plan = excluded.plan, phase = excluded.phase, replaces = excluded.replaces,
		  properties = excluded.properties`,
		tenant, p.Cluster, p.Namespace, p.Name, p.Package, p.Version, p.Content, p.Plan, p.Phase)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `update resolver.subscriptions s set installed_csv = $4
		from resolver.plans pl, jsonb_array_elements(pl.state -> 'Proposed' -> 'bundles') b
		where s.tenant = $1 and s.cluster = $2 and s.namespace = $3 and s.installed_csv <> $4
		  and pl.tenant = $1 and pl.plan = $5 and b ->> 'csv' = $4 and b -> 'subscriptions' ? s.name`,
		tenant, p.Cluster, p.Namespace, p.Name, p.Plan)
}

// folded says whether what the log has of an operator is in the tables, or will be nothing: it has gone. The log may
// be ahead of them: a plan and its operators end in one report, and a plan that was folded without its operators must
// not be planned once more.
func (f *installedFolds) folded(ctx context.Context, tx pgx.Tx, tenant, cluster, namespace, name string) (bool, error) {
	head, err := f.log.Latest(ctx, tx, tenant, events.KindCSV, cluster+"/"+namespace+"/"+name)
	if err != nil || !head.Exists() {
		return true, err
	}
	var there bool
	err = tx.QueryRow(ctx, `select exists (select from resolver.installed where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4)`, tenant, cluster, namespace, name).Scan(&there)
	return there, pg.Err(err)
}

// expect notes the operators of a finished plan as installed before anything was heard of them, so that
// nothing is planned on top of it. One that has come and gone already is not expected.
func (f *installedFolds) expect(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, row planRow) error {
	p := row.state.Proposed
	for _, b := range p.Bundles {
		known, err := eventlog.HeardOfOperator(ctx, f.log, tx, e.Tenant, p.Cluster+"/"+p.Namespace+"/"+b.CSV, row.id)
		if err != nil {
			return err
		}
		if known {
			known, err = f.folded(ctx, tx, e.Tenant, p.Cluster, p.Namespace, b.CSV)
		}
		if err != nil {
			return err
		}
		if known {
			continue
		}
		err = f.put(ctx, tx, e.Tenant, events.CSVPhaseChanged{
			Cluster: p.Cluster, Namespace: p.Namespace, Name: b.CSV, Package: b.Package, Version: b.Version,
			Content: b.Content, Plan: row.id,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
