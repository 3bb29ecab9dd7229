package quota_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/quota"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	of := func(resource string, hard int64) events.QuotaSet {
		return events.QuotaSet{Bounds: []events.QuotaBound{{Resource: resource, Hard: hard}}}
	}
	hard, raised, none := of("subscriptions", 5), of("subscriptions", 6), events.QuotaSet{Bounds: []events.QuotaBound{}}
	for name, c := range map[string]struct {
		given, when events.QuotaSet
		then        []events.Payload
		place       string // of the refusal
	}{
		"set":              {none, hard, []events.Payload{hard}, ""},
		"set again":        {hard, of("subscriptions", 5), nil, ""},
		"raise":            {hard, raised, []events.Payload{raised}, ""},
		"another one":      {hard, of("catalogs", 5), []events.Payload{of("catalogs", 5)}, ""},
		"lift":             {hard, none, []events.Payload{none}, ""},
		"none to lift":     {none, none, nil, ""},
		"no streams":       {none, of("streams", 0), []events.Payload{of("streams", 0)}, ""},
		"below none":       {none, of("catalogs", -1), nil, "/hard/catalogs"},
		"beyond a bound":   {none, of("streams", quota.Max+1), nil, "/hard/streams"},
		"nobody could ask": {none, of("requestsPerSecond", 0), nil, "/hard/requestsPerSecond"},
	} {
		got, err := quota.Decide(quota.State{Hard: c.given}, quota.Set{Hard: c.when})
		if diff := cmp.Diff(c.then, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if (err != nil) != (c.place != "") || err != nil && (!errs.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), c.place)) {
			t.Errorf("%s: %v", name, err)
		}
		s := quota.State{Hard: c.given}
		for _, p := range got {
			if s, err = quota.Evolve(s, p); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(c.when, s.Hard); c.place == "" && diff != "" {
			t.Errorf("%s leads to %s", name, diff)
		}
	}
	if _, err := quota.Evolve(quota.State{}, events.RoleDeleted{}); err == nil {
		t.Error("an event of another stream is folded")
	}
}

// The last one that is allowed is made, and one more is not; what stands above a lowered bound is no reason to refuse
// anything else.
func TestCheck(t *testing.T) {
	t.Parallel()
	hard := int64(2)
	for used, ok := range map[int64]bool{0: true, 1: true, 2: false, 7: false} {
		err := quota.Check("acme", "catalogs", &hard, used)
		if (err == nil) != ok || err != nil && !errs.Is(err, errs.Forbidden) {
			t.Errorf("with %d of %d: %v", used, hard, err)
		}
	}
	err := quota.Check("acme", "catalogs", &hard, 7)
	for _, word := range []string{"acme", "2 catalogs", "are 7"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
	if err := quota.Check("acme", "catalogs", nil, 7); err != nil {
		t.Errorf("without a bound: %v", err)
	}
}
