package natsconn

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// ReconnectWait is the pause between two attempts to reach NATS: short, since a restart of one node takes about a
// second and everything that waits for a hint waits this long more.
const ReconnectWait = 250 * time.Millisecond

// connectTimeout bounds one attempt, so that a host that drops packets does not hold the loop.
const connectTimeout = 2 * time.Second

// drainTimeout bounds how long Close waits for what is under way.
const drainTimeout = 5 * time.Second

// Link is a connection to NATS that comes back by itself. Its methods may be called side by side.
type Link struct {
	conn *nats.Conn
	o    LinkOptions
	// access is asked whenever the connection is made, also to another server.
	access Settings
	// refused is why the server of the connection must not be used: an error, or nil.
	refused atomic.Pointer[error]
	// refusal: it was said that the server does not let us in.
	refusal atomic.Bool

	closed    chan struct{}
	closeOnce sync.Once
}

// LinkOptions say who connects, and who is told.
type LinkOptions struct {
	Name  string // that the server shows
	Inbox string // prefix of the inboxes
	Log   *slog.Logger
	// Wait is the pause between two attempts; zero is ReconnectWait.
	Wait time.Duration
	// Early returns before the first connection is made: who has work without NATS goes on. Settings that cannot be
	// read are refused all the same.
	Early bool
	// Away is what goes on meanwhile, for the log.
	Away string
	// Dropped is told of messages that were dropped at a full queue. It may be left out, and is then in the log.
	Dropped func(error)
	// Back is called when the connection is there again. It may be left out.
	Back func()
}

// Dial connects to NATS. While NATS is away it waits, having said so once, until ctx ends; later losses of the
// connection are repaired by itself, for ever. Settings that cannot be read are errs.Invalid, and so is a server that
// refuses them or must not be used (Refuse).
func Dial(ctx context.Context, access Settings, o LinkOptions) (*Link, error) {
	if o.Wait == 0 {
		o.Wait = ReconnectWait
	}
	l := &Link{o: o, access: access, closed: make(chan struct{})}
	l.access.Trouble = func(err error) {
		o.Log.Warn("certificates for NATS were renewed and cannot be used; going on with those before", "error", err)
	}
	identity, err := l.access.Options()
	if err != nil {
		return nil, err
	}
	up := make(chan struct{}, 1)
	l.conn, err = nats.Connect(access.URL, append(l.options(up), identity...)...)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "connect to NATS, which CHANDLER_NATS_URL names")
	}
	if o.Early {
		return l, nil
	}
	if err := errors.Join(l.waitConnected(ctx, up), access.Refuse(l.conn)); err != nil {
		l.conn.Close()
		return nil, err
	}
	return l, nil
}

func (l *Link) options(up chan<- struct{}) []nats.Option {
	return []nats.Option{
		nats.Name(l.o.Name),
		nats.CustomInboxPrefix(l.o.Inbox),
		nats.RetryOnFailedConnect(true),
		// waitConnected ends at once if the server refuses us at the start. Later, it may be between two
		// configurations.
		nats.IgnoreAuthErrorAbort(),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(l.o.Wait),
		nats.ReconnectJitter(l.o.Wait/4, l.o.Wait/4),
		nats.Timeout(connectTimeout),
		nats.DrainTimeout(drainTimeout),
		// A message that cannot be sent now fails now: everything here is sent again from the record.
		nats.ReconnectBufSize(-1),
		nats.ConnectHandler(func(c *nats.Conn) { l.first(c, up) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { l.logLost(err) }),
		nats.ReconnectHandler(func(c *nats.Conn) { l.back(c) }),
		nats.ClosedHandler(func(*nats.Conn) { l.closeOnce.Do(func() { close(l.closed) }) }),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) { l.logError(s, err) }),
	}
}

// first looks at the server of the first connection where Dial does not.
func (l *Link) first(c *nats.Conn, up chan<- struct{}) {
	select {
	case up <- struct{}{}:
	default:
	}
	if l.o.Early {
		l.back(c)
	}
}

// back looks at the server of a connection that is there again: it may be another one.
func (l *Link) back(c *nats.Conn) {
	if err := l.access.Refuse(c); err != nil {
		l.refused.Store(&err)
		l.o.Log.Error("NATS is not used any more", "error", err)
		c.Close()
		return
	}
	l.refusal.Store(false)
	l.o.Log.Info("NATS is back")
	if l.o.Back != nil {
		l.o.Back()
	}
}

func (l *Link) logLost(err error) {
	if err == nil { // closed by us
		return
	}
	l.o.Log.Warn("NATS is away; waiting for it", "meanwhile", l.o.Away, "error", err)
}

func (l *Link) logError(s *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) && l.o.Dropped != nil {
		l.o.Dropped(err)
		return
	}
	if Refusal(err) {
		if l.refusal.Swap(true) { // every attempt says it
			return
		}
		l.o.Log.Error("NATS does not let us in; trying again", "error", err)
		return
	}
	subject := ""
	if s != nil {
		subject = s.Subject
	}
	l.o.Log.Warn("NATS reports an error", "subject", subject, "error", err)
}

func (l *Link) waitConnected(ctx context.Context, up <-chan struct{}) error {
	if l.conn.IsConnected() {
		return nil
	}
	waiting := false
	look := time.NewTicker(l.o.Wait)
	defer look.Stop()
	for {
		if err := l.conn.LastError(); Refusal(err) {
			return notLetIn(err)
		}
		if !waiting {
			waiting = true
			l.o.Log.Warn("NATS is away at start; waiting for it")
		}
		select {
		case <-up:
			l.o.Log.Info("NATS is there")
			return nil
		case <-l.closed:
			return notLetIn(l.conn.LastError())
		case <-look.C:
		case <-ctx.Done():
			return errs.Wrap(errs.Unavailable, context.Cause(ctx), "NATS did not answer")
		}
	}
}

// Refusal reports whether an error says that server and settings do not go together, which waiting does not change.
func Refusal(err error) bool {
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
func (l *Link) Conn() *nats.Conn { return l.conn }

// Check is nil while NATS is connected; for readiness.
func (l *Link) Check(context.Context) error {
	if l.conn.IsConnected() {
		return nil
	}
	if err := l.refused.Load(); err != nil {
		return *err
	}
	if err := l.conn.LastError(); Refusal(err) {
		return notLetIn(err)
	}
	return errs.New(errs.Unavailable, "NATS is away")
}

// Close lets what is under way finish, within drainTimeout, and ends the connection. It may be called twice.
func (l *Link) Close() {
	if err := l.conn.Drain(); err != nil { // already closed, or away: nothing can be let finish
		l.conn.Close()
	}
	select {
	case <-l.closed:
	case <-time.After(drainTimeout + time.Second):
		l.conn.Close()
	}
}
