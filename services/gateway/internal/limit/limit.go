// Package limit counts requests by whom they come from, in memory and bounded.
package limit

import (
	"crypto/sha256"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/httpserver"
)

// MaxKeys bounds the identities and addresses that are counted. Those whose buckets are full are forgotten first, since
// they say nothing, then those that asked for nothing longest.
const MaxKeys = 20_000

// Buckets count by token buckets.
type Buckets struct {
	rate, burst float64
	class       Class // of what is counted, as its limit is named; "" where it is not
	now         func() time.Time
	mu          sync.Mutex
	buckets     map[string]bucket
}

// bucket has so many requests left as of a time.
type bucket struct {
	left float64
	at   time.Time
}

// NewBuckets lets through rate requests a second for each key, over a time, and burst at once.
func NewBuckets(rate, burst float64, now func() time.Time) *Buckets {
	return &Buckets{rate: rate, burst: burst, now: now, buckets: map[string]bucket{}}
}

// set changes rate and burst. What was asked for before still counts.
func (l *Buckets) set(rate, burst float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.buckets {
		b := l.fill(key) // by the rate that held until now
		b.left = min(b.left, burst)
		l.buckets[key] = b
	}
	l.rate, l.burst = rate, burst
}

// Take takes one request, where there is one.
func (l *Buckets) Take(key string) (q httpserver.Quota, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.fill(key)
	if ok = b.left >= 1; ok {
		b.left--
	}
	l.buckets[key] = b
	return l.quota(b), ok
}

// Empty reports whether nothing is left, and takes nothing.
func (l *Buckets) Empty(key string) (q httpserver.Quota, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.fill(key)
	return l.quota(b), b.left < 1
}

func (l *Buckets) quota(b bucket) httpserver.Quota {
	return httpserver.Quota{
		Limit: int(l.burst), Remaining: int(b.left), Window: l.until(l.burst), Reset: l.until(l.burst - b.left),
		Wait: l.until(1 - b.left), Policy: string(l.class),
	}
}

// until is how long it takes until so many requests more may be made.
func (l *Buckets) until(requests float64) time.Duration {
	return time.Duration(max(0, requests) / l.rate * float64(time.Second))
}

// Len is how many keys are counted.
func (l *Buckets) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

func (l *Buckets) fill(key string) bucket {
	now := l.now()
	b, known := l.buckets[key]
	if !known {
		if len(l.buckets) >= MaxKeys {
			l.forget(now)
		}
		return bucket{left: l.burst, at: now}
	}
	b.left = min(l.burst, b.left+now.Sub(b.at).Seconds()*l.rate)
	b.at = now
	return b
}

// forget drops the buckets that are full again, and where that makes no room the half that was not asked for longest: a
// flood of new addresses must not empty the buckets of those that are counted.
func (l *Buckets) forget(now time.Time) {
	for key, b := range l.buckets {
		if b.left+now.Sub(b.at).Seconds()*l.rate >= l.burst {
			delete(l.buckets, key)
		}
	}
	if len(l.buckets) < MaxKeys {
		return
	}
	keys := slices.SortedFunc(maps.Keys(l.buckets), func(a, b string) int {
		return l.buckets[a].at.Compare(l.buckets[b].at)
	})
	for _, key := range keys[:len(keys)/2] {
		delete(l.buckets, key)
	}
}

// Known are tokens that were good, or whom they name, as hashes, with whose they were, for as long as the process
// remembers them. It lets nobody in.
type Known struct {
	mu         sync.Mutex
	identities map[[sha256.Size]byte]string
}

// NewKnown knows nothing yet.
func NewKnown() *Known { return &Known{identities: map[[sha256.Size]byte]string{}} }

// Add remembers a token.
func (k *Known) Add(token, identity string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.identities) >= MaxKeys {
		clear(k.identities) // each of them is looked up once more
	}
	k.identities[sha256.Sum256([]byte(token))] = identity
}

// Of says whose a token was.
func (k *Known) Of(token string) (identity string, good bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	identity, good = k.identities[sha256.Sum256([]byte(token))]
	return identity, good
}

// Remove forgets a token that is refused by now: it was revoked.
func (k *Known) Remove(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.identities, sha256.Sum256([]byte(token)))
}

// Hash takes the place of a token as a key.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return string(sum[:])
}

// Network is whose guesses are counted together: one address, and of IPv6 the network that one customer has.
func Network(address string) string {
	const customer = 64
	a, err := netip.ParseAddr(address)
	if err != nil || a.Unmap().Is4() {
		return address
	}
	p, err := a.WithZone("").Prefix(customer)
	if err != nil {
		return address
	}
	return p.String()
}
