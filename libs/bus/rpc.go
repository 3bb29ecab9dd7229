package bus

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/rpc"
)

// Serve handles requests on a subject until ctx ends, as rpc.Serve does.
func (b *Bus) Serve(ctx context.Context, subject string, fn rpc.Handler) error {
	return rpc.Serve(ctx, b.conn, b.log, subject, fn)
}

// ServeAll handles requests on a subject with wildcards until ctx ends, as rpc.ServeAll does.
func (b *Bus) ServeAll(ctx context.Context, subject string, choose func(subject string) (rpc.Handler, bool)) error {
	return rpc.ServeAll(ctx, b.conn, b.log, subject, choose)
}

// Call sends a request and decodes the reply into out, as rpc.Call does.
func (b *Bus) Call(ctx context.Context, subject string, in, out any) error {
	return rpc.Call(ctx, b.conn, subject, in, out)
}
