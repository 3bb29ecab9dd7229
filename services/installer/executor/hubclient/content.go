package hubclient

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// maxChunks bounds the pack of one bundle: what bundle.MaxBytes could be at worst, uncompressed.
	maxChunks = bundle.MaxBytes/protocol.ContentChunkBytes + 1
	// cachedBundles are kept in memory: steps of one plan and retries ask for the same few.
	cachedBundles = 8
)

// Contents fetches bundles by digest and keeps the last few.
type Contents struct {
	hub   *Hub
	mu    sync.Mutex
	order []digest.Digest
	have  map[digest.Digest]bundle.Content
}

// NewContents returns an empty store.
func NewContents(h *Hub) *Contents {
	return &Contents{hub: h, have: map[digest.Digest]bundle.Content{}}
}

// Get returns the bundle with exactly this digest. A chunk that is not there (yet) is
// errs.Unavailable; content that does not have the digest that it is stored under is errs.Invalid.
func (c *Contents) Get(ctx context.Context, d digest.Digest) (bundle.Content, error) {
	c.mu.Lock()
	found, ok := c.have[d]
	c.mu.Unlock()
	if ok {
		return found, nil
	}
	pack, err := c.hub.pack(ctx, d)
	if err != nil {
		return bundle.Content{}, err
	}
	content, got, err := bundle.Unpack(pack)
	if err != nil {
		return bundle.Content{}, errs.Wrap(errs.KindOf(err), err, "content %s", d.Short())
	}
	if got != d {
		return bundle.Content{}, errs.New(errs.Invalid, "content under %s has digest %s", d, got).At(
			"", "ContentDigest")
	}
	c.keep(d, content)
	return content, nil
}

// Forget drops every bundle: it is fetched again when it is asked for.
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
		return nil, errs.New(errs.Invalid, "content %s: header %s is %q, want 1 to %d", d.Short(),
			protocol.HeaderChunks,
			first.Header.Get(protocol.HeaderChunks), maxChunks)
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
		return nil, errs.New(errs.Unavailable, "content %s: chunk %d is not there yet", d.Short(), n)
	}
	return m, away(err, protocol.StreamContent)
}
