package bus

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/pg"
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
// (natsauth.Asks) gets no answer. The answer is made from rows of the tenant that the question names (pg.Confine).
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
	answerer := rpc.Answerer{Verify: verify, Sign: b.identity.Sign, Limits: limits}
	return answerer.Serve(ctx, b.conn, b.log, subject, confined(fn))
}

// confined has what fn reads and writes be the tenant's that the question names.
func confined(fn rpc.Handler) rpc.Handler {
	return func(ctx context.Context, question json.RawMessage) (any, error) {
		var about struct {
			Tenant string `json:"tenant"`
		}
		if err := json.Unmarshal(question, &about); err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "read the question")
		}
		if about.Tenant == "" || about.Tenant == events.AllTenants {
			return nil, errs.New(errs.Invalid, "a question names the tenant that it is about").At("/tenant", "required")
		}
		return fn(pg.Confine(ctx, about.Tenant), question)
	}
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
