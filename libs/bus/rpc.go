package bus

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// Identity signs what this process asks and answers, and knows who signed what others say (libs/servicekeys).
type Identity interface {
	Sign(text []byte) (signature string, err error)
	// Signed reports whether one of these services signed a text.
	Signed(ctx context.Context, by []string, text []byte, signature string) bool
}

// WithIdentity lets this connection ask other services and answer them.
func WithIdentity(i Identity) Option { return func(o *options) { o.identity = i } }

// Serve answers questions of other services on a subject until ctx ends. One that nobody signed who may ask there
// (natsauth.Asks) gets no answer.
func (b *Bus) Serve(ctx context.Context, subject string, fn rpc.Handler) error {
	return b.ServeWith(ctx, subject, rpc.Limits{}, fn)
}

// ServeWith is Serve with limits of its own.
func (b *Bus) ServeWith(ctx context.Context, subject string, limits rpc.Limits, fn rpc.Handler) error {
	askers, _ := natsauth.Asks(subject)
	verify, err := b.believe(subject, askers)
	if err != nil {
		return err
	}
	return rpc.Answerer{Verify: verify, Sign: b.identity.Sign, Limits: limits}.Serve(ctx, b.conn, b.log, subject, fn)
}

// Call asks another service and decodes its answer into out, as rpc.Asker.Ask does. What nobody signed who may answer
// there (natsauth.Asks) is not believed.
func (b *Bus) Call(ctx context.Context, subject string, in, out any) error {
	_, answerers := natsauth.Asks(subject)
	verify, err := b.believe(subject, answerers)
	if err != nil {
		return err
	}
	return rpc.Asker{Sign: b.identity.Sign, Verify: verify}.Ask(ctx, b.conn, subject, in, out)
}

// believe believes what one of these services signed.
func (b *Bus) believe(subject string, services []string) (rpc.Verify, error) {
	if b.identity == nil || len(services) == 0 {
		return nil, errs.New(errs.Internal, "%s: this connection has no identity, or no service is asked there", subject)
	}
	return func(ctx context.Context, text []byte, signature string) bool {
		return b.identity.Signed(ctx, services, text, signature)
	}, nil
}
