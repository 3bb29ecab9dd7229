package plan

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// TestAGrantIsAskedBeforeTheFirstStep: a grant that ended while content was fetched and the base was checked begins
// nothing; what has begun goes on whatever its grant says (D6, R-IP-11).
func TestAGrantIsAskedBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	written := errors.New("the log is written")
	env := &scope.Env{
		Stop: func(string) *failure.Failure { return nil }, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return now }, Client: &kube.Epoch{}, Points: func(string) error { return written },
	}
	w := worker{Stage: New(Deps{}), Scope: scope.New(env, protocol.ScopePlans{}, nil, time.Hour)}
	for name, c := range map[string]struct {
		expires time.Time
		begun   bool
		begins  bool
	}{
		"in time":              {now.Add(time.Second), false, true},
		"too late":             {now, false, false},
		"too late, but it has": {now.Add(-time.Hour), true, true},
	} {
		r := scope.Plan{Plan: protocol.Plan{ID: "p", Grant: protocol.Grant{Expires: c.expires}}}
		x := &kube.Execution{}
		x.Status.Begun = c.begun
		_, f, err := w.steps(t.Context(), &run{Plan: r, log: x, passed: map[string]bool{}})
		switch {
		case c.begins && (f != nil || !errors.Is(err, written)):
			t.Errorf("%s: it does not begin: %+v, %v", name, f, err)
		case !c.begins && (err != nil || f == nil || f.Reason != failure.ReasonExpired || x.Status.Begun):
			t.Errorf("%s: it begins: %+v, %v", name, f, err)
		}
	}
}
