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

// Production requires a synchronous standby: chandler doctor says so of a real database that has none, says what fits,
// and fails.
func TestDoctor(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	var out, errOut bytes.Buffer
	streams := command.Streams{
		In: strings.NewReader(""), Out: &out, Err: &errOut, Now: time.Now,
		Env: func(name string) (string, bool) {
			if name == "CHANDLER_DATABASE_URL" {
				return db.URL("gateway"), true
			}
			return "", false
		},
	}
	status := Main(context.Background(), streams, []string{"doctor"})
	said := out.String()
	for _, want := range []string{
		"ok    schema ", "fail  synchronous standby ", "name a synchronous standby", "ok    clock ", "ok    roles ",
		"ok    max_connections ", "ok    bodies at rest ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if status == 0 || t.Failed() {
		t.Errorf("status %d, it said:\n%s%s", status, said, errOut.String())
	}
	// A record that is not there is one line, not a crash.
	empty := pgtest.Empty(t)
	out.Reset()
	streams.Env = func(name string) (string, bool) { return empty.URL(pgtest.Admin), name == "CHANDLER_DATABASE_URL" }
	if status := Main(context.Background(), streams, []string{"doctor"}); status == 0 ||
		!strings.Contains(out.String(), "fail  schema ") {
		t.Errorf("of an empty database: status %d, it said:\n%s%s", status, out.String(), errOut.String())
	}
}
