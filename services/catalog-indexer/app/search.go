package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// fillAgain is when making stored packages findable is tried again.
const fillAgain = 30 * time.Second

// searchFiller makes findable what a release before stored.
type searchFiller struct {
	store *store.Store
	log   *slog.Logger
}

// run makes findable what a release before stored, once.
func (s *searchFiller) run(ctx context.Context) error {
	tick := time.NewTicker(fillAgain)
	defer tick.Stop()
	for {
		err := s.store.Search.Fill(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		s.log.WarnContext(ctx, "cannot make stored packages findable; trying again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
