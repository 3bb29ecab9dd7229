package store

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// gaugeTimeout bounds what a scrape waits for the database; scrapers give up after ten seconds.
const gaugeTimeout = time.Second

// observe shows a gauge until ctx ends. It is read from the database, so that every replica tells the same and none
// forgets it.
func observe(ctx context.Context, name, means string, read func(context.Context) (int64, error)) error {
	m := otel.Meter("github.com/chandler-fleet/chandler/services/gateway")
	gauge, err := m.Int64ObservableGauge(name, metric.WithDescription(means))
	if err != nil {
		return errs.Wrap(errs.Internal, err, "make metrics")
	}
	reg, err := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, gaugeTimeout)
		defer cancel()
		// A gauge that stands still says that all is well: where the table cannot be read there is none.
		if n, err := read(ctx); err == nil {
			o.ObserveInt64(gauge, n)
		}
		return nil
	}, gauge)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "make metrics")
	}
	<-ctx.Done()
	return errs.Wrap(errs.Internal, reg.Unregister(), "end metrics")
}
