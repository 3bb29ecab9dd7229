package bus

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/ask"
)

// Serve answers questions on a subject until ctx ends, then lets what is under way finish. fn gets the
// question's JSON and returns a value to be encoded as JSON. All replicas that serve a subject share it.
func (b *Bus) Serve(ctx context.Context, subject string, fn ask.Answer) error {
	return ask.Serve(ctx, b.conn, b.log, subject, fn)
}

// Ask sends a question and decodes the answer into out. A service that is away is errs.Unavailable; an
// error of the one who answers keeps its kind, field and rule.
func (b *Bus) Ask(ctx context.Context, subject string, in, out any) error {
	return ask.Put(ctx, b.conn, subject, in, out)
}
