package app

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// collectEvery is how often the collector runs; garbage is no hurry.
const collectEvery = time.Hour

// collector removes content that nobody refers to.
type collector struct {
	store     *store.Store
	retention service.Retention // of what is not served any more
	log       *slog.Logger
	now       func() time.Time
}

// run removes content that nobody refers to, at the start and then every hour (DESIGN D3). Every
// replica may do it: a turn that finds nothing costs a few queries.
func (g *collector) run(ctx context.Context) error {
	if err := g.retention.Check(); err != nil {
		return err
	}
	if g.retention.LegalHold {
		g.log.InfoContext(ctx, "a legal hold is set: nothing of catalogs is removed")
		<-ctx.Done()
		return nil
	}
	count, err := newCollected()
	if err != nil {
		return err
	}
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		if err := g.collectOnce(ctx, count); err != nil && ctx.Err() == nil {
			g.log.WarnContext(
				ctx, "cannot collect content that is not referred to; trying again at the next turn", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// collectOnce is one turn. What it removed before an error is counted, too.
func (g *collector) collectOnce(ctx context.Context, count *collected) error {
	began := g.now()
	c, err := g.store.Collector.Collect(ctx, g.retention.Period())
	count.add(ctx, c)
	if c.Postponed != nil {
		g.log.InfoContext(ctx, "what events refer to stays until the event about it may be written", "why", c.Postponed)
	}
	for _, over := range c.PassedOver {
		g.log.WarnContext(ctx, "cannot find out what a package document refers to; keeping all that it may",
			"error", over)
	}
	if c.Total() > 0 {
		args := []any{"bytes", c.Bytes, "took", g.now().Sub(began).Round(time.Millisecond).String()}
		for kind, n := range c.Rows {
			if n > 0 {
				args = append(args, kind, n)
			}
		}
		g.log.InfoContext(ctx, "collected content that nothing refers to", args...)
	}
	return err
}

// collected counts what the collector removed.
type collected struct{ rows, bytes metric.Int64Counter }

func newCollected() (*collected, error) {
	m := otel.Meter("github.com/chandler-fleet/chandler/services/catalog-indexer")
	rows, err := m.Int64Counter("chandler.catalog.collected",
		metric.WithDescription("rows that nothing referred to any more, by kind"))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make metrics")
	}
	bytes, err := m.Int64Counter("chandler.catalog.collected.bytes", metric.WithUnit("By"),
		metric.WithDescription("bytes of these rows"))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make metrics")
	}
	return &collected{rows, bytes}, nil
}

func (m *collected) add(ctx context.Context, c store.Collected) {
	for kind, n := range c.Rows {
		m.rows.Add(ctx, int64(n), metric.WithAttributes(attribute.String("kind", kind)))
	}
	m.bytes.Add(ctx, c.Bytes)
}
