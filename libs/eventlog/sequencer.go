package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// lease is how long a leader leads without a sign of life. A healthy one prolongs it in every second
	// half; after a crash nothing gets a position for at most this long.
	lease = 2 * time.Second
	// candidacy is how often a candidate asks whether the lease has run out, which costs one read of one row, and the
	// pause after an error of the database.
	candidacy = 250 * time.Millisecond
	// Handover is how long nothing gets a position after a leader was killed: those who wait for a
	// position and want to survive that wait longer.
	Handover = lease + candidacy
	// batch bounds one move, so that its transaction stays at some 20 ms.
	batch = 1000
	// busyPause and idlePause bound the pause after a move that found less than a full batch. The
	// pause doubles from the one to the other while nothing comes: 10 cheap queries a second at rest. Each move is a
	// transaction that waits for the disk and wakes every reader of the log: one for what comes within busyPause. Who
	// waits for a position ends the pause.
	busyPause = 8 * time.Millisecond
	idlePause = 100 * time.Millisecond
)

// Options of a Sequencer.
type Options struct {
	// ID names the candidate; two alive at once must differ. A service uses its name and a random part.
	ID  string
	Log *slog.Logger // default slog.Default()
	// Lead runs beside the sequencer for as long as this candidate leads; its ctx ends with the term. The
	// publisher of hints is one. A leader whose term has passed may notice late, so that what Lead does
	// outside the database must be fenced there. If it returns, it is started again after a pause.
	Lead func(ctx context.Context) error
	// Compare compares the record with what was seen of it outside. It runs when the record stands on another server or
	// timeline, before a position is given there: an event in the place of a lost one would hide the loss, and readers
	// take the one for the other. What takes longer than compareBound is left to Lead, and positions are given.
	Compare func(ctx context.Context) error
}

// compareBound keeps the comparison within the lease, so that nobody else gives positions meanwhile.
const compareBound = lease / 2

// Sequencer is one candidate for giving positions. Every service hosts one, one of them leads.
type Sequencer struct {
	log  *Log
	o    Options
	term atomic.Int64 // while leading, else 0
}

// NewSequencer returns a candidate; Run makes it one.
func NewSequencer(l *Log, o Options) *Sequencer {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("sequencer", o.ID)
	return &Sequencer{log: l, o: o}
}

// Run is a candidate until ctx ends, then hands over at once. Errors of the database are logged and
// tried again; it returns nil.
func (s *Sequencer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		term, ok, err := s.campaign(ctx)
		switch {
		case err != nil:
			s.warn(ctx, err)
			pause(ctx)
		case !ok:
			pause(ctx)
		default:
			s.lead(ctx, term)
		}
	}
	return nil
}

// answerBound is how long a stopping candidate waits for the answer of a busy database.
const answerBound = 5 * time.Second

// campaign asks to be the leader.
func (s *Sequencer) campaign(ctx context.Context) (int64, bool, error) {
	// The end of ctx does not cut this short: a term whose answer was lost could not be resigned.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerBound)
	defer cancel()
	var term *int64
	if err := s.log.pool.QueryRow(ctx, `select eventlog.lead($1, $2)`, s.o.ID, lease).Scan(&term); err != nil {
		return 0, false, fmt.Errorf("ask to lead the sequencing: %w", pg.Err(err))
	}
	if term == nil {
		return 0, false, nil
	}
	return *term, true, nil
}

// lead gives positions until the term has passed or ctx ends.
func (s *Sequencer) lead(ctx context.Context, term int64) {
	ctx, end := context.WithCancel(ctx)
	s.term.Store(term)
	s.o.Log.InfoContext(ctx, "leads the sequencing of the log", "term", term)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.runLead(ctx)
	}()
	err := s.sequence(ctx, term)
	end()
	s.term.Store(0)
	<-ended
	if err != nil {
		s.o.Log.InfoContext(ctx, "no longer leads the sequencing of the log", "term", term, "error", err)
		return
	}
	s.resign(ctx, term)
}

// runLead runs the Lead option again and again.
func (s *Sequencer) runLead(ctx context.Context) {
	for s.o.Lead != nil && ctx.Err() == nil {
		if err := s.o.Lead(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.WarnContext(ctx, "what the leader runs beside the sequencing failed; it starts again", "error", err)
		}
		pause(ctx)
	}
}

// resign lets the next candidate begin at once.
func (s *Sequencer) resign(ctx context.Context, term int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerBound)
	defer cancel()
	if _, err := s.log.pool.Exec(ctx, `select eventlog.resign($1)`, term); err != nil {
		s.warn(ctx, fmt.Errorf("resign as sequencer: %w", pg.Err(err)))
	}
}

// sequence moves batch after batch until ctx ends (nil) or the term has passed (an error).
func (s *Sequencer) sequence(ctx context.Context, term int64) error {
	began := time.Now() // its monotone part is what the clock of the database is compared with
	for ctx.Err() == nil {
		err := s.onOneConnection(ctx, term, began)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errOtherServer):
			s.resign(ctx, term)
			return err
		case errs.Is(err, errs.Conflict):
			return err
		default:
			s.warn(ctx, err)
			pause(ctx)
		}
	}
	return nil
}

// onOneConnection moves batches on a connection that it keeps, so that positions are given also while
// everybody else of the pool waits for one. It returns at the first error.
func (s *Sequencer) onOneConnection(ctx context.Context, term int64, began time.Time) error {
	conn, err := s.log.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("give positions: %w", pg.Err(err))
	}
	defer conn.Release()
	if err := s.watchServer(ctx, conn); err != nil {
		return err
	}
	wait := busyPause
	for ctx.Err() == nil {
		led := time.Since(began)
		m, err := sequence(ctx, conn, term, batch, &led)
		if err != nil {
			return err
		}
		if m.jumped != nil {
			s.o.Log.WarnContext(ctx, "the clock of the database has jumped; a jump ahead is followed slowly",
				"by", m.jumped.String(), "head", m.head.String())
		}
		if m.moved > 0 {
			wait = busyPause
		}
		if m.moved < batch { // otherwise there is more
			s.rest(ctx, wait)
			wait = min(2*wait, idlePause)
		}
	}
	return nil
}

// errOtherServer ends a term: the next one begins with what a leader compares at its beginning, so that commits which
// the record lost on its way to another server are noticed at once.
var errOtherServer = errors.New("the record stands on another server or timeline")

// watchServer compares the server of a new connection with the one on which the record stood before. A fail-over or a
// restore cannot be reached on an old connection. The change is noted after the comparison: who is killed between them
// leaves it to the next leader.
func (s *Sequencer) watchServer(ctx context.Context, conn *pgxpool.Conn) error {
	var changed *string
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select eventlog.watch_server()`).Scan(&changed); err != nil || changed == nil {
			return err
		}
		s.o.Log.WarnContext(ctx, "the record stands on another server or timeline; it is compared with what was seen of it",
			"change", *changed)
		s.compare(ctx)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at which server the record stands on: %w", pg.Err(err))
	}
	if changed != nil {
		return errOtherServer
	}
	return nil
}

func (s *Sequencer) compare(ctx context.Context) {
	if s.o.Compare == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, compareBound)
	defer cancel()
	if err := s.o.Compare(ctx); err != nil {
		s.o.Log.WarnContext(ctx, "the record could not be compared before it goes on; that is tried again beside",
			"error", err)
	}
}

func (s *Sequencer) warn(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.o.Log.WarnContext(ctx, "the sequencer cannot reach the database; it tries again", "error", err)
	}
}

// move is what one call of eventlog.sequence did.
type move struct {
	moved  int
	head   events.Position
	narrow bool
	jumped *time.Duration // of the clock of the database
}

// sequence moves one batch under a term, and sees to it that there are partitions ahead. led is how long the term has
// lasted by a monotone clock, nil where that is not known.
func sequence(ctx context.Context, q pg.Querier, term int64, limit int, led *time.Duration) (move, error) {
	var m move
	err := q.QueryRow(ctx, `select moved, epoch, head, narrow, jumped from eventlog.sequence($1, $2, $3, $4)`,
		term, limit, lease, led).Scan(&m.moved, &m.head.Epoch, &m.head.N, &m.narrow, &m.jumped)
	if err != nil {
		return m, fmt.Errorf("give positions: %w", pg.Err(err))
	}
	// One whole partition ahead is kept, so that a failure here has hours to be fixed.
	if m.narrow {
		if _, err := q.Exec(ctx, `select eventlog.extend()`); err != nil {
			return m, fmt.Errorf("make partitions ahead: %w", pg.Err(err))
		}
	}
	return m, nil
}

// rest waits until somebody waits for a position, for at most d.
func (s *Sequencer) rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-s.log.awaited:
	case <-t.C:
	}
}

func pause(ctx context.Context) {
	t := time.NewTimer(candidacy)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
