package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
)

func TestMainPrintsOneError(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	s := command.Streams{
		In: strings.NewReader(""), Out: &out, Err: &errOut,
		Env: func(string) (string, bool) { return "", false }, Now: time.Now,
	}
	if status := Main(context.Background(), s, []string{
		"get", "clusters", "--url",
		"nowhere",
	}); status != command.ExitUsage {
		t.Errorf("status %d", status)
	}
	if got := errOut.String(); !strings.HasPrefix(got, "error: ") || strings.Count(got, "\n") != 1 || out.Len() > 0 {
		t.Errorf("said %q and wrote %q", got, out.String())
	}
	if status := Main(context.Background(), s, []string{"--help"}); status != 0 ||
		!strings.Contains(out.String(), "Everyday commands:") {
		t.Errorf("help: status %d, %q", status, out.String())
	}
}
