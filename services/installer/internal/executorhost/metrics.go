package executorhost

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// Names of the metrics about the placement.
const (
	metricClusters = "chandler_installer_replica_clusters"
	metricWeight   = "chandler_installer_replica_weight"
	metricCapacity = "chandler_installer_replica_capacity"
	metricRecorded = "chandler_installer_replica_recorded"
	metricMoves    = "chandler_installer_replica_moves"
	metricUnplaced = "chandler_installer_unplaced"
)

// Metrics are those about the placement. All replicas have the same figures, since they read the same table.
func Metrics() []telemetry.Metric {
	replica := []string{"replica"}
	return []telemetry.Metric{
		{Name: metricClusters, Doc: "clusters whose executors a live replica runs", Labels: replica},
		{Name: metricWeight, Doc: "weight of the clusters that are placed on a live replica", Labels: replica},
		{Name: metricCapacity, Doc: "weight that a live replica takes; 0 is any", Labels: replica},
		{Name: metricRecorded, Doc: "clusters whose reports a live replica records", Labels: replica},
		{Name: metricMoves, Doc: "executors that a live replica gave to another one", Labels: replica, Counter: true},
		{Name: metricUnplaced, Doc: "clusters for which no replica has room"},
	}
}

// Samples reads the metrics.
func Samples(ctx context.Context, pool *pg.Pool) ([]telemetry.Sample, error) {
	rows, err := pool.Query(ctx, `select name, clusters::float8, load::float8, capacity::float8, recorded::float8,
		moves::float8, unplaced::float8 from installer.replicas where tenant = $1 and heard > now() - $2::interval
		order by name`, events.AllTenants, replicaTimeout)
	if err != nil {
		return nil, pg.Err(err)
	}
	var samples []telemetry.Sample
	var name string
	var clusters, load, capacity, recorded, moves, without, unplaced float64
	_, err = pgx.ForEachRow(rows, []any{&name, &clusters, &load, &capacity, &recorded, &moves, &without}, func() error {
		label := []string{name}
		unplaced = max(unplaced, without)
		samples = append(samples,
			telemetry.Sample{Metric: metricClusters, Value: clusters, Labels: label},
			telemetry.Sample{Metric: metricWeight, Value: load, Labels: label},
			telemetry.Sample{Metric: metricCapacity, Value: capacity, Labels: label},
			telemetry.Sample{Metric: metricRecorded, Value: recorded, Labels: label},
			telemetry.Sample{Metric: metricMoves, Value: moves, Labels: label})
		return nil
	})
	return append(samples, telemetry.Sample{Metric: metricUnplaced, Value: unplaced}), pg.Err(err)
}
