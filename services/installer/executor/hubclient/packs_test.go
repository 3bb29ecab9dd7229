package hubclient

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// TestPacks: the last packs that fit are remembered, and none where there is no room (issue 14: an agent corrects drift
// while its hub is away).
func TestPacks(t *testing.T) {
	t.Parallel()
	p := newPacks(10)
	for _, one := range []struct {
		digest digest.Digest
		bytes  int
	}{{"a", 4}, {"b", 4}, {"b", 4}, {"large", 11}, {"c", 5}} {
		p.put(one.digest, make([]byte, one.bytes))
	}
	for d, want := range map[digest.Digest]bool{"a": false, "b": true, "large": false, "c": true} {
		if _, ok := p.get(d); ok != want {
			t.Errorf("pack %s: remembered %t, want %t", d, ok, want)
		}
	}
	if p.size != 9 || len(p.order) != 2 {
		t.Errorf("%d bytes of %d packs, want 9 of 2", p.size, len(p.order))
	}
	none := newPacks(0)
	none.put("a", []byte{1})
	if _, ok := none.get("a"); ok {
		t.Error("a pack is remembered where none is to be")
	}
}
