package app

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// pollTick is how often the tables are asked for what is due: a subscription that waits for a bundle
// image waits so much longer at most.
const pollTick = 500 * time.Millisecond

// fillAgain is when making stored packages findable is tried again.
const fillAgain = 30 * time.Second

// poll marks what is due: catalogs to be looked at again, bundle images that the resolver waits for, and
// those to be tried again.
func (a *App) poll(ctx context.Context) error {
	tick := time.NewTicker(min(a.cfg.Poll, pollTick))
	defer tick.Stop()
	trouble := false
	for {
		err := a.markDue(ctx)
		if err != nil && ctx.Err() == nil && !trouble {
			a.Telemetry.Log.WarnContext(ctx, "cannot find out which catalogs are due; trying again", "error", err)
		}
		trouble = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *App) markDue(ctx context.Context) error {
	due, err := a.store.Due(ctx)
	if err != nil {
		return err
	}
	if err := a.mark(ctx, a.lanes, bus.FanOut, due); err != nil {
		return err
	}
	if err := a.markWanted(ctx); err != nil {
		return err
	}
	needed, ahead, err := a.store.DueFetches(ctx)
	if err != nil {
		return err
	}
	if err := a.mark(ctx, a.images, bus.Interactive, needed); err != nil {
		return err
	}
	return a.mark(ctx, a.images, bus.FanOut, ahead)
}

// markWanted takes up what the resolver waits for.
func (a *App) markWanted(ctx context.Context) error {
	found := false
	err := a.Pool.Tx(ctx, func(tx pgx.Tx) error {
		keys, err := a.store.Wanted(ctx, tx)
		found = len(keys) > 0
		if err != nil || !found {
			return err
		}
		return a.images.Mark(ctx, tx, bus.Interactive, scopes(keys, "", "")...)
	})
	if found {
		a.images.Wake()
	}
	return err
}

func (a *App) mark(ctx context.Context, lanes *bus.Lanes, lane bus.Lane, keys []store.Key) error {
	if len(keys) == 0 {
		return nil
	}
	defer lanes.Wake()
	return a.Pool.Tx(ctx, func(tx pgx.Tx) error { return lanes.Mark(ctx, tx, lane, scopes(keys, "", "")...) })
}

// fillSearch makes findable what a release before stored, once.
func (a *App) fillSearch(ctx context.Context) error {
	tick := time.NewTicker(fillAgain)
	defer tick.Stop()
	for {
		err := a.store.FillSearch(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		a.Telemetry.Log.WarnContext(ctx, "cannot make stored packages findable; trying again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// schedule says when a source is to be looked at again by itself (R-CAT-95); never is the zero time. An
// interval that cannot be used is replaced and reported (R-CAT-96).
func (a *App) schedule(t source.Type, s source.Settings, r *store.Report) {
	standard := a.cfg.RemotePoll
	if s.URL == "" && s.Path != "" {
		standard = a.cfg.Poll
	}
	if s.Image != "" && strings.Contains(s.Image, "@") && t == source.Image {
		standard = 0 // a digest never means something else
	}
	interval, replaced := source.PollInterval(s.Poll, standard)
	if replaced {
		r.Error = "poll interval " + s.Poll + " cannot be used; " + interval.String() + " is used instead"
		r.ErrorReason = source.ReasonInvalidInterval
	}
	r.NextLook = time.Time{}
	if interval > 0 {
		r.NextLook = a.now().Add(interval)
	}
}
