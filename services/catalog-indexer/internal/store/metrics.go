package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// Names of the metrics of R-MET-1 that are about catalogs.
const (
	metricCatalogs  = "catalog_source_count"
	metricReady     = "catalogsource_ready"
	metricSnapshots = "catalog_source_snapshots_total"
)

// Metrics are those of R-MET-1 that are about catalogs. Beside OLM's labels are the tenant and, for a catalog of one
// cluster, the cluster; a catalog of all clusters has no namespace either.
func Metrics() []telemetry.Metric {
	labels := []string{"tenant", "cluster", "namespace", "name"}
	return []telemetry.Metric{
		{Name: metricCatalogs, Doc: "catalogs"},
		{Name: metricReady, Doc: "1 where the source of a catalog answered at the last poll, else 0", Labels: labels},
		{Name: metricSnapshots, Doc: "polls of the source of a catalog by this process", Counter: true, Labels: labels},
	}
}

// MetricSamples reads them; polls counts by TallyKey.
func MetricSamples(ctx context.Context, pool *pg.Pool, polls *telemetry.Tally) ([]telemetry.Sample, error) {
	rows, err := pool.Query(ctx, `select tenant, stream, connection = 'READY', split_part(subject, '/', -1),
		case when subject like '%/%/%' then split_part(subject, '/', 1) else '' end, case
		when subject like '%/%/%' then split_part(subject, '/', 2) else '' end
		from catalog.catalogs where not removed order by tenant, subject`)
	if err != nil {
		return nil, pg.Err(err)
	}
	var keys []string
	var labels [][]string
	var samples []telemetry.Sample
	var tenant, stream, name, cluster, namespace string
	var ready bool
	_, err = pgx.ForEachRow(rows, []any{&tenant, &stream, &ready, &name, &cluster, &namespace}, func() error {
		keys, labels = append(keys, TallyKey(tenant, stream)),
			append(labels, []string{tenant, cluster, namespace, name})
		value := 0.0
		if ready {
			value = 1
		}
		samples = append(samples, telemetry.Sample{Metric: metricReady, Value: value, Labels: labels[len(labels)-1]})
		return nil
	})
	if err != nil {
		return nil, pg.Err(err)
	}
	counts := polls.Counts(keys)
	for i, key := range keys {
		if n, ok := counts[key]; ok {
			samples = append(samples, telemetry.Sample{Metric: metricSnapshots, Value: n, Labels: labels[i]})
		}
	}
	return append(samples, telemetry.Sample{Metric: metricCatalogs, Value: float64(len(keys))}), nil
}

// TallyKey is the key of a catalog in the tally of polls.
func TallyKey(tenant, stream string) string { return tenant + "/" + stream }
