package eventlog

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Log reads and writes the event log through one pool. It is safe for concurrent use.
type Log struct {
	pool *pg.Pool

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every notice that there are new positions

	awaited chan struct{} // holds one element from when somebody waits for a position until the sequencer acts on it
}

// New returns the log of the pool's database. Notices of new positions arrive while Listen runs.
func New(pool *pg.Pool) *Log {
	return &Log{pool: pool, changed: make(chan struct{}), awaited: make(chan struct{}, 1)}
}

// Recorded is an event as the log holds it. Position and Recorded are zero while it has no position yet.
type Recorded struct {
	events.Envelope
	Position events.Position
	Recorded time.Time // when it got its position; never before that of an earlier position
	Bytes    []byte    // the envelope's JSON exactly as it was stored
	Hash     digest.Digest
	Payload  events.Payload // decoded data; nil where the reader asked for raw events
	StreamID events.StreamID
	// Broken says why the bytes are no envelope; then only what the columns of the row hold is filled in. Only readers
	// of raw events meet it: for the others it is an error.
	Broken error
}

// Decode fills Payload. The error of a type unknown to this program is an *events.UnknownTypeError; any other says that
// these bytes will never be read.
func (r *Recorded) Decode() error { return r.decode() }

// Appended says what Append did.
type Appended struct {
	Tenant  string
	Stream  events.StreamID
	Version int64 // of the last event
	Events  []events.Envelope
	// Repeated says that the command had been carried out before: nothing was appended now, Events is
	// empty and Version that of the last event of back then (AppendOnce).
	Repeated bool
}

// ConflictError says that a stream is not where its decider thought. Its kind is errs.Conflict, or
// errs.AlreadyExists where the stream was expected not to exist.
type ConflictError struct {
	Tenant   string
	Stream   events.StreamID
	Subject  string
	Expected int64
	Actual   int64
	kind     *errs.Error
}

func (e *ConflictError) Error() string {
	if e.Expected == 0 {
		return fmt.Sprintf("%s %q already exists: stream %s is at version %d", e.Stream.Kind, e.Subject, e.Stream,
			e.Actual)
	}
	return fmt.Sprintf("%s %q has changed: stream %s is at version %d, the decision was made at version %d",
		e.Stream.Kind, e.Subject, e.Stream, e.Actual, e.Expected)
}

// Unwrap gives the error its kind.
func (e *ConflictError) Unwrap() error { return e.kind }

// StreamHead is where the last incarnation of a natural key stands.
type StreamHead struct {
	ID      events.StreamID
	Version int64 // 0: there is none; ID is then the first incarnation
	Closed  bool  // the last event ended the stream
}

// Exists reports whether the thing lives: it was created and has not ended.
func (h StreamHead) Exists() bool { return h.Version > 0 && !h.Closed }

// Create returns the stream that a create must append to, expecting version 0. Where the thing lives
// this is its stream, so that the append collides: an exact "already exists".
func (h StreamHead) Create() events.StreamID {
	id := h.ID
	if h.Closed {
		id.Incarnation++
	}
	return id
}

// Verify checks that the stored bytes are what was hashed and what the envelope says.
func Verify(r Recorded) error {
	if got := digest.Bytes(r.Bytes); got != r.Hash {
		return errs.New(errs.Internal,
			"event %s at %s: its bytes have the hash %s, the record says %s: it was altered after it was appended",
			r.ID, r.Position, got, r.Hash)
	}
	var stored events.Envelope
	if err := json.Unmarshal(r.Bytes, &stored); err != nil {
		return errs.Wrap(errs.Internal, err, "event %s at %s: read its bytes", r.ID, r.Position)
	}
	if stored.ID != r.ID || stored.Type != r.Type || stored.Tenant != r.Tenant ||
		stored.Stream != r.StreamID.String() || stored.Version != r.Version {
		return errs.New(errs.Internal, "event %s at %s: the columns of its row do not say what its bytes say", r.ID,
			r.Position)
	}
	return nil
}
