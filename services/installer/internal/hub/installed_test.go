package hub

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestInstalledAsPlanned: what a cluster is told of its operators is what their plans brought, whatever it reported:
// who edits an object there does not have it signed by the hub (DESIGN D6). The grant says it, too.
func TestInstalledAsPlanned(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	p, planned := windowed("Automatic"), d.keep(gauge("1", `"get"`))
	p.Bundles = []events.PlannedBundle{{
		CSV: "tidegauge.v1", Package: "tidegauge", Content: planned,
		Replaces: "tidegauge.v0", Reason: "Subscribed",
	}}
	d.foldPlan(p)
	read := func() wanted {
		t.Helper()
		w, ok, err := d.h.read(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return w
	}
	for _, name := range []string{"tidegauge.v1", "forged.v1"} {
		d.aboutCSV(name, events.CSVPhaseChanged{
			Cluster: "east", Namespace: "ns", Name: name, Package: "tidegauge", Phase: "Succeeded", Plan: windowedPlan,
			Content: "sha256:reported",
		})
	}
	w := read()
	got := map[string]string{}
	for _, i := range w.message.Installed {
		got[i.CSV] = i.Content
	}
	if want := map[string]string{"tidegauge.v1": planned, "forged.v1": ""}; !cmp.Equal(got, want) {
		t.Errorf("told of %v, want %v", got, want)
	}
	for _, c := range w.contents {
		if c == "" || c == "sha256:reported" {
			t.Errorf("content %q is to be published", c)
		}
	}
	want := []protocol.GrantedOperator{{
		CSV: "tidegauge.v1", Package: "tidegauge", Content: planned,
		Replaces: "tidegauge.v0", Reason: "Subscribed",
	}}
	if len(w.message.Plans) != 1 || !cmp.Equal(w.message.Plans[0].Grant.Operators, want) {
		t.Errorf("granted %+v", w.message.Plans)
	}
}

// TestOperatorsOfFinishedPlansAreExpected: an executor is asked for what a plan has brought from the end of the plan
// on, so that it says so if somebody deletes it before anything of it was recorded.
func TestOperatorsOfFinishedPlansAreExpected(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	p, planned := windowed("Automatic"), d.keep(gauge("1", `"get"`))
	p.Bundles = []events.PlannedBundle{{
		CSV: "tidegauge.v1", Package: "tidegauge", Version: "1.0.0", Content: planned,
	}}
	told := func() []protocol.Installed {
		t.Helper()
		w, ok, err := d.h.read(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return w.message.Installed
	}
	d.foldPlan(p, events.InstallPlanStarted{})
	if got := told(); len(got) != 0 {
		t.Errorf("while its plan runs the executor is asked for %v", got)
	}
	d.foldPlan(events.InstallPlanFinished{})
	want := []protocol.Installed{{CSV: "tidegauge.v1", Content: planned, Plan: windowedPlan}}
	if got := told(); !cmp.Equal(got, want) {
		t.Errorf("after its plan the executor is asked for %v", got)
	}
	if got := d.samples(); !slices.Contains(got, "csv_count[]0") {
		t.Errorf("an operator of which nothing was heard is counted: %q", got)
	}
	d.aboutCSV("tidegauge.v1", events.CSVRemoved{Reason: "Deleted"})
	if got := told(); len(got) != 0 {
		t.Errorf("after it was said to be gone the executor is asked for %v", got)
	}
}
