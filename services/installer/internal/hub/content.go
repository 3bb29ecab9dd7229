package hub

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// knownLimit bounds how many digests are remembered as present; beyond it all are forgotten, which costs
// one request to the stream each.
const knownLimit = 50_000

// contents puts bundles into CONTENT.
type contents struct {
	pool   *pg.Pool
	bus    *bus.Bus
	reader *content.Reader
	bodies bodies.Keys

	mu    sync.Mutex
	fill  int64 // of CONTENT, for which known holds
	known map[string]bool
	// healed is when a bundle was compared last because an executor asked, by tenant and digest.
	healed map[string]time.Time
	// deprecated is what package documents deprecate, by tenant and digest.
	deprecated map[string][]catalog.Deprecation
	verified   map[string]bool // contents that a policy's key has signed, by the digests of both
	grown      map[string]int  // rights that upgrades gain, by the digests of both contents
}

func newContents(pool *pg.Pool, b *bus.Bus, keys bodies.Keys) *contents {
	return &contents{
		bodies: keys,
		pool:   pool, bus: b, reader: content.NewReader(), known: map[string]bool{}, healed: map[string]time.Time{},
		deprecated: map[string][]catalog.Deprecation{}, grown: map[string]int{},
		verified: map[string]bool{},
	}
}

// filling is how often CONTENT was to be filled again until now, by whichever replica noticed.
func (c *contents) filling(ctx context.Context) (fill int64, err error) {
	ctx = pg.Confine(ctx, events.AllTenants) // a stream belongs to no tenant
	err = c.pool.QueryRow(ctx, `select coalesce(max(fills), 0) from installer.streams where tenant = $1 and name = $2`,
		events.AllTenants, protocol.StreamContent).Scan(&fill)
	return fill, pg.Err(err)
}

// has reports whether a bundle is known to have been put since a filling began.
func (c *contents) has(fill int64, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fill == fill && c.known[key]
}

// note remembers that a bundle was put after a filling had begun. It forgets what was put before that one,
// and what was put before a later one it does not learn.
func (c *contents) note(fill int64, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fill < c.fill {
		return
	}
	if fill > c.fill || len(c.known) >= knownLimit {
		clear(c.known)
	}
	c.fill = fill
	c.known[key] = true
}

// ensure returns when every chunk of a bundle is in CONTENT, which is in the given filling. A bundle that
// the catalog schema does not hold is errs.NotFound.
func (c *contents) ensure(ctx context.Context, fill int64, tenant string, d digest.Digest) error {
	key := tenant + " " + string(d)
	if c.has(fill, key) {
		return nil
	}
	pack, err := c.pack(ctx, tenant, d)
	if err != nil {
		return err
	}
	if err := c.put(ctx, tenant, d, pack); err != nil {
		return err
	}
	c.note(fill, key)
	return nil
}

// pack reads a bundle and packs it by itself, as executors take it: what they need of another version they
// do not have.
func (c *contents) pack(ctx context.Context, tenant string, d digest.Digest) ([]byte, error) {
	s, err := stored(ctx, c.pool, tenant, d)
	if err != nil {
		return nil, err
	}
	canonical, err := c.reader.Bundle(d, s)
	switch {
	case err != nil:
		return nil, err
	case s.Recipe == nil:
		return s.Whole, nil
	default:
		return bundle.Pack(canonical), nil
	}
}

// stored reads what the catalog schema holds of a bundle.
func stored(ctx context.Context, q pg.Querier, tenant string, d digest.Digest) (s content.Stored, err error) {
	err = q.QueryRow(ctx, `select pack, recipe, packs from catalog_api.contents where tenant = $1 and digest = $2`,
		tenant, string(d)).Scan(&s.Whole, &s.Recipe, &s.Packs)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, errs.New(errs.NotFound, "content %s is not stored", d)
	}
	return s, pg.Err(err)
}

// put publishes the chunks that are not there as they should be.
func (c *contents) put(ctx context.Context, tenant string, d digest.Digest, pack []byte) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	stream, err := c.bus.Ensured(ctx, protocol.StreamContent)
	if err != nil {
		return err
	}
	chunks := split(pack)
	for n, data := range chunks {
		subject := protocol.ContentSubject(tenant, d, n)
		if holds(ctx, stream, subject, data, len(chunks)) {
			continue
		}
		m := nats.NewMsg(subject)
		m.Header.Set(protocol.HeaderChunks, strconv.Itoa(len(chunks)))
		m.Header.Set(protocol.HeaderDigest, string(d))
		m.Data = data
		_, err := c.bus.JetStream().PublishMsg(ctx, m)
		if err := c.bus.Published(protocol.StreamContent, err); err != nil {
			return errs.Wrap(errs.Unavailable, err, "publish content %s", d)
		}
	}
	return nil
}

// holds compares what the stream holds; any doubt is settled by publishing.
func holds(ctx context.Context, s jetstream.Stream, subject string, data []byte, chunks int) bool {
	m, err := s.GetLastMsgForSubject(ctx, subject)
	return err == nil && bytes.Equal(m.Data, data) && m.Header.Get(protocol.HeaderChunks) == strconv.Itoa(chunks)
}

// split cuts a pack into chunks; an empty pack is one empty chunk.
func split(pack []byte) [][]byte {
	chunks := [][]byte{}
	for len(pack) > protocol.ContentChunkBytes {
		chunks = append(chunks, pack[:protocol.ContentChunkBytes])
		pack = pack[protocol.ContentChunkBytes:]
	}
	return append(chunks, pack)
}
