package installplans_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func setup(t *testing.T) (*viewtest.Env, *installplans.Reader) {
	t.Helper()
	e := viewtest.New(t, installplans.Projection(), clusters.Projection(), operators.Projection())
	c, err := content.New()
	if err != nil {
		t.Fatal(err)
	}
	opening, err := readmodel.OpenBodies(bodiestest.Keys(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return e, &installplans.Reader{Pool: e.Pool, Content: c, Bodies: opening}
}

// plan folds a plan and what became of it, and returns its id.
func plan(e *viewtest.Env, n int, after ...events.Payload) string {
	id := uuid.NewSHA1(uuid.Nil, []byte{byte(n)}).String()
	name := fmt.Sprintf("install-%d", n)
	e.Fold(events.KindInstallPlan, "harbour/ops/"+name, append([]events.Payload{events.InstallPlanProposed{
		Plan: id, Name: name, Cluster: "harbour", Namespace: "ops", Approval: "Manual", Digest: "sha256:d",
		Bundles: []events.PlannedBundle{{CSV: "tide.v1", Package: "tide"}},
	}}, after...)...)
	return id
}

// TestList: R-IP-10: an approval that expired before the first step is void, in the phase that is shown and in the
// phase that lists choose by; what is blocked is so until it has ended; plans come newest first, page by page.
func TestList(t *testing.T) {
	t.Parallel()
	e, r := setup(t)
	blocked := events.InstallPlanBlocked{Class: "transient", Reason: "ClusterUnreachable"}
	approved := func(expires time.Time) events.InstallPlanApproved {
		return events.InstallPlanApproved{Digest: "sha256:d", Expires: expires}
	}
	day := 24 * time.Hour
	plan(e, 1)
	plan(e, 2, approved(time.Now().Add(day)), blocked)
	plan(e, 3, approved(time.Now().Add(-day)))
	plan(e, 4, approved(time.Now().Add(-day)), events.InstallPlanStarted{Steps: 1})
	plan(e, 5, blocked, events.InstallPlanSuperseded{})
	list := func(who model.Caller, f model.PlanFilter) (names, next []string) {
		t.Helper()
		if f.Limit == 0 {
			f.Limit = 9
		}
		items, next, err := r.List(t.Context(), who, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range items {
			names = append(names, p.Name[len("install-"):]+" "+p.Phase)
		}
		return names, next
	}
	all := []string{"5 Superseded", "4 Installing", "3 RequiresApproval", "2 Installing", "1 RequiresApproval"}
	for _, c := range []struct {
		name string
		who  model.Caller
		f    model.PlanFilter
		want []string
	}{
		{"all", viewtest.Ann, model.PlanFilter{}, all},
		{"that wait for people", viewtest.Ann, model.PlanFilter{Phase: "RequiresApproval"}, []string{all[2], all[4]}},
		{"that are installed", viewtest.Ann, model.PlanFilter{Phase: "Installing"}, []string{all[1], all[3]}},
		{"that are blocked", viewtest.Ann, model.PlanFilter{Blocked: "true"}, []string{all[3]}},
		{"of another namespace", viewtest.Ann, model.PlanFilter{Namespace: "else"}, nil},
		{"of another tenant", viewtest.Eve, model.PlanFilter{}, nil},
	} {
		if got, _ := list(c.who, c.f); !slices.Equal(got, c.want) {
			t.Errorf("plans %s: %q, want %q", c.name, got, c.want)
		}
	}
	first, next := list(viewtest.Ann, model.PlanFilter{Page: model.Page{Limit: 3}})
	second, end := list(viewtest.Ann, model.PlanFilter{Page: model.Page{Limit: 3, After: next}})
	if got := slices.Concat(first, second); !slices.Equal(got, all) || end != nil {
		t.Errorf("by pages %q, the last one is followed by %q", got, end)
	}
	for _, cursor := range [][]string{{"harbour", "ops"}, {"1"}, {"1", "2", "3"}} {
		_, _, err := r.List(t.Context(), viewtest.Ann, model.PlanFilter{Page: model.Page{Limit: 3, After: cursor}})
		if !errs.Is(err, errs.Invalid) {
			t.Errorf("the cursor %q of another list: %v", cursor, err)
		}
	}
}

// TestGet: what stands outside the log is added where it is there, and left out where it was erased; a plan of another
// tenant is not found; an event of a plan that was never proposed is an error, so that its stream parks.
func TestGet(t *testing.T) {
	t.Parallel()
	e, r := setup(t)
	why := bodiestest.Put(t, e.Pool, events.DefaultTenant, bodies.Reason, "it is known")
	notes := bodiestest.Put(t, e.Pool, events.DefaultTenant, bodies.Annotations, `{"a": "b"}`)
	settled := func(object, reason string) events.InstallPlanObstaclesSettled {
		return events.InstallPlanObstaclesSettled{Digest: "sha256:d", By: "ann", Choices: []events.PlanChoice{
			{Object: object, Choice: "Keep", Finding: "sha256:f", Reason: reason},
		}}
	}
	id := plan(e, 1, settled("ClusterRole/a", why), settled("ClusterRole/b", "c1:erased"),
		events.InstallPlanMetadataChanged{Metadata: events.Metadata{
			Labels: map[string]string{"ticket": "7"}, Annotations: notes,
		}})
	p, err := r.Get(t.Context(), viewtest.Ann, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Choices) != 2 || p.Choices[0].Reason != "it is known" || p.Choices[1].Reason != "(erased)" {
		t.Errorf("choices %+v", p.Choices)
	}
	if p.Labels["ticket"] != "7" || p.Annotations["a"] != "b" || p.Document != nil || p.Version != 4 {
		t.Errorf("plan %+v", p)
	}
	e.Exec(`delete from gateway.bodies`)
	if p, err := r.Get(t.Context(), viewtest.Ann, id); err != nil || p.Choices[0].Reason != "(erased)" ||
		p.Annotations != nil {
		t.Errorf("after what was said is erased: %+v, %v", p, err)
	}
	if _, err := r.Get(t.Context(), viewtest.Eve, id); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant reads it: %v", err)
	}
	if err := e.Try(events.KindInstallPlan, "harbour/ops/never", events.InstallPlanStarted{}); !errs.Is(err,
		errs.Internal) {
		t.Errorf("a start of a plan that was never proposed: %v", err)
	}
}
