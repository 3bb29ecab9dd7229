package eventlog

import "context"

// Sequence lets tests move one batch by hand; it returns how many events moved.
func (l *Log) Sequence(ctx context.Context, term int64, limit int) (int, error) {
	m, err := sequence(ctx, l.pool, term, limit, nil)
	return m.moved, err
}

// Batch is how many events one move takes at most.
const Batch = batch

// ScanWindow is how many positions one filtered read looks at.
const ScanWindow = scanWindow

// Lease is how long a leader leads without a sign of life.
const Lease = lease

// Leading reports whether this candidate leads as far as it knows.
func (s *Sequencer) Leading() bool { return s.term.Load() != 0 }
