package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Bus is a connection to NATS that comes back by itself. Its methods may be called from many
// goroutines.
type Bus struct {
	link *natsconn.Link
	conn *nats.Conn // of the link
	js   jetstream.JetStream
	log  *slog.Logger
	// installation is whose streams these are.
	installation string
	hints        *fanout
	// keeper shapes the streams; nil where somebody else does.
	keeper  *StreamSettings
	streams streamStates
	// identity signs questions and answers; nil where none are asked.
	identity Identity
}

// Option changes how Connect connects.
type Option func(*options)

type options struct {
	log          *slog.Logger
	name         string
	installation string
	keeper       *StreamSettings
	identity     Identity
}

// WithLog says where changes of the connection's state are logged; slog.Default without it.
func WithLog(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithInstallation says whose streams these are (eventlog.Installation).
func WithInstallation(id string) Option { return func(o *options) { o.installation = id } }

// WithStreams lets this connection make, change and empty the streams of the installation. Without it they are found as
// somebody else made them.
func WithStreams(s StreamSettings) Option { return func(o *options) { o.keeper = &s } }

// WithName is the name that the NATS server shows for this connection, and of the user whose inboxes it has
// (natsauth.Inbox).
func WithName(name string) Option { return func(o *options) { o.name = name } }

// Connect connects to NATS. While NATS is away it waits, having said so once, until ctx ends; later
// losses of the connection are repaired by itself, for ever. Settings that cannot be read are errs.Invalid, and so is a
// server that refuses them or must not be used (natsconn.Settings.Refuse).
func Connect(ctx context.Context, access natsconn.Settings, opts ...Option) (*Bus, error) {
	o := options{log: slog.Default(), name: "chandler"}
	for _, f := range opts {
		f(&o)
	}
	b := &Bus{
		log: o.log, hints: newFanout(), installation: o.installation, keeper: o.keeper, streams: newStreamStates(),
		identity: o.identity,
	}
	link, err := natsconn.Dial(ctx, access, natsconn.LinkOptions{
		Name: o.name, Inbox: natsauth.Inbox(o.name), Log: o.log, Away: "going on from Postgres",
		// Hints only wake; one that was dropped here had others before it in the queue.
		Dropped: func(err error) { b.log.Debug("NATS hints dropped at a full queue", "error", err) },
		Back:    b.hints.wakeAll,
	})
	if err != nil {
		return nil, err
	}
	b.link, b.conn = link, link.Conn()
	if b.js, err = jetstream.New(b.conn); err != nil {
		b.conn.Close()
		return nil, errs.Wrap(errs.Internal, err, "open JetStream")
	}
	if err := b.subscribeHints(); err != nil {
		b.conn.Close()
		return nil, err
	}
	return b, nil
}

// Conn is the connection itself.
func (b *Bus) Conn() *nats.Conn { return b.conn }

// JetStream is the JetStream side of the connection.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// Check is nil while NATS is connected; for readiness.
func (b *Bus) Check(ctx context.Context) error { return b.link.Check(ctx) }

// Close lets what is under way finish, within some seconds, and ends the connection. It may be called twice.
func (b *Bus) Close() { b.link.Close() }

func (b *Bus) subscribeHints() error {
	_, err := b.conn.Subscribe(protocol.SubjectEvents+".>", func(*nats.Msg) { b.hints.wakeAll() })
	return errs.Wrap(errs.Unavailable, err, "subscribe to hints")
}

// Hints returns a channel that gets a value when there may be news in the log. Its buffer is one: a
// reader that is busy finds at most one waiting, whatever came meanwhile. stop ends it.
func (b *Bus) Hints() (c <-chan struct{}, stop func()) { return b.hints.add() }

// fanout wakes any number of waiters, each at most once until it has read.
type fanout struct {
	mu   sync.Mutex
	next int
	all  map[int]chan struct{}
}

func newFanout() *fanout { return &fanout{all: map[int]chan struct{}{}} }

func (f *fanout) add() (<-chan struct{}, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, c := f.next, make(chan struct{}, 1)
	f.next++
	f.all[id] = c
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.all, id)
	}
}

func (f *fanout) wakeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.all {
		signal(c)
	}
}

// signal wakes the reader of a channel with a buffer of one; a reader that is already woken stays so.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fmtErr is err's text, or "" for nil.
func fmtErr(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err)
}
