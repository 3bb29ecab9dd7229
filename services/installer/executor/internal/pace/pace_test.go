package pace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
)

var (
	start = time.Unix(1_000_000, 0)
	item  = pace.Item{Namespace: "ops", Operator: "tide.v1", What: "Deployment ops/tide"}
)

// TestContested: R-CSV-24: what is changed once is put right at once; against one who undoes it again and again the
// corrections become rare, and that is reported.
func TestContested(t *testing.T) {
	t.Parallel()
	p, now, corrections := pace.New(time.Second, time.Minute), start, 0
	for now.Sub(start) < time.Hour { // somebody changes it back each second
		if p.Wait(item, now) == 0 {
			corrections++
			p.Corrected(item, "hpa /spec/replicas", "tide.v1 is contested", now)
		}
		if corrections == pace.Patience && len(p.Notes("ops", now)) > 0 {
			t.Fatal("told before the corrections were undone more than a few times")
		}
		now = now.Add(time.Second)
	}
	if corrections < pace.Patience+8 || corrections > 25 {
		t.Errorf("%d corrections in an hour", corrections)
	}
	if told := p.Notes("ops", now); len(told) != 1 || told[0] != "tide.v1 is contested" {
		t.Errorf("told %q", told)
	}
	if told := p.Notes("other", now); len(told) != 0 {
		t.Errorf("told of another namespace: %q", told)
	}
	p.Corrected(item, "kubectl-edit /spec/template", "", now)
	if wait := p.Wait(item, now); wait != 0 {
		t.Errorf("another change by somebody else waits %s", wait)
	}
	if told := p.Notes("ops", now.Add(time.Hour)); len(told) != 0 {
		t.Errorf("told when it is long over: %q", told)
	}
}

// TestFailedTries: what cannot be done is tried again, less and less often, told when it failed again, and forgotten
// when it succeeds or its operator is gone.
func TestFailedTries(t *testing.T) {
	t.Parallel()
	p := pace.New(time.Second, time.Minute)
	if wait := p.Failed(item, "quota", start); wait != time.Second || p.Wait(item, start) != wait {
		t.Errorf("it waits %s", wait)
	}
	p.Failed(item, "quota", start.Add(time.Millisecond))
	if len(p.Notes("ops", start)) != 0 {
		t.Error("told of what may be over in a moment")
	}
	now := start
	for range 10 {
		now = now.Add(p.Failed(item, strings.Repeat("quota ", 1000), now))
	}
	if wait := p.Failed(item, "quota", now); wait != time.Minute {
		t.Errorf("after many tries it waits %s", wait)
	}
	if told := p.Notes("ops", now); len(told) != 1 || len(told[0]) > 600 {
		t.Errorf("told %q", told)
	}
	p.Keep("ops", func(string) bool { return true })
	if len(p.Notes("ops", now)) != 1 {
		t.Error("forgotten while its operator lives")
	}
	p.Succeeded(item)
	if len(p.Notes("ops", now)) != 0 || p.Wait(item, now) != 0 {
		t.Error("a success is not noted")
	}
	p.Failed(item, "quota", now)
	p.Keep("ops", func(string) bool { return false })
	if p.Wait(item, now) != 0 {
		t.Error("kept although its operator is gone")
	}
}
