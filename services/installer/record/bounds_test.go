package record_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/services/installer/record"
)

// TestBudget: DESIGN D2: whatever is asked for, in any interval no more is given than the burst and what the time gives
// back.
func TestBudget(t *testing.T) {
	t.Parallel()
	a := record.RateLimit{Burst: 10, Every: 3 * time.Second}
	rapid.Check(t, func(t *rapid.T) {
		var b record.Budget
		given, at := 0, start
		for range rapid.IntRange(1, 50).Draw(t, "reports") {
			at = at.Add(time.Duration(rapid.IntRange(0, 9000).Draw(t, "pause")) * time.Millisecond)
			b = b.Refill(a, at)
			n := min(rapid.IntRange(0, 12).Draw(t, "asked"), b.Remaining(a))
			b.Spent += n
			if given += n; given > a.Burst+int(at.Sub(start)/a.Every)+1 {
				t.Fatalf("%d facts after %s", given, at.Sub(start))
			}
		}
		if rest := b.Refill(a, at.Add(10*a.Every)); rest.Remaining(a) != a.Burst {
			t.Fatalf("after a rest %d are left of %d", rest.Remaining(a), a.Burst)
		}
	})
	over := record.Budget{Spent: 15, Since: start}
	if over.Remaining(a) != 0 || over.Refill(a, start.Add(5*a.Every)).Remaining(a) != 0 ||
		over.Refill(a, start.Add(6*a.Every)).Remaining(a) != 1 {
		t.Errorf("what was spent beyond the burst is not given back first")
	}
}

// TestBudgetAfterTheClockWasSetBack: nothing waits until the clock is again where it was.
func TestBudgetAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	a := record.RateLimit{Burst: 10, Every: 3 * time.Second}
	b := record.Budget{Spent: 10, Since: start}.Refill(a, start.Add(-24*time.Hour))
	if b.Remaining(a) != 0 {
		t.Errorf("setting the clock back has given back %d", b.Remaining(a))
	}
	if got := b.Refill(a, start.Add(-24*time.Hour+6*time.Second)).Remaining(a); got != 2 {
		t.Errorf("six seconds later %d are given back, want 2", got)
	}
}

// TestClassify: the rows of Holder.Classify (DESIGN D7): who speaks for a cluster is who registered, and no report
// makes anybody the holder.
func TestClassify(t *testing.T) {
	t.Parallel()
	const unregistered = record.SenderUnregistered
	h := record.Holder{Epoch: 7, Session: "seven"}
	for name, c := range map[string]struct {
		claim  record.Claim
		known  record.Known
		speaks bool
		want   record.Sender
	}{
		"the holder":              {record.Claim{7, "seven", 5}, record.Known{7, 4}, true, record.SenderHolder},
		"the holder, once more":   {record.Claim{7, "seven", 5}, record.Known{7, 5}, true, record.SenderHolder},
		"an old report of his":    {record.Claim{7, "seven", 3}, record.Known{7, 4}, true, record.SenderFormer},
		"a huge epoch":            {record.Claim{1 << 62, "seven", 5}, record.Known{7, 4}, true, unregistered},
		"of a session without":    {record.Claim{8, "other", 5}, record.Known{0, 0}, false, unregistered},
		"below zero":              {record.Claim{-1, "seven", 5}, record.Known{7, 4}, false, unregistered},
		"a former holder":         {record.Claim{6, "six", 900}, record.Known{6, 4}, false, record.SenderFormer},
		"his epoch of before":     {record.Claim{6, "seven", 5}, record.Known{7, 4}, false, record.SenderFormer},
		"another in the epoch":    {record.Claim{7, "other", 5}, record.Known{7, 0}, false, record.SenderFormer},
		"who cannot reach it":     {record.Claim{0, "other", 5}, record.Known{0, 4}, true, record.SenderOther},
		"and nobody else speaks":  {record.Claim{0, "other", 5}, record.Known{0, 4}, false, record.SenderHolder},
		"and did so long ago":     {record.Claim{0, "other", 3}, record.Known{0, 4}, false, record.SenderFormer},
		"the holder, from before": {record.Claim{0, "seven", 1}, record.Known{7, 4}, false, record.SenderFormer},
	} {
		if got := h.Classify(c.claim, c.known, c.speaks); got != c.want {
			t.Errorf("%s: heard as %d, want %d", name, got, c.want)
		}
	}
	if got := (record.Holder{}).Classify(record.Claim{0, "s", 1}, record.Known{}, false); got != record.SenderHolder {
		t.Errorf("of a cluster that nobody held yet: heard as %d", got)
	}
}

// TestSpeaks: a clock of the database that jumps makes nobody speak for longer than HolderTimeout.
func TestSpeaks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		heard     time.Duration // before now
		heartbeat int           // seconds, as the holder says
		speaks    bool
		ahead     bool
	}{
		"a moment ago":              {time.Second, 0, true, false},
		"a heartbeat ago":           {29 * time.Second, 0, true, false},
		"long ago":                  {30 * time.Second, 0, false, false},
		"of one that says more":     {30 * time.Second, 1, false, false},
		"of one that says less":     {119 * time.Second, 60, true, false},
		"of that one, long ago":     {120 * time.Second, 60, false, false},
		"of one that claims years":  {2 * record.MaxHeartbeat, 1 << 40, false, false},
		"another machine's clock":   {-record.ClockTolerance, 0, true, false},
		"the clock was set back":    {-time.Hour, 60, false, true},
		"the clock was set forward": {time.Hour, 60, false, false},
	} {
		speaks, ahead := record.Speaks(start.Add(-c.heard), start, record.Heartbeat(c.heartbeat))
		if speaks != c.speaks || ahead != c.ahead {
			t.Errorf("%s: speaks %v, ahead %v", name, speaks, ahead)
		}
	}
}
