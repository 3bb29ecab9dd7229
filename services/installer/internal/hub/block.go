package hub

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// blockCommands is the UUIDv5 namespace of the hub's command ids. It is arbitrary and must never change.
var blockCommands = uuid.MustParse("5d0f0a8e-6a52-5c0c-9f0e-0d8c6f7b1a34")

// classConflict is the class of a plan that waits for a decision of people.
const classConflict = "conflict"

// block records in the plan's stream why it gets no grant, once until the reason changes. Two replicas decide on the
// same head: the second one is a conflict, and finds it recorded when it looks again.
func (h *Hub) block(ctx context.Context, tenant string, w withheld) error {
	stream := events.StreamID{
		Kind: events.KindInstallPlan, Key: events.Key(tenant, events.KindInstallPlan, w.plan), Incarnation: 1,
	}
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		recs, err := h.c.EventLog.ReadStream(ctx, tx, tenant, stream, 0)
		if err != nil {
			return err
		}
		if len(recs) == 0 {
			return errs.New(errs.NotFound, "the record does not hold plan %s", w.name)
		}
		payloads := make([]events.Payload, len(recs))
		for i, e := range recs {
			payloads[i] = e.Payload
		}
		state, err := installplan.Fold(payloads...)
		if err != nil {
			return err
		}
		if state.Begun { // meanwhile: it is brought to its end
			return nil
		}
		news, err := installplan.Decide(state, installplan.Block{Class: classConflict, Reason: w.reason})
		if err != nil || len(news) == 0 {
			return err
		}
		last := recs[len(recs)-1]
		command, err := h.c.EventLog.FactCommand(ctx, tx, blockCommands,
			fmt.Sprintf("%s\x00%s\x00%d", tenant, stream, last.Version), news...)
		if err != nil {
			return err
		}
		m := events.Meta{
			Tenant: tenant, Source: events.Installer, Time: h.c.Now().UTC(), Command: command,
			Correlation: last.Correlation, Causation: last.ID, TraceParent: last.TraceParent,
		}
		if m.Correlation == "" {
			m.Correlation = last.ID
		}
		_, err = h.c.EventLog.Append(ctx, tx, m, stream, last.Envelope.Subject, last.Version, news...)
		return err
	})
}
