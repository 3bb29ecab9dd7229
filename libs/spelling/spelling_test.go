package spelling

import (
	"strings"
	"testing"
)

// TestClosest: names with the fewest typing errors are suggested.
func TestClosest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want string
	}{
		{"wset-1", "west-1"},
		{"west", "west-1 west-2"},
		{"est-1", "east-1 west-1"},
		{"north", ""},
		{"a", ""},
		{"WEST-1", "west-1"},
		{"west-1" + strings.Repeat("1", 1<<20), ""}, // what callers send costs nothing
	} {
		if got := strings.Join(Closest(c.name, []string{"west-1", "west-2", "east-1", "b"}), " "); got != c.want {
			t.Errorf("%.20s: %q, want %q", c.name, got, c.want)
		}
	}
}
