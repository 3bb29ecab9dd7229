package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// reconnectWait is the pause between two attempts to reach NATS: short, since a restart of one node
// takes about a second and everything that waits for a hint waits this long more.
const reconnectWait = 250 * time.Millisecond

// connectTimeout bounds one attempt, so that a host that drops packets does not hold the loop.
const connectTimeout = 2 * time.Second

// drainTimeout bounds how long Close waits for what is under way.
const drainTimeout = 5 * time.Second

// Bus is a connection to NATS that comes back by itself. Its methods may be called from many
// goroutines.
type Bus struct {
	conn *nats.Conn
	js   jetstream.JetStream
	log  *slog.Logger
	// access is asked whenever the connection is made, also to another server.
	access natsconn.Settings
	// refused is why the server of the connection must not be used: an error, or nil.
	refused atomic.Pointer[error]
	// refusal: it was said that the server does not let us in.
	refusal atomic.Bool
	// installation is whose streams these are.
	installation string
	hints        *fanout
	// keeper shapes the streams; nil where somebody else does.
	keeper  *StreamSettings
	streams streamStates
	// identity signs questions and answers; nil where none are asked.
	identity Identity

	closed    chan struct{}
	closeOnce sync.Once
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
		log: o.log, hints: newFanout(), closed: make(chan struct{}), access: access, installation: o.installation,
		keeper: o.keeper, streams: newStreamStates(), identity: o.identity,
	}
	access.Trouble = func(err error) {
		b.log.Warn("certificates for NATS were renewed and cannot be used; going on with those before", "error", err)
	}
	identity, err := access.Options()
	if err != nil {
		return nil, err
	}
	up := make(chan struct{}, 1)
	conn, err := nats.Connect(access.URL, append(b.natsOptions(o.name, up), identity...)...)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "connect to NATS, which CHANDLER_NATS_URL names")
	}
	b.conn = conn
	if err := errors.Join(b.waitConnected(ctx, up), access.Refuse(conn)); err != nil {
		conn.Close()
		return nil, err
	}
	if b.js, err = jetstream.New(conn); err != nil {
		conn.Close()
		return nil, errs.Wrap(errs.Internal, err, "open JetStream")
	}
	if err := b.subscribeHints(); err != nil {
		conn.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bus) natsOptions(name string, up chan<- struct{}) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.CustomInboxPrefix(natsauth.Inbox(name)),
		nats.RetryOnFailedConnect(true),
		// waitConnected ends at once if the server refuses us at the start. Later, it may be between two
		// configurations.
		nats.IgnoreAuthErrorAbort(),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait/4, reconnectWait/4),
		nats.Timeout(connectTimeout),
		nats.DrainTimeout(drainTimeout),
		// A message that cannot be sent now fails now: everything here is sent again from the record.
		nats.ReconnectBufSize(-1),
		nats.ConnectHandler(func(*nats.Conn) { signal(up) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { b.logLost(err) }),
		nats.ReconnectHandler(func(c *nats.Conn) { b.back(c) }),
		nats.ClosedHandler(func(*nats.Conn) { b.closeOnce.Do(func() { close(b.closed) }) }),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) { b.logError(s, err) }),
	}
}

// back looks at the server of a connection that is there again: it may be another one.
func (b *Bus) back(c *nats.Conn) {
	if err := b.access.Refuse(c); err != nil {
		b.refused.Store(&err)
		b.log.Error("NATS is not used any more", "error", err)
		c.Close()
		return
	}
	b.refusal.Store(false)
	b.log.Info("NATS is back")
	b.hints.wakeAll()
}

func (b *Bus) logLost(err error) {
	if err == nil { // closed by us
		return
	}
	b.log.Warn("NATS is away; going on from Postgres and waiting for it", "error", err)
}

func (b *Bus) logError(s *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		// Hints only wake; one that was dropped here had others before it in the queue.
		b.log.Debug("NATS hints dropped at a full queue", "error", err)
		return
	}
	if refusal(err) {
		if b.refusal.Swap(true) { // every attempt says it
			return
		}
		b.log.Error("NATS does not let us in; trying again", "error", err)
		return
	}
	subject := ""
	if s != nil {
		subject = s.Subject
	}
	b.log.Warn("NATS reports an error", "subject", subject, "error", err)
}

func (b *Bus) waitConnected(ctx context.Context, up <-chan struct{}) error {
	if b.conn.IsConnected() {
		return nil
	}
	waiting := false
	look := time.NewTicker(reconnectWait)
	defer look.Stop()
	for {
		if err := b.conn.LastError(); refusal(err) {
			return notLetIn(err)
		}
		if !waiting {
			waiting = true
			b.log.Warn("NATS is away at start; waiting for it")
		}
		select {
		case <-up:
			b.log.Info("NATS is there")
			return nil
		case <-b.closed:
			return notLetIn(b.conn.LastError())
		case <-look.C:
		case <-ctx.Done():
			return errs.Wrap(errs.Unavailable, context.Cause(ctx), "NATS did not answer")
		}
	}
}

// refusal reports whether an error says that server and settings do not go together, which waiting does not change.
func refusal(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || tlsAlert(err) {
		return true
	}
	for _, e := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
		nats.ErrSecureConnWanted, nats.ErrNkeysNotSupported,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// tlsAlert reports whether an error is what the server said to end TLS, mostly for want of a certificate that it takes.
// In TLS 1.3 it comes after the client's side of the handshake, in place of the first answer.
func tlsAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" // crypto/tls gives alerts no exported type
}

// notLetIn is the one sentence about a server that does not let us in.
func notLetIn(err error) error {
	if tlsAlert(err) {
		return errs.New(errs.Invalid, "NATS refused the connection: %v; settings nats-client-certificate and "+
			"nats-client-key say what is shown to it", err)
	}
	return errs.New(errs.Invalid, "NATS refused the connection: %v", err)
}

// Conn is the connection itself.
func (b *Bus) Conn() *nats.Conn { return b.conn }

// JetStream is the JetStream side of the connection.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// Check is nil while NATS is connected; for readiness.
func (b *Bus) Check(context.Context) error {
	if b.conn.IsConnected() {
		return nil
	}
	if err := b.refused.Load(); err != nil {
		return *err
	}
	return errs.New(errs.Unavailable, "NATS is away")
}

// Close lets what is under way finish, within drainTimeout, and ends the connection. It may be called twice.
func (b *Bus) Close() {
	if err := b.conn.Drain(); err != nil { // already closed, or away: nothing can be let finish
		b.conn.Close()
	}
	select {
	case <-b.closed:
	case <-time.After(drainTimeout + time.Second):
		b.conn.Close()
	}
}

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
