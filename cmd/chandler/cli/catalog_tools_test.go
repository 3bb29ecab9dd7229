package cli

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
)

// TestStatuses: what a command for authors says of its own status is the status of the process.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for want, args := range map[int][]string{
		0: {"catalog", "validate", filepath.Join("..", "..", "..", "examples", "catalog")},
		3: {
			"catalog", "diff", "--exit-code", filepath.Join("..", "..", "..", "examples", "catalog"),
			filepath.Join("..", "..", "..", "examples", "catalog", "buoy"),
		},
		2: {"catalog", "validate", "nowhere"},
	} {
		var output strings.Builder
		s := command.Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: &output,
			Env: func(string) (string, bool) { return "", false },
		}
		if got := Main(t.Context(), s, args); got != want {
			t.Errorf("%v: status %d, want %d\n%s", args, got, want, output.String())
		}
	}
}
