package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// scheduleTick is how often the tables are asked for what is due: a subscription that waits for a bundle
// image waits so much longer at most.
const scheduleTick = 500 * time.Millisecond

// scheduler marks what is due, in the lanes of polls and of bundle images.
type scheduler struct {
	pool   *pg.Pool
	store  *store.Store
	lanes  *bus.Lanes // catalogs to be polled
	images *bus.Lanes // catalogs with bundle images to be fetched
	every  time.Duration
	log    *slog.Logger
}

// run marks what is due: catalogs to be polled again, bundle images that the resolver waits for, and
// those to be tried again.
func (s *scheduler) run(ctx context.Context) error {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	trouble := false
	for {
		err := s.markDue(ctx)
		if err != nil && ctx.Err() == nil && !trouble {
			s.log.WarnContext(ctx, "cannot find out which catalogs are due; trying again", "error", err)
		}
		trouble = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *scheduler) markDue(ctx context.Context) error {
	due, err := s.store.Catalogs.Due(ctx)
	if err != nil {
		return err
	}
	if err := s.mark(ctx, s.lanes, bus.FanOut, due); err != nil {
		return err
	}
	if err := s.markWanted(ctx); err != nil {
		return err
	}
	needed, ahead, err := s.store.Images.DueFetches(ctx)
	if err != nil {
		return err
	}
	if err := s.mark(ctx, s.images, bus.Interactive, needed); err != nil {
		return err
	}
	return s.mark(ctx, s.images, bus.FanOut, ahead)
}

// markWanted takes up what the resolver waits for.
func (s *scheduler) markWanted(ctx context.Context) error {
	found := false
	err := s.pool.Tx(ctx, func(tx pgx.Tx) error {
		keys, err := store.TakeUpWanted(ctx, tx)
		found = len(keys) > 0
		if err != nil || !found {
			return err
		}
		return s.images.Mark(ctx, tx, bus.Interactive, scopes(keys, "", "")...)
	})
	if found {
		s.images.Wake()
	}
	return err
}

func (s *scheduler) mark(ctx context.Context, lanes *bus.Lanes, lane bus.Lane, keys []store.Key) error {
	if len(keys) == 0 {
		return nil
	}
	defer lanes.Wake()
	return s.pool.Tx(ctx, func(tx pgx.Tx) error { return lanes.Mark(ctx, tx, lane, scopes(keys, "", "")...) })
}
