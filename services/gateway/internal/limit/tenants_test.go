package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/quota"
)

// TestTenants: each class of a tenant's requests has its own share, gateways share a bound, a change of their number
// gives nobody requests anew, and what is shown is what was asked for.
func TestTenants(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	tenants := limit.NewTenants(4, func() time.Time { return now })
	taken := func(c limit.Class) (n int) {
		for range 100 {
			if _, _, ok := tenants.Take("acme", c); ok {
				n++
			}
		}
		return n
	}
	if _, bounded, ok := tenants.Take("acme", limit.Read); bounded || !ok {
		t.Error("a tenant without a quota is bounded")
	}
	ten, one := int64(10), int64(1)
	tenants.Set(map[string]quota.Bounds{"acme": {Requests: &ten, Streams: &one}}, 1)
	if n := taken(limit.List); n != 20 {
		t.Errorf("%d lists at once, want 4 seconds of 5", n)
	}
	if _, empty := tenants.Empty("acme", limit.Write); empty {
		t.Error("lists use up what writes need")
	}
	if n := taken(limit.Write); n != 20 {
		t.Errorf("%d writes at once, want 4 seconds of 5", n)
	}
	for gateways := int64(1); gateways < 5; gateways++ {
		tenants.Set(map[string]quota.Bounds{"acme": {Requests: &ten, Streams: &one}}, gateways)
		if n := taken(limit.List); n != 0 {
			t.Errorf("%d lists again since there are %d gateways", n, gateways)
		}
	}
	now = now.Add(time.Second)
	if n := taken(limit.Read); n != 12 { // a fourth of 10, rounded up
		t.Errorf("%d reads at once beside three other gateways, want 4 seconds of 3", n)
	}
	now = now.Add(time.Second)
	if requests, _ := tenants.Used("acme"); requests != 12 {
		t.Errorf("%d requests in the second before, want 12", requests)
	}
	if requests, streams := tenants.Used("nobody"); requests != 0 || streams != 0 {
		t.Errorf("a tenant that asked for nothing has used %d, %d", requests, streams)
	}
	if _, ok := tenants.Enter("acme"); !ok {
		t.Error("no place for the first stream")
	}
	if allowed, ok := tenants.Enter("acme"); ok || allowed != 1 {
		t.Errorf("a second stream of %d", allowed)
	}
	tenants.Leave("acme")
	if _, ok := tenants.Enter("acme"); !ok {
		t.Error("no place after one was left")
	}
	tenants.Set(nil, 1)
	if _, bounded, ok := tenants.Take("acme", limit.List); bounded || !ok {
		t.Error("a quota that was lifted holds")
	}
}

// TestUnknownTenantsAreNotRemembered: asking about tenants that asked for nothing, as everybody may who names one,
// takes no memory.
func TestUnknownTenantsAreNotRemembered(t *testing.T) {
	t.Parallel()
	tenants := limit.NewTenants(4, time.Now)
	ten := int64(10)
	bounds := map[string]quota.Bounds{}
	for i := range 100 {
		bounds[fmt.Sprint(i)] = quota.Bounds{Requests: &ten, Streams: &ten}
	}
	tenants.Set(bounds, 1)
	for i := range 200 { // half of them are bounded
		tenants.Used(fmt.Sprint(i))
		tenants.Empty(fmt.Sprint(i), limit.Read)
	}
	if n := tenants.Len(); n != 0 {
		t.Errorf("%d tenants are remembered that asked for nothing", n)
	}
	tenants.Take("1", limit.Read)
	if n := tenants.Len(); n != 1 {
		t.Errorf("%d tenants are remembered, of which one asked", n)
	}
}
