package errtext_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/source/internal/errtext"
)

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain",
		"error: read tcp 10.0.0.1:41234->10.0.0.2:50051: connection reset": "error: connection reset",
		"dial tcp [::1]:50051: connect: connection refused":                "connect: connection refused",
		"table \xfa":                   "table �",
		strings.Repeat("ä", 300):       strings.Repeat("ä", 250) + " …",
		"x" + strings.Repeat("ä", 300): "x" + strings.Repeat("ä", 249) + " …",
	} {
		if got := errtext.Clean(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
