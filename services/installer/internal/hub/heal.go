package hub

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// healEvery is how often one bundle is compared with CONTENT at most because an executor asked: it costs a read of the
// catalog and of every chunk.
const healEvery = 2 * time.Second

// ServeContents publishes bundles again of which executors find a chunk missing or wrong, until ctx ends. What CONTENT
// holds is compared with what the catalog schema holds, so that whoever asks can make nothing appear that was not
// published before. The tenant comes from the subject, which an agent's permissions bound.
func ServeContents(ctx context.Context, h *Hub) error {
	a := rpc.Answerer{Sign: protocol.HubSigns(h.c.Key), Limits: contentLimits}
	all := protocol.RPCContentSubject("*", "*")
	return a.ServeAll(ctx, h.c.Bus.Conn(), h.c.Log, all, func(subject string) (rpc.Handler, bool) {
		tokens := strings.Split(strings.TrimPrefix(subject, protocol.RPCContent+"."), ".")
		return func(ctx context.Context, raw json.RawMessage) (any, error) {
			var r protocol.ContentRequest
			if err := json.Unmarshal(raw, &r); err != nil {
				return nil, errs.Wrap(errs.Invalid, err, "read the request")
			}
			d, err := digest.Parse(string(r.Digest))
			if err != nil {
				return nil, errs.Wrap(errs.Invalid, err, "read the request")
			}
			return struct{}{}, h.content.heal(ctx, tokens[0], d, h.c.Now(), func() {
				h.c.Log.WarnContext(ctx, "an executor finds a bundle damaged on the bus; comparing it", "digest",
					d.Short(), "cluster", tokens[1])
			})
		}, len(tokens) == 2
	})
}

// contentLimits: a question names a digest. An executor asks for one bundle every five seconds at most, and for the few
// of its plans; comparing one reads the catalog and every chunk, so that an agent has one under way.
var contentLimits = rpc.Limits{Bytes: 1 << 10, Every: time.Second, Burst: 20, AtOnce: 1}

// heal compares a bundle with CONTENT and publishes the chunks that are missing or wrong. One that was compared a
// moment ago is errs.Unavailable.
func (c *contents) heal(ctx context.Context, tenant string, d digest.Digest, now time.Time, say func()) error {
	key := tenant + " " + string(d)
	c.mu.Lock()
	if last, ok := c.healed[key]; ok && now.Sub(last) < healEvery {
		c.mu.Unlock()
		return errs.New(errs.Unavailable, "content %s was compared a moment ago", d.Short())
	}
	if len(c.healed) >= knownLimit {
		clear(c.healed)
	}
	c.healed[key] = now
	c.mu.Unlock()
	say()
	pack, err := c.pack(ctx, tenant, d)
	if err != nil {
		return err
	}
	return c.put(ctx, tenant, d, pack)
}
