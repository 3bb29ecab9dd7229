// Package parked shows the events that consumers of the log could not take, and lets administrators have them tried
// again or skipped.
package parked

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/audit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// Service shows parked events and decides about them.
type Service struct{ Units *unit.Runner }

// List lists what is parked of the caller's tenant, by consumer, stream and version; consumer "" is all of them.
func (s *Service) List(ctx context.Context, who model.Caller, consumer string) (items []model.ParkedEvent, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		list, err := bus.ListParked(ctx, u.Tx, who.Tenant, consumer)
		for _, p := range list {
			items = append(items, shown(p))
		}
		return err
	})
	return items, err
}

// Skipped lists what consumers went on without, the last first.
func (s *Service) Skipped(
	ctx context.Context, who model.Caller, consumer string,
) (items []model.SkippedEvent, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		list, err := bus.ListSkipped(ctx, u.Tx, who.Tenant, consumer)
		for _, p := range list {
			items = append(items, model.SkippedEvent{
				ParkedEvent: shown(p.Parked), SkippedAt: p.Skipped, SkippedBy: p.SkippedBy, Why: p.Why,
			})
		}
		return err
	})
	return items, err
}

// Get returns one parked event with its bytes.
func (s *Service) Get(ctx context.Context, who model.Caller, ref model.ParkedRef) (out model.ParkedEvent, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		p, body, err := bus.ReadParked(ctx, u.Tx, who.Tenant, ref.Consumer, ref.Stream, ref.Version)
		out = shown(p)
		out.Body = body
		return err
	})
	return out, err
}

// Retry has parked events tried again at once.
func (s *Service) Retry(ctx context.Context, who model.Caller, in model.RetryParked) error {
	return s.Units.Once(ctx, who, func(u *unit.Work) error {
		if err := bus.RetryParked(ctx, u.Tx, who.Tenant, in.Consumer, in.Stream); err != nil {
			return err
		}
		return audit.Record(ctx, u, preview.ActionParkedRetry, in.Consumer+" "+in.Stream, uuid.Nil)
	})
}

// Skip has a consumer go on without an event, the first one that is parked of its stream. Who decided that, and why, is
// kept in the same transaction.
func (s *Service) Skip(ctx context.Context, who model.Caller, in model.SkipParked) error {
	return s.Units.Once(ctx, who, func(u *unit.Work) error {
		err := bus.SkipParked(ctx, u.Tx, who.Tenant, in.Consumer, in.Stream, in.Version, who.Person(), in.Reason)
		if err != nil {
			return err
		}
		about := fmt.Sprintf("%s %s@%d", in.Consumer, in.Stream, in.Version)
		return audit.Record(ctx, u, preview.ActionParkedSkip, about, uuid.Nil)
	})
}

func shown(p bus.Parked) model.ParkedEvent {
	return model.ParkedEvent{
		Consumer: p.Consumer, Stream: p.Stream, Version: p.Version, Position: p.Position.String(), Type: string(p.Type),
		Reason: p.Reason, Attempts: p.Attempts, Since: p.Since, NextRetry: p.NextRetry,
	}
}
