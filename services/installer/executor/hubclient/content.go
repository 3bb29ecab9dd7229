package hubclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

const (
	// maxChunks bounds the pack of one bundle: what bundle.MaxBytes could be at worst, uncompressed.
	maxChunks = bundle.MaxBytes/protocol.ContentChunkBytes + 1
	// cachedBundles are kept in memory: steps of one plan and retries ask for the same few.
	cachedBundles = 8
	// askEvery is how often the hub is asked at most to publish the same bundle again; the plan waits meanwhile.
	askEvery = 5 * time.Second
	// askTimeout bounds the question; publishing a bundle takes the hub a fraction of it.
	askTimeout = 10 * time.Second
	// maxAsked bounds what is remembered of questions; beyond it all is forgotten, which costs a question each.
	maxAsked = 1000
)

// errDamaged marks content of which a chunk is missing or wrong: the hub believes that it is published.
var errDamaged = errors.New("content is not as it was published")

// Contents fetches bundles by digest and keeps the last few.
type Contents struct {
	hub   *Hub
	mu    sync.Mutex
	order []digest.Digest
	have  map[digest.Digest]bundle.Content
	asked map[digest.Digest]time.Time // when the hub was asked for it
	packs *packs
}

// NewContents returns an empty store. It remembers so many bytes of bundles as they were published, also where it is to
// forget them: who has to go on while the hub is away gets them from nobody.
func NewContents(h *Hub, remembered int) *Contents {
	return &Contents{
		hub: h, have: map[digest.Digest]bundle.Content{}, asked: map[digest.Digest]time.Time{},
		packs: newPacks(remembered),
	}
}

// Get returns the bundle with exactly this digest. Where a chunk is missing or wrong, the hub is asked to publish the
// bundle again; until it did, that is errs.Unavailable.
func (c *Contents) Get(ctx context.Context, d digest.Digest) (bundle.Content, error) {
	c.mu.Lock()
	found, ok := c.have[d]
	c.mu.Unlock()
	if ok {
		return found, nil
	}
	content, err := c.fetch(ctx, d)
	if errors.Is(err, errDamaged) && c.ask(ctx, d) {
		content, err = c.fetch(ctx, d)
	}
	if errors.Is(err, errDamaged) {
		err = errs.Wrap(errs.Unavailable, err, "the hub is asked to publish a bundle again")
	}
	if err != nil {
		return bundle.Content{}, err
	}
	c.keep(d, content)
	return content, nil
}

// ask asks the hub to publish a bundle again, and reports whether it says that it did. What counts is the digest of
// what is read then.
func (c *Contents) ask(ctx context.Context, d digest.Digest) bool {
	now := time.Now()
	c.mu.Lock()
	last, before := c.asked[d]
	if before && now.Sub(last) < askEvery {
		c.mu.Unlock()
		return false
	}
	if len(c.asked) >= maxAsked {
		clear(c.asked)
	}
	c.asked[d] = now
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	subject := protocol.RPCContentSubject(c.hub.tenant, c.hub.cluster)
	by := rpc.Asker{Verify: protocol.HubSigned(c.hub.key)}
	return by.Ask(ctx, c.hub.js.Conn(), subject, protocol.ContentRequest{Digest: d}, nil) == nil
}

// fetch reads a bundle. One that is not as it was published is errDamaged.
func (c *Contents) fetch(ctx context.Context, d digest.Digest) (bundle.Content, error) {
	pack, remembered := c.packs.get(d)
	if !remembered {
		var err error
		if pack, err = c.hub.pack(ctx, d); err != nil {
			return bundle.Content{}, err
		}
	}
	content, got, err := bundle.Unpack(pack)
	if err != nil {
		return bundle.Content{}, fmt.Errorf("%w: content %s: %w", errDamaged, d.Short(), err)
	}
	if got != d {
		return bundle.Content{}, fmt.Errorf("%w: what is under %s has digest %s", errDamaged, d, got)
	}
	c.packs.put(d, pack)
	return content, nil
}

// Forget drops every bundle but what is remembered of them: it is read again when it is asked for.
func (c *Contents) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = nil
	clear(c.have)
}

func (c *Contents) keep(d digest.Digest, content bundle.Content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.have[d]; ok {
		return
	}
	c.have[d] = content
	c.order = append(c.order, d)
	if len(c.order) > cachedBundles {
		delete(c.have, c.order[0])
		c.order = c.order[1:]
	}
}

func (h *Hub) pack(ctx context.Context, d digest.Digest) ([]byte, error) {
	if _, err := digest.Parse(string(d)); err != nil {
		return nil, errs.New(errs.Invalid, "content: %v", err)
	}
	stream, err := h.js.Stream(ctx, h.names(protocol.StreamContent))
	if err != nil {
		return nil, away(err, protocol.StreamContent)
	}
	first, err := h.chunk(ctx, stream, d, 0)
	if err != nil {
		return nil, err
	}
	chunks, err := strconv.Atoi(first.Header.Get(protocol.HeaderChunks))
	if err != nil || chunks < 1 || chunks > maxChunks {
		return nil, fmt.Errorf("%w: content %s: header %s is %q, want 1 to %d", errDamaged, d.Short(),
			protocol.HeaderChunks, first.Header.Get(protocol.HeaderChunks), maxChunks)
	}
	pack := first.Data
	for n := 1; n < chunks; n++ {
		m, err := h.chunk(ctx, stream, d, n)
		if err != nil {
			return nil, err
		}
		pack = append(pack, m.Data...)
	}
	return pack, nil
}

func (h *Hub) chunk(ctx context.Context, stream jetstream.Stream, d digest.Digest, n int) (
	*jetstream.RawStreamMsg, error,
) {
	m, err := stream.GetLastMsgForSubject(ctx, protocol.ContentSubject(h.tenant, d, n))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("%w: content %s: chunk %d is not there", errDamaged, d.Short(), n)
	}
	return m, away(err, protocol.StreamContent)
}
