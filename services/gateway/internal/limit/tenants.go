package limit

import (
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/quota"
)

// PolicyTenant names the limit of a tenant where that decides, and not the class of the request.
const PolicyTenant Class = "tenant"

// Tenants count the requests and open streams of tenants in one gateway. Of a bound each gateway allows an even part,
// rounded up, so that it is kept wherever requests go.
type Tenants struct {
	seconds float64 // how many seconds' worth of requests come at once
	now     func() time.Time
	mu      sync.Mutex
	parts   int64
	bounds  map[string]quota.Bounds
	counts  map[string]*count
}

// count is what one tenant asks for here.
type count struct {
	second    int64 // that is counted now, in Unix time
	now, last int64 // requests in it, and in the one before
	streams   int64
	requests  *Rates // nil: not bounded
}

// NewTenants bounds nobody yet.
func NewTenants(seconds float64, now func() time.Time) *Tenants {
	return &Tenants{seconds: seconds, now: now, parts: 1, counts: map[string]*count{}}
}

// Set replaces all bounds, among so many gateways. What was asked for before still counts.
func (t *Tenants) Set(bounds map[string]quota.Bounds, gateways int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bounds, t.parts = bounds, max(1, gateways)
	for tenant, c := range t.counts {
		t.bound(tenant, c)
	}
}

// Gateways is among how many bounds are divided.
func (t *Tenants) Gateways() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parts
}

// of is the count of a tenant. Tenants are few, and none is counted before one of its tokens was good.
func (t *Tenants) of(tenant string) *count {
	c := t.counts[tenant]
	if c == nil {
		c = &count{}
		t.counts[tenant] = c
		t.bound(tenant, c)
	}
	return c
}

// bound holds a count to what its tenant may ask for here: so many reads, and of the other classes their share. Each
// class is counted by itself, so that lists do not use up what it takes to stop effects.
func (t *Tenants) bound(tenant string, c *count) {
	hard := t.bounds[tenant].Requests
	if hard == nil {
		c.requests = nil
		return
	}
	rate := float64(t.part(*hard))
	if c.requests != nil {
		c.requests.set(rate, t.seconds)
		return
	}
	c.requests = NewRates(rate, t.seconds, t.now)
	for _, b := range c.requests.classes {
		b.class = PolicyTenant
	}
}

// part is what this gateway allows of a bound.
func (t *Tenants) part(bound int64) int64 { return (bound + t.parts - 1) / t.parts }

// Take takes one request of a class of a tenant. bounded is false where its requests have no bound.
func (t *Tenants) Take(tenant string, class Class) (left httpserver.Quota, bounded, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(tenant)
	c.tick(t.now().Unix())
	if c.requests == nil {
		c.now++
		return left, false, true
	}
	if left, ok = c.requests.Take(class, ""); ok {
		c.now++
	}
	return left, true, ok
}

// Empty reports whether a tenant may ask for nothing more of a class now, and takes nothing.
func (t *Tenants) Empty(tenant string, class Class) (left httpserver.Quota, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts[tenant]
	if c == nil || c.requests == nil {
		return left, false
	}
	return c.requests.Empty(class, "")
}

// Enter takes the place of one stream, where there is one; allowed is how many there are here.
func (t *Tenants) Enter(tenant string) (allowed int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(tenant)
	if hard := t.bounds[tenant].Streams; hard != nil {
		if allowed = t.part(*hard); c.streams >= allowed {
			return allowed, false
		}
	}
	c.streams++
	return allowed, true
}

// Leave gives the place of a stream back.
func (t *Tenants) Leave(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(tenant).streams--
}

// Used is what a tenant asked for here in the last whole second, and its open streams.
func (t *Tenants) Used(tenant string) (requests, streams int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts[tenant]
	if c == nil { // it asked for nothing, and whoever asks about it is no reason to remember it
		return 0, 0
	}
	c.tick(t.now().Unix())
	return c.last, c.streams
}

// Len is how many tenants are remembered.
func (t *Tenants) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.counts)
}

// tick goes on to a second.
func (c *count) tick(second int64) {
	switch second {
	case c.second:
		return
	case c.second + 1:
		c.last = c.now
	default:
		c.last = 0
	}
	c.second, c.now = second, 0
}
