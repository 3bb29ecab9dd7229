package operatorhub_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/operatorhub"
)

// TestDisabled proves R-CFG-10: a word on one catalog goes before the word on all.
func TestDisabled(t *testing.T) {
	t.Parallel()
	all := operatorhub.Hub{DisableAll: true}
	for name, c := range map[string]struct {
		hub  operatorhub.Hub
		want bool
	}{
		"nothing said":       {operatorhub.Hub{}, false},
		"all":                {all, true},
		"all but this":       {all.With("a", false), false},
		"this":               {operatorhub.Hub{}.With("a", true), true},
		"another":            {operatorhub.Hub{}.With("b", true), false},
		"all, and this back": {all.With("a", false).With("a", true), true},
	} {
		if got := c.hub.Disabled("a"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if len(all.Sources) != 0 {
		t.Error("With changed the hub that it was asked of")
	}
}
