package group_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/executor/scope"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
)

const gauge, buoy = "Gauge.v1.sea.test", "Buoy.v1.sea.test"

func standing(ns string, targets ...string) operatorgroup.Standing {
	return operatorgroup.Standing{Group: operatorgroup.Group{ID: ns, Namespace: ns, Name: "og"}, Targets: targets}
}

func fatal(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// loaded returns claims over groups of these namespaces, which all serve x.
func loaded(t *testing.T, namespaces ...string) *group.Claims {
	t.Helper()
	c := group.NewClaims()
	fatal(t, c.Load(func() (out []operatorgroup.Standing, _ []group.Claim, _ error) {
		for _, ns := range namespaces {
			out = append(out, standing(ns, "x"))
		}
		return out, nil, nil
	}))
	return c
}

func none(string) bool { return false }

// TestClaims: R-OG §7.7: the first operator gets an API, another group's waits and is woken when it is free (R-OG-36,
// R-OG-37).
func TestClaims(t *testing.T) {
	t.Parallel()
	c := loaded(t, "a", "b")
	if v, _ := c.Settle("a", "tide.v1", []string{gauge}); v.Action != operatorgroup.Claim {
		t.Fatalf("the first: %+v", v)
	}
	if v, _ := c.Settle("a", "tide.v2", []string{gauge}); v.Action != operatorgroup.Proceed {
		t.Errorf("its successor: %+v", v)
	}
	if v, _ := c.Settle("b", "moon.v1", []string{gauge, buoy}); v.Reason != operatorgroup.ReasonOwnerConflict {
		t.Errorf("the second: %+v", v)
	}
	if c.Provides(buoy) || len(c.Provided("b")) != 0 {
		t.Error("one that was refused provides something")
	}
	wake, free := c.Keep("a", func(csv string) bool { return csv == "tide.v2" })
	if !slices.Equal(wake, []string{"b"}) || len(free) != 0 {
		t.Errorf("after an upgrade: wake %v, free %v", wake, free)
	}
	if v, _ := c.Settle("b", "moon.v1", []string{gauge, buoy}); v.Action != operatorgroup.Refuse {
		t.Errorf("while the successor is there: %+v", v)
	}
	wake, free = c.Keep("a", none)
	if !slices.Equal(wake, []string{"b"}) || !slices.Equal(free, []string{gauge}) {
		t.Errorf("after the removal: wake %v, free %v", wake, free)
	}
	if v, _ := c.Settle("b", "moon.v1", []string{gauge, buoy}); v.Action != operatorgroup.Claim ||
		!slices.Equal(c.Provided("b"), []string{buoy, gauge}) {
		t.Errorf("once it is free: %+v, %v", v, c.Provided("b"))
	}
	c.Content("b")
	if wake, _ := c.Keep("b", none); len(wake) != 0 {
		t.Errorf("nobody waits, %v are woken", wake)
	}
}

// TestClaimsLoad: what cannot be read is no empty cluster, and whoever waits for the same answer shares it.
func TestClaimsLoad(t *testing.T) {
	t.Parallel()
	claims := group.NewClaims()
	reads, release := 0, make(chan struct{})
	read := func() ([]operatorgroup.Standing, []group.Claim, error) {
		reads++
		<-release
		return nil, nil, errors.New("namespaces are not known yet")
	}
	outcomes := make(chan error, 2)
	go func() { outcomes <- claims.Load(read) }()
	release <- struct{}{} // it reads
	if err := <-outcomes; err == nil || reads != 1 {
		t.Fatalf("%d reads, error %v", reads, err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = claims.Load(func() ([]operatorgroup.Standing, []group.Claim, error) { panic("slip") })
	}()
	good := func() ([]operatorgroup.Standing, []group.Claim, error) {
		reads++
		if claims.Provides(gauge) { // nobody who reads keeps others from asking
			t.Error("a claim from nowhere")
		}
		return nil, []group.Claim{{Namespace: "a", CSV: "tide.v1", APIs: []string{gauge}}}, nil
	}
	for range 2 {
		if err := claims.Load(good); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 2 || !claims.Provides(gauge) {
		t.Errorf("%d reads, provided %v", reads, claims.Provides(gauge))
	}
}

// TestClaimsWithdraw: R-OG §7.7, row "I, S, not static": groups that come to intersect: the one that is looked at
// first gives way.
func TestClaimsWithdraw(t *testing.T) {
	t.Parallel()
	c := loaded(t, "a", "b")
	apart := standing("b", "y")
	c.Stand("b", &apart)
	c.Settle("a", "tide.v1", []string{gauge})
	if v, _ := c.Settle("b", "moon.v1", []string{gauge}); v.Action != operatorgroup.Claim {
		t.Fatalf("apart: %+v", v)
	}
	if wake := c.Stand("b", &apart); wake != nil {
		t.Errorf("a group that stands as before wakes %v", wake)
	}
	together := standing("b", "x")
	c.Stand("b", &together)
	if v, _ := c.Settle("a", "tide.v1", []string{gauge}); v.Reason != operatorgroup.ReasonOwnerConflict ||
		len(c.Of("a", "tide.v1")) != 0 {
		t.Errorf("the first look: %+v, %v", v, c.Of("a", "tide.v1"))
	}
	if v, _ := c.Settle("b", "moon.v1", []string{gauge}); v.Action != operatorgroup.Proceed {
		t.Errorf("the other: %+v", v)
	}
	if wake := c.Stand("b", nil); !slices.Equal(wake, []string{"a"}) {
		t.Errorf("the end of the other group wakes %v", wake)
	}
	if v, _ := c.Settle("a", "tide.v1", []string{gauge}); v.Action != operatorgroup.Claim {
		t.Errorf("without the other group: %+v", v)
	}
}

// TestClaimsOfSeveralGroups: a namespace whose groups were several when the session began keeps what its operators have
// claimed: no other group takes it (R-OG §7.7).
func TestClaimsOfSeveralGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		targets string
		refused bool
	}{"that met": {"x,y", true}, "that was global": {"", true}, "that did not meet": {"z", false}} {
		claims := group.NewClaims()
		before := group.StoodBefore("a", map[string]string{"olm.operatorGroup": "g", "olm.targetNamespaces": c.targets})
		err := claims.Load(func() ([]operatorgroup.Standing, []group.Claim, error) {
			return []operatorgroup.Standing{before, standing("b", "x")},
				[]group.Claim{{Namespace: "a", CSV: "tide.v1", APIs: []string{gauge}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := claims.Settle("b", "moon.v1", []string{gauge}); (v.Action == operatorgroup.Refuse) != c.refused {
			t.Errorf("beside a group %s: %+v", name, v)
		}
	}
}

// TestClaimsOfStaticGroups: R-OG-30: a static group provides what it says, with or without an operator.
func TestClaimsOfStaticGroups(t *testing.T) {
	t.Parallel()
	c := loaded(t, "b")
	reserved := standing("a", "x")
	reserved.Spec.StaticProvidedAPIs, reserved.Provided = true, []string{gauge}
	c.Stand("a", &reserved)
	if v, _ := c.Settle("b", "moon.v1", []string{gauge}); v.Reason != operatorgroup.ReasonOwnerConflict {
		t.Errorf("an API that is reserved: %+v", v)
	}
	if v, _ := c.Settle("a", "tide.v1", []string{gauge}); v.Action != operatorgroup.Proceed || !c.Provides(gauge) {
		t.Errorf("its own: %+v", v)
	}
	if v, _ := c.Settle("a", "tide.v1", []string{gauge, buoy}); v.Reason != operatorgroup.ReasonStatic ||
		c.Provides(gauge) {
		t.Errorf("more than is reserved: %+v", v)
	}
	if got := c.Provided("a"); !slices.Equal(got, []string{gauge}) {
		t.Errorf("the static group provides %v", got)
	}
}

// TestClaimsSurvive: what the cluster holds counts from the first look of a session on, and is read until it could be.
func TestClaimsSurvive(t *testing.T) {
	t.Parallel()
	c := group.NewClaims()
	failed := errs.New(errs.Unavailable, "not now")
	if err := c.Load(func() ([]operatorgroup.Standing, []group.Claim, error) { return nil, nil, failed }); !errs.Is(
		err, errs.Unavailable) {
		t.Fatal(err)
	}
	reads := 0
	read := func() ([]operatorgroup.Standing, []group.Claim, error) {
		reads++
		return []operatorgroup.Standing{standing("a", "x"), standing("b", "x")},
			[]group.Claim{{Namespace: "a", CSV: "tide.v1", APIs: []string{gauge}}, {Namespace: "b", CSV: "moon.v1"}},
			nil
	}
	fatal(t, c.Load(read))
	fatal(t, c.Load(read))
	if v, _ := c.Settle("b", "moon.v1", []string{gauge}); reads != 1 || v.Action != operatorgroup.Refuse {
		t.Errorf("%d reads, %+v", reads, v)
	}
}

// TestClaimsAtOnce: of operators that come at the same time, one gets the API.
func TestClaimsAtOnce(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f"}
	c := loaded(t, names...)
	got := make([]operatorgroup.Action, len(names))
	var running sync.WaitGroup
	for i, ns := range names {
		running.Go(func() {
			v, _ := c.Settle(ns, "tide.v1", []string{gauge})
			got[i] = v.Action
		})
	}
	running.Wait()
	slices.Sort(got)
	if diff := cmp.Diff([]operatorgroup.Action{
		operatorgroup.Claim, operatorgroup.Refuse, operatorgroup.Refuse,
		operatorgroup.Refuse, operatorgroup.Refuse, operatorgroup.Refuse,
	}, got); diff != "" {
		t.Error(diff)
	}
}

// TestLabels: R-CSV-44: labels follow the targets; those of a group that is gone go, those of OLM's groups stay.
func TestLabels(t *testing.T) {
	t.Parallel()
	const own, other, gone, drawn = "5d7c3c5c-0d4e-5b4e-8a57-1f2b0f0c9d11", "0b1f6a32-7d6d-5f57-9a40-6d4f3a1c2b22",
		"c1d2e3f4-1111-5222-8333-444455556666", "9f2c3d4e-1111-4222-8333-444455556666"
	marked := func(ids ...string) map[string]string {
		out := map[string]string{"sea": "north"}
		for _, id := range ids {
			out[scope.LabelNamespacePrefix+id] = ""
		}
		return out
	}
	namespaces := []group.Namespace{
		{Name: "left", Labels: marked(own)},
		{Name: "new", Labels: marked(other, drawn)},
		{Name: "old", Labels: marked(own)},
		{Name: "stale", Labels: marked(gone)},
	}
	known := func(id string) bool { return id == own || id == other }
	read := func(changes map[string]map[string]*string) map[string]string {
		out := map[string]string{}
		for ns, labels := range changes {
			for label, value := range labels {
				out[ns+" "+label[len(scope.LabelNamespacePrefix):]] = map[bool]string{
					true: "gone", false: "set",
				}[value == nil]
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		id      string
		targets []string
		want    map[string]string
	}{
		"targets": {
			own,
			[]string{"nowhere", "new", "old"},
			map[string]string{"new " + own: "set", "left " + own: "gone", "stale " + gone: "gone"},
		},
		"global": {own, []string{""}, map[string]string{
			"left " + own: "gone", "old " + own: "gone",
			"stale " + gone: "gone",
		}},
		"no group": {"", nil, map[string]string{"stale " + gone: "gone"}},
	} {
		if diff := cmp.Diff(c.want, read(group.Labels(c.id, c.targets, namespaces, known))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
