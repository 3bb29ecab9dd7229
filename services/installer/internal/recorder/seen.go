package recorder

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// sender is who a report comes from, and what it has acted on.
type sender struct {
	tenant, cluster, id string
	claim               record.Claim
	whole               bool // the report is about the cluster as a whole: these have one order within a session
	seen                events.Position
	proof               []byte
}

// checkEpoch compares what a cluster has acted on with the log (DESIGN D1).
//
//	the log holds it                                        nothing
//	the sender is unknown, or does not hold the cluster     nothing: its report is not recorded either
//	it is proved that the hub published it                  the record lost commits: effects stop everywhere
//	that is not                                             errs.Forbidden: this report counts for nothing
//
// Where effects are stopped the facts of the report are recorded all the same. The proof is not stored in this
// database, which would have lost it with the commits.
func (w *writer) checkEpoch(ctx context.Context, s sender) error {
	if more, err := w.beyondHead(ctx, s.seen); err != nil || !more {
		return err
	}
	holds := false
	err := w.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := checkRegistered(ctx, tx, s.tenant, s.id, s.cluster); err != nil {
			return err
		}
		known, err := w.classifySender(ctx, tx, s)
		holds = known.sender == record.SenderHolder
		return err
	})
	if err != nil || !holds {
		return pg.Err(err)
	}
	if !protocol.Proved(s.id, s.seen, s.proof, w.c.Key) {
		return w.recordFalseClaim(ctx, s)
	}
	if err := w.c.EventLog.CheckEpoch(ctx, s.seen, "cluster "+s.cluster); err != nil {
		w.c.Log.ErrorContext(ctx, "a cluster has acted on more than the record holds", "cluster", s.cluster, "error",
			err)
	}
	return nil
}

// beyondHead reports whether a position lies behind the end of the log.
func (w *writer) beyondHead(ctx context.Context, seen events.Position) (bool, error) {
	w.mu.Lock()
	last := w.head
	w.mu.Unlock()
	if seen.IsZero() || !last.Less(seen) {
		return false, nil
	}
	head, err := w.c.EventLog.Head(ctx, w.c.Pool)
	if err != nil {
		return false, err
	}
	w.mu.Lock()
	w.head = head
	w.mu.Unlock()
	return head.Less(seen), nil
}

// recordFalseClaim stores a message about a cluster that claims an impossible position.
func (w *writer) recordFalseClaim(ctx context.Context, s sender) error {
	refused := errs.New(errs.Forbidden,
		"cluster %s says that it has acted on the log up to %s, of which the hub never told it: its reports are not "+
			"recorded. "+
			"See who writes ConfigMaps chandler-system/chandler-seen-* there; without its entries it starts from what "+
			"the hub says",
		s.cluster, s.seen).At("seen", "D1")
	err := w.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		return saveMessage(ctx, tx, s.tenant, kindCluster, s.cluster,
			refused.Error())
	})
	if err != nil {
		return pg.Err(err)
	}
	return refused
}
