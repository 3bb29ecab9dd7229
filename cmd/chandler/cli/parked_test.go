package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// TestParked proves that what a consumer could not take is listed, and retried by hand.
func TestParked(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	run := func(args ...string) (int, string) {
		var out, errOut bytes.Buffer
		streams := command.Streams{
			In: strings.NewReader(""), Out: &out, Err: &errOut, Now: time.Now,
			Env: func(name string) (string, bool) {
				if name == "CHANDLER_DATABASE_URL" {
					return db.URL("resolver"), true
				}
				return "", false
			},
		}
		status := Main(context.Background(), streams, append([]string{"bus"}, args...))
		return status, out.String() + errOut.String()
	}
	if status, out := run("parked"); status != 0 || !strings.Contains(out, "no parked events") {
		t.Errorf("bus parked with nothing parked: status %d, %q", status, out)
	}
	_, err := db.Pool(t, "resolver").Exec(context.Background(), `insert into eventlog.parked
		(tenant, consumer, stream, version, epoch, position, type, reason, attempts, next_retry)
		values ('default', 'resolver.scopes', 'csv:x:1', 3, 1, 42, 'csv.phase-changed.v1', 'phase Odd is unknown', 2,
		now() + interval '1 hour')`)
	if err != nil {
		t.Fatal(err)
	}
	status, out := run("parked", "resolver.scopes")
	for _, want := range []string{"resolver.scopes", "csv:x:1", "csv.phase-changed.v1", "phase Odd is unknown"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("bus parked: status %d, %q lacks %q", status, out, want)
		}
	}
	if status, out := run("retry", "resolver.scopes", "csv:x:1"); status != 0 {
		t.Errorf("bus retry: status %d, %q", status, out)
	}
	if status, out := run("retry", "nobody"); status != command.ExitNotFound ||
		!strings.Contains(out, `consumer "nobody" has nothing parked`) {
		t.Errorf("bus retry of nobody: status %d, %q", status, out)
	}
}
