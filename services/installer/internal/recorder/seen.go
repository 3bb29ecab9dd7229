package recorder

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// compareEvery is how often the events that a cluster was told of are compared with the log: so soon it is noticed that
// the record was replaced by another one, for a look at two rows a minute for each cluster.
const compareEvery = time.Minute

// sender is who a report comes from, and what it was told of the log.
type sender struct {
	tenant, cluster, id string
	claim               record.Claim
	// whole: the report is about the cluster as a whole. These have one order within a session, and a heartbeat.
	whole     bool
	heartbeat time.Duration
	told      []told
}

// told is a position of the log, with the proof that the hub told of it.
type told struct {
	events.Position
	proof []byte
}

// checkEpoch compares what a cluster was told with the log (DESIGN D1).
//
//	the log holds it                                        nothing
//	the sender is unknown, or does not hold the cluster     nothing: its report is not recorded either
//	it is proved that the hub published it                  the record lost commits: effects stop everywhere
//	that is not, and it lies beyond the log                 errs.Forbidden: this report counts for nothing
//	that is not, and it lies within                         nothing: the key of the proof may have been taken out
//
// A report of a namespace is compared by its position alone; one of the cluster also by the hash of the event there,
// every compareEvery: by it a record that was restored and has gone on is noticed. Where effects are stopped the facts
// of the report are recorded all the same. The proof is not stored in this database, which would have lost it with the
// commits.
func (w *writer) checkEpoch(ctx context.Context, s sender) error {
	doubtful := slices.DeleteFunc(slices.Clone(s.told), func(t told) bool { return t.IsZero() })
	if len(doubtful) == 0 {
		return nil
	}
	if !w.seen.isDue(s) {
		var err error
		if doubtful, err = w.seen.beyond(ctx, doubtful); err != nil || len(doubtful) == 0 {
			return err
		}
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
	held := true
	for _, t := range doubtful {
		ok, err := w.compare(ctx, s, t)
		if err != nil {
			return err
		}
		held = held && ok
	}
	if held {
		w.seen.note(s)
	}
	return nil
}

// compare compares what the holder of a cluster was told with the log. held is false where the log does not hold it, or
// that could not be found out: it is compared again with the next report.
func (w *writer) compare(ctx context.Context, s sender, t told) (held bool, err error) {
	hash, proved := protocol.Proved(s.id, t.Position, t.proof, w.c.Key)
	var lost error
	switch {
	case !proved:
		beyond, err := w.seen.beyond(ctx, []told{t})
		if err != nil || len(beyond) == 0 {
			return true, err
		}
		return false, w.recordFalseClaim(ctx, s, t)
	case hash != "":
		lost = w.c.EventLog.CheckEvent(ctx, t.Position, hash, "cluster "+s.cluster)
	default:
		lost = w.c.EventLog.CheckEpoch(ctx, t.Position, "cluster "+s.cluster)
	}
	if lost != nil {
		w.c.Log.ErrorContext(ctx, "a cluster was told of what the record does not hold", "cluster", s.cluster, "error",
			lost)
	}
	return lost == nil, nil
}

// logSeen is what is known of the log that clusters are compared with. Its methods may be called side by side.
type logSeen struct {
	log  *eventlog.Log
	pool *pg.Pool
	now  func() time.Time

	mu   sync.Mutex
	head events.Position // as far as known
	// compared is when the events that a cluster was told of were last compared with the log, by its id.
	compared map[string]time.Time
}

// isDue reports whether the events that a cluster was told of are to be compared with the log again.
func (l *logSeen) isDue(s sender) bool {
	if !s.whole {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.compared[s.id]
	passed := l.now().Sub(last)
	return !ok || passed >= compareEvery || passed < 0
}

func (l *logSeen) note(s sender) {
	if !s.whole {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.compared) >= maxKeys {
		clear(l.compared)
	}
	l.compared[s.id] = l.now()
}

// beyond returns those that lie behind the end of the log.
func (l *logSeen) beyond(ctx context.Context, list []told) ([]told, error) {
	after := func(head events.Position) (out []told) {
		for _, t := range list {
			if head.Less(t.Position) {
				out = append(out, t)
			}
		}
		return out
	}
	l.mu.Lock()
	last := l.head
	l.mu.Unlock()
	if len(after(last)) == 0 {
		return nil, nil
	}
	head, err := l.log.Head(ctx, l.pool)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.head = head
	l.mu.Unlock()
	return after(head), nil
}

// recordFalseClaim stores a message about a cluster that claims an impossible position.
func (w *writer) recordFalseClaim(ctx context.Context, s sender, t told) error {
	refused := errs.New(errs.Forbidden,
		"cluster %s says that it has acted on the log up to %s, of which the hub never told it: its reports are not "+
			"recorded. "+
			"See who writes ConfigMaps chandler-system/chandler-seen-* there; without its entries it starts from what "+
			"the hub says",
		s.cluster, t.Position).At("seen", "D1")
	err := w.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		return saveMessage(ctx, tx, s.tenant, kindCluster, s.cluster,
			refused.Error())
	})
	if err != nil {
		return pg.Err(err)
	}
	return refused
}
