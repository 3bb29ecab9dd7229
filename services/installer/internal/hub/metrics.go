package hub

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// Names of the metrics of R-MET-1 that are about what is installed.
const (
	metricAbnormal  = "csv_abnormal"
	metricCSVs      = "csv_count"
	metricSucceeded = "csv_succeeded"
	metricUpgrades  = "csv_upgrade_count"
	metricPlans     = "install_plan_count"
	metricWarnings  = "installplan_warnings_total"
)

// Metrics are those of R-MET-1 that are about what is installed. Beside OLM's labels stand the tenant and the cluster.
// All replicas have the same figures, since they read the same tables.
func Metrics() []telemetry.Metric {
	return []telemetry.Metric{
		{
			Name: metricAbnormal, Doc: "present while a ClusterServiceVersion is in any phase but Succeeded",
			Labels: []string{"tenant", "cluster", "namespace", "name", "version", "phase", "reason"},
		},
		{Name: metricCSVs, Doc: "ClusterServiceVersions"},
		{
			Name: metricSucceeded, Doc: "1 where a ClusterServiceVersion is Succeeded, else 0",
			Labels: []string{"tenant", "cluster", "namespace", "name", "version"},
		},
		{Name: metricUpgrades, Doc: "ClusterServiceVersions that were replaced by another one", Counter: true},
		{Name: metricPlans, Doc: "install plans"},
		{Name: metricWarnings, Doc: "warnings of API servers about objects of install plans", Counter: true},
	}
}

// addTotals counts upgrades and warnings of a tenant; the metrics read them.
func addTotals(ctx context.Context, tx pgx.Tx, tenant string, upgrades, warnings int) error {
	_, err := tx.Exec(ctx, `insert into installer.totals as t values ($1, $2, $3)
		on conflict (tenant) do update set upgrades = t.upgrades + excluded.upgrades,
		warnings = t.warnings + excluded.warnings`, tenant, upgrades, warnings)
	return err
}

// Samples reads the metrics. Clusters that are no longer registered have none.
func Samples(ctx context.Context, pool *pg.Pool) ([]telemetry.Sample, error) {
	samples, err := csvSamples(ctx, pool)
	if err != nil {
		return nil, pg.Err(err)
	}
	var plans, upgrades, warnings float64
	err = pool.QueryRow(ctx, `select (select count(*) from installer.plans)::float8,
		coalesce(sum(upgrades), 0)::float8, coalesce(sum(warnings), 0)::float8 from installer.totals`).Scan(&plans, &upgrades, &warnings)
	return append(samples,
		telemetry.Sample{Metric: metricPlans, Value: plans},
		telemetry.Sample{Metric: metricUpgrades, Value: upgrades},
		telemetry.Sample{Metric: metricWarnings, Value: warnings},
	), pg.Err(err)
}

func csvSamples(ctx context.Context, pool *pg.Pool) ([]telemetry.Sample, error) {
	rows, err := pool.Query(ctx, `select v.tenant, v.cluster, v.namespace, v.name, v.version, v.phase, v.reason
		from installer.csvs v
		join installer.clusters c on c.tenant = v.tenant and c.name = v.cluster and not c.removed
		where v.phase <> '' order by v.tenant, v.cluster, v.namespace, v.name`)
	if err != nil {
		return nil, err
	}
	var samples []telemetry.Sample
	var tenant, cluster, namespace, name, version, phase, reason string
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&tenant, &cluster, &namespace, &name, &version, &phase, &reason}, func() error {
		n++
		value := 1.0
		if phase != string(csv.PhaseSucceeded) {
			value = 0
			samples = append(samples, telemetry.Sample{
				Metric: metricAbnormal, Value: 1,
				Labels: []string{tenant, cluster, namespace, name, version, phase, reason},
			})
		}
		samples = append(samples, telemetry.Sample{
			Metric: metricSucceeded, Value: value,
			Labels: []string{tenant, cluster, namespace, name, version},
		})
		return nil
	})
	return append(samples, telemetry.Sample{Metric: metricCSVs, Value: float64(n)}), err
}
