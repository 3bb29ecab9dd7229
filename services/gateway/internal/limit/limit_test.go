package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
)

// A flood of new addresses takes no more memory, and lets nobody in who has asked too much and goes on asking.
func TestFloodOfAddresses(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b := limit.NewBuckets(1, 1, func() time.Time { return now })
	b.Take("busy")
	for i := range 3 * limit.MaxKeys {
		now = now.Add(time.Microsecond)
		b.Take(fmt.Sprint(i))
		if i%1000 == 0 {
			if _, ok := b.Take("busy"); ok {
				t.Fatalf("after %d addresses who has asked too much is let in", i)
			}
		}
	}
	if b.Len() > limit.MaxKeys {
		t.Errorf("%d keys are remembered", b.Len())
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "::ffff:203.0.113.7", "nonsense": "nonsense",
		"2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := limit.Network(address); got != want {
			t.Errorf("%s is counted as %s, want %s", address, got, want)
		}
	}
}
