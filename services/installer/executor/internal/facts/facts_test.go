package facts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
)

// TestMet: what an operator that lacks nothing requires is relied on for a while, for this generation and these
// targets, and until somebody tells of a change.
func TestMet(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	tide := facts.Operator{Namespace: "coast", UID: "u-1", Generation: 1, Targets: "coast"}
	ebb := facts.Operator{Namespace: "harbour", UID: "u-2", Generation: 1, Targets: ""}
	rows := []csv.Requirement{{Kind: "CustomResourceDefinition", Name: "tides.sea.test", Status: csv.Present}}
	filled := func() *facts.Cache {
		c := facts.New(nil, func() time.Time { return now })
		c.SetMet(c.Turn(), tide, rows)
		c.SetMet(c.Turn(), ebb, nil)
		return c
	}
	met := func(c *facts.Cache, o facts.Operator) bool { _, ok := c.Met(o); return ok }

	c := filled()
	got, ok := c.Met(tide)
	if !ok || len(got) != 1 || got[0].Name != "tides.sea.test" {
		t.Errorf("kept: %+v, %v", got, ok)
	}
	other, upgraded := tide, tide
	other.Targets, upgraded.Generation = "coast,harbour", 2
	if met(c, other) || met(c, upgraded) {
		t.Error("another question has the same answer")
	}
	if users := c.ForgetCRD("tides.sea.test"); !slices.Equal(users, []string{"coast"}) || met(c, tide) || !met(c, ebb) {
		t.Errorf("after the CRD changed: users %v, tide %v, ebb %v", users, met(c, tide), met(c, ebb))
	}
	c = filled()
	c.ForgetNamespace("coast")
	if met(c, tide) || !met(c, ebb) {
		t.Errorf("after a change in the namespace: tide %v, ebb %v", met(c, tide), met(c, ebb))
	}
	c = filled()
	now = now.Add(time.Hour)
	if met(c, tide) {
		t.Error("it is believed for ever")
	}
}

// TestMetTooLate: an answer to a question that was asked before a change is not kept after it.
func TestMetTooLate(t *testing.T) {
	t.Parallel()
	c := facts.New(nil, time.Now)
	tide := facts.Operator{Namespace: "coast", UID: "u-1"}
	turn := c.Turn()
	c.ForgetNamespace("coast")
	c.SetMet(turn, tide, nil)
	if _, ok := c.Met(tide); ok {
		t.Error("the answer from before is kept")
	}
}
