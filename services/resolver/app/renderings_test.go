package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
)

// laterRendering is what a later release renders by: objects of all operators but "same" look otherwise.
const laterRendering = "chandler.render.v2"

func renderedLater(in render.Input) ([]render.Object, error) {
	objects, err := render.Render(in)
	for i := range objects {
		if !strings.HasPrefix(objects[i].Resolving, "same") {
			objects[i].Body["metadata"].(map[string]any)["labels"] = map[string]any{"release": "later"}
		}
	}
	return objects, err
}

// byCSV are the plans of one operator, in the order of proposal.
func (f *fleet) byCSV(csv string) (out []installplan.State) {
	f.t.Helper()
	for _, p := range f.plans() {
		if p.Proposed.Bundles[0].CSV == csv {
			out = append(out, p)
		}
	}
	return out
}

// last is the newest plan of an operator, of so many.
func (f *fleet) last(csv string, of int) installplan.State {
	f.t.Helper()
	all := f.byCSV(csv)
	if len(all) != of {
		f.t.Fatalf("%s has %d plans, want %d: %+v", csv, len(all), of, all)
	}
	return all[of-1]
}

func (f *fleet) approve(p installplan.State) {
	f.t.Helper()
	f.tell(events.Gateway, p, events.InstallPlanApproved{
		Digest: p.Proposed.Digest, Base: p.Proposed.Base, Expires: time.Now().Add(time.Hour),
	})
}

func (f *fleet) tell(w events.Writer, p installplan.State, payloads ...events.Payload) {
	f.t.Helper()
	f.append(w, events.KindInstallPlan, scoped(p.Proposed.Name), p.Proposed.Plan, payloads...)
}

// TestRenderingsChange: DESIGN D5: an upgrade of Chandler that renders otherwise leaves no plan behind. What was
// pending or approved and gives other objects now is proposed anew, and says why; what gives the same keeps its
// approval; what was begun goes on. Where the old rules are gone, the begun one ends, and another plan takes over what
// it has left.
func TestRenderingsChange(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	one := map[string]render.Renderer{render.Semantics: render.Render}
	both := map[string]render.Renderer{render.Semantics: render.Render, laterRendering: renderedLater}
	two := map[string]render.Renderer{laterRendering: renderedLater}
	release := func(by map[string]render.Renderer) (stop func()) {
		f.rendering = render.NewVersions(by)
		return f.start()
	}
	stop := release(one)
	f.ready()
	f.addCatalog("fleet")
	names := []string{"pending", "approved", "begun", "same"}
	var pkgs []string
	f.publish("fleet", "", f.pkg("pending", version{v: "1.0.0"}), f.pkg("approved", version{v: "1.0.0"}),
		f.pkg("begun", version{v: "1.0.0"}), f.pkg("same", version{v: "1.0.0"}))
	for _, name := range names {
		f.subscribe(name, name, "stable", manual)
		pkgs = append(pkgs, name+".v1.0.0")
	}
	f.quiet()
	first := map[string]installplan.State{}
	for _, csv := range pkgs {
		p := f.last(csv, 1)
		if p.Proposed.Rendering != render.Semantics || p.Phase != installplan.RequiresApproval {
			t.Fatalf("%s: %s by %q", csv, p.Phase, p.Proposed.Rendering)
		}
		if first[csv] = p; csv != "pending.v1.0.0" {
			f.approve(p)
		}
	}
	f.tell(events.Installer, first["begun.v1.0.0"], events.InstallPlanStarted{Steps: 3})
	f.quiet()
	stop()

	stop = release(both)
	f.until("the changed plans to be proposed anew", func() bool { return len(f.plans()) == 6 })
	f.quiet()
	for _, csv := range []string{"pending.v1.0.0", "approved.v1.0.0"} {
		old, p := f.byCSV(csv)[0], f.last(csv, 2)
		if old.Phase != installplan.Superseded || old.SupersededReason != events.SupersededRendering ||
			old.SupersededBy != p.Proposed.Plan {
			t.Errorf("%s: the old plan is %s by %s, reason %q", csv, old.Phase, old.SupersededBy, old.SupersededReason)
		}
		if p.Phase != installplan.RequiresApproval || p.Proposed.Rendering != laterRendering ||
			p.Proposed.Digest == old.Proposed.Digest {
			t.Errorf("%s: the new plan is %s by %s", csv, p.Phase, p.Proposed.Rendering)
		}
		_, err := installplan.Decide(old, installplan.Approve{Digest: old.Proposed.Digest, Actor: "a", Now: time.Now()})
		if err == nil || !strings.Contains(err.Error(), "renders its bundles to other objects") {
			t.Errorf("%s: an approval of the old plan says %v", csv, err)
		}
	}
	for _, csv := range []string{"begun.v1.0.0", "same.v1.0.0"} {
		if p := f.last(csv, 1); p.Phase != installplan.Installing || p.Approval.Digest != p.Proposed.Digest {
			t.Errorf("%s: %s, approved %q", csv, p.Phase, p.Approval.Digest)
		}
	}
	stop()

	// An earlier release again: it leaves alone what it does not know, until its executor does not know it either.
	stop = release(one)
	f.quiet()
	f.last("pending.v1.0.0", 2)
	f.tell(events.Installer, f.last("pending.v1.0.0", 2), events.InstallPlanBlocked{
		Class: "conflict", Reason: events.RenderingAhead,
	})
	f.quiet()
	if p := f.last("pending.v1.0.0", 3); p.Proposed.Rendering != render.Semantics {
		t.Errorf("after the way back it is rendered by %s", p.Proposed.Rendering)
	}
	stop()

	stop = release(two)
	defer stop()
	f.until("what is gone to be proposed anew", func() bool { return len(f.plans()) == 9 })
	f.quiet()
	p := f.last("same.v1.0.0", 2)
	if p.Proposed.Rendering != laterRendering || p.Phase != installplan.RequiresApproval {
		t.Errorf("same: %s by %s", p.Phase, p.Proposed.Rendering)
	}
	begun := f.last("begun.v1.0.0", 1)
	f.phase(begun.Proposed.Bundles[0], begun.Proposed.Plan, "InstallReady")
	f.quiet()
	f.tell(events.Installer, begun, events.InstallPlanFailed{Step: 3, Reason: events.RenderingGone})
	f.quiet()
	heir := f.last("begun.v1.0.0", 2)
	if heir.Proposed.TakesOver != begun.Proposed.Plan || heir.Proposed.Rendering != laterRendering ||
		heir.Phase != installplan.RequiresApproval || heir.Proposed.Input != begun.Proposed.Input {
		t.Errorf("the heir is %s, %+v", heir.Phase, heir.Proposed)
	}
	if diff := cmp.Diff(begun.Proposed.Bundles, heir.Proposed.Bundles); diff != "" {
		t.Errorf("bundles (-want +got):\n%s", diff)
	}
	f.phase(begun.Proposed.Bundles[0], begun.Proposed.Plan, "Failed") // it stays, whatever becomes of the rest
	f.quiet()
	f.last("begun.v1.0.0", 2)
	f.approve(heir)
	f.carryOut(heir)
	f.quiet()
	if p := f.last("begun.v1.0.0", 2); p.Phase != installplan.Complete {
		t.Errorf("the heir is %s", p.Phase)
	}
	f.notRecorded()
}

// notRecorded: nothing of what was appended is parked.
func (f *fleet) notRecorded() {
	f.t.Helper()
	if n := f.scalar(`select count(*) from eventlog.parked`); n != 0 {
		f.t.Errorf("%d events are parked", n)
	}
}

// TestRenderingDiffers: a plan whose executor renders otherwise than it says is proposed anew where the resolver
// renders otherwise, too; where it does not, nothing is proposed again and again.
func TestRenderingDiffers(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	differs := events.InstallPlanBlocked{Class: "conflict", Reason: events.RenderingDiffers}
	f.tell(events.Installer, f.last("buoy.v1.0.0", 1), differs)
	f.quiet()
	f.last("buoy.v1.0.0", 1)
	stop()
	// The same name for other rules: a fault of a release.
	f.rendering = render.NewVersions(map[string]render.Renderer{render.Semantics: renderedLater})
	f.start()
	f.quiet()
	f.tell(events.Installer, f.last("buoy.v1.0.0", 1), events.InstallPlanBlocked{Class: "transient", Reason: "Timeout"},
		differs)
	f.quiet()
	second := f.last("buoy.v1.0.0", 2)
	f.tell(events.Installer, second, events.InstallPlanStarted{Steps: 1},
		events.InstallPlanFailed{Step: 1, Reason: events.RenderingDiffers})
	f.quiet()
	f.last("buoy.v1.0.0", 2) // it is rendered as it was: another try would end like this one
}
