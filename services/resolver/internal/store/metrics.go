package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Names of the metrics of R-MET-1 that are about subscriptions.
const (
	metricSubscriptions = "subscription_count"
	metricSyncs         = "subscription_sync_total"
)

// Metrics are those of R-MET-1 that are about subscriptions. Beside OLM's labels are the tenant, the cluster and the
// namespace.
func Metrics() []telemetry.Metric {
	return []telemetry.Metric{
		{Name: metricSubscriptions, Doc: "subscriptions"},
		{
			Name: metricSyncs, Doc: "resolutions of a subscription by this process", Counter: true,
			Labels: []string{"tenant", "cluster", "namespace", "name", "installed", "channel", "package", "approval"},
		},
	}
}

// MetricSamples reads them; syncs counts by TallyKey. What a cluster had that is no longer registered is left out.
func MetricSamples(ctx context.Context, pool *pg.Pool, syncs *telemetry.Tally) ([]telemetry.Sample, error) {
	rows, err := pool.Query(ctx, `select s.tenant, s.cluster, s.namespace, s.name, s.installed_csv,
		coalesce(s.spec ->> 'channel', ''), coalesce(s.spec ->> 'package', ''), coalesce(s.spec ->> 'approval', '')
		from resolver.subscriptions s
		where not exists (select from resolver.clusters c where c.tenant = s.tenant and c.name = s.cluster
		and c.removed)
		order by s.tenant, s.cluster, s.namespace, s.name`)
	if err != nil {
		return nil, pg.Err(err)
	}
	var keys []string
	var labels [][]string
	var tenant, name, installed, channel, pkg, approval string
	var scope resolution.Scope
	_, err = pgx.ForEachRow(rows, []any{
		&tenant, &scope.Cluster, &scope.Namespace, &name, &installed, &channel, &pkg,
		&approval,
	}, func() error {
		keys = append(keys, TallyKey(tenant, scope, name))
		labels = append(labels, []string{
			tenant, scope.Cluster, scope.Namespace, name, installed, channel, pkg,
			approval,
		})
		return nil
	})
	if err != nil {
		return nil, pg.Err(err)
	}
	samples := []telemetry.Sample{{Metric: metricSubscriptions, Value: float64(len(keys))}}
	counts := syncs.Counts(keys)
	for i, key := range keys {
		if n, ok := counts[key]; ok {
			samples = append(samples, telemetry.Sample{Metric: metricSyncs, Value: n, Labels: labels[i]})
		}
	}
	return samples, nil
}

// TallyKey is the key of a subscription in the tally of resolutions.
func TallyKey(tenant string, scope resolution.Scope, name string) string {
	return strings.Join([]string{tenant, scope.Cluster, scope.Namespace, name}, "/")
}
