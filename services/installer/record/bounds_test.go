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

// TestClassify: the rows of Holder.Classify. A cluster that was restored from a backup is believed again, and nobody
// else who speaks in a lower epoch.
func TestClassify(t *testing.T) {
	t.Parallel()
	type report struct {
		epoch  int64
		second int
		held   bool
		speaks bool // the holder of the highest epoch was heard a moment ago
	}
	const other, holder, former, restored = record.SenderOther, record.SenderHolder, record.SenderFormer,
		record.SenderRestored
	for name, c := range map[string]struct {
		reports []report
		want    []record.Sender
	}{
		"the holder, and a newer one": {
			[]report{{7, 0, true, true}, {8, 1, true, true}, {7, 2, true, true}},
			[]record.Sender{holder, holder, other},
		},
		"restored": {
			[]report{
				{3, 0, true, false},
				{3, 25, true, false},
				{3, 50, true, false},
				{3, 75, true, false},
				{3, 100, true, false},
				{3, 119, true, false},
				{3, 120, true, false},
				{3, 121, true, true},
				{4, 122, true, true},
				{7, -1, true, false},
				{3, 123, true, true},
			},
			[]record.Sender{other, other, other, other, other, other, restored, holder, holder, former, other},
		},
		"restored, and begun anew meanwhile": {
			[]report{
				{3, 0, true, false},
				{4, 25, true, false},
				{4, 50, true, false},
				{4, 75, true, false},
				{4, 100, true, false},
				{4, 125, true, false},
			},
			[]record.Sender{other, other, other, other, other, restored},
		},
		"a last value that is read again": {
			[]report{{3, 0, true, false}, {3, 0, true, false}, {3, 0, true, false}},
			[]record.Sender{other, other, other},
		},
		"with breaks": {[]report{
			{3, 0, true, false},
			{3, 31, true, false},
			{3, 62, true, false},
			{3, 93, true, false},
			{3, 130, true, false},
		}, []record.Sender{other, other, other, other, other}},
		"beside the holder": {
			[]report{
				{3, 0, true, false},
				{3, 25, true, false},
				{3, 50, true, true},
				{3, 75, true, false},
				{3, 100, true, false},
				{3, 125, true, false},
			},
			[]record.Sender{other, other, other, other, other, other},
		},
		"one who cannot reach the cluster": {
			[]report{
				{3, 0, false, false},
				{3, 25, false, false},
				{3, 50, false, false},
				{3, 75, false, false},
				{3, 100, false, false},
				{3, 125, false, false},
			},
			[]record.Sender{other, other, other, other, other, other},
		},
	} {
		h := record.Holder{Epoch: 7}
		for i, r := range c.reports {
			var got record.Sender
			if h, got = h.Classify(r.epoch, start.Add(time.Duration(r.second)*time.Second), r.held,
				r.speaks); got != c.want[i] {
				t.Errorf("%s: report %d is heard as %d, want %d", name, i, got, c.want[i])
			}
		}
	}
}
