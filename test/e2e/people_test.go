package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// TestPeopleDecide follows one operator in two namespaces through what people have to say about it: a preview becomes
// the very plan that it announced; two people agree to it; it waits for its window; another window makes their consent
// void; a ceiling holds an upgrade back; and every plan is explained as it was recorded.
// R-IP-10, R-IP-11, DESIGN D6, P10, P18, P19.
func TestPeopleDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "catalog")
	w.must(os.CopyFS(dir, os.DirFS(example(t))))
	w.addCatalog("harbour", dir)
	mate := w.person("mate")
	light := subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"}
	asked := light
	asked.Approval = "Manual"
	for _, namespace := range []string{"east", "west"} {
		w.group(namespace)
	}

	// The window is closed for twelve hours.
	opens := time.Now().UTC().Truncate(time.Minute).Add(12 * time.Hour)
	w.policy("two-people", watch("east", opens))
	first := w.previewed("east", asked)
	w.agree(mate, first)
	w.waitsFor("east", "light", opens)

	// The executor brings an operator to the west, and leaves the east alone.
	w.subscribe("west", light)
	w.succeeded("west", "lighthouse.v1.2.0")
	// it needs no plan
	ofGroup := func(o string) bool { return strings.Contains(o, `"olm.owner.kind":"OperatorGroup"`) }
	if got := slices.DeleteFunc(w.objects("east"), ofGroup); len(got) > 0 {
		t.Errorf("before the window opened, the cluster has %v", got)
	}

	// The window is opened: that is another plan, and people have to agree again.
	w.policy("two-people", watch("east", time.Now().Add(-time.Hour)))
	second := w.waiting("east")
	w.void(first, second)
	w.agree(mate, second)
	w.succeeded("east", "lighthouse.v1.2.0")
	w.begun("east", second)

	// A new version comes out. The east is asked, the west is held back until its ceiling is lifted.
	w.policy("no-further", map[string]any{
		"selector": map[string]any{"namespaces": []string{"west"}}, "versions": map[string]any{"ceiling": "1.2.0"},
	})
	w.release(dir)
	w.waiting("east")
	w.heldBy("no-further", "west", "lighthouse.v1.3.0")
	w.must(w.Do(w.ctx, http.MethodDelete, "/api/v1/approvalpolicies/no-further", nil, nil))
	w.succeeded("west", "lighthouse.v1.3.0")
	w.planned("west", 1, 1)

	plans := append(w.plans("east"), w.plans("west")...)
	if len(plans) != 5 {
		t.Errorf("got %d plans, want 3 of the east and 2 of the west: %+v", len(plans), plans)
	}
	for _, p := range plans {
		w.explained(p)
	}
}

// person returns the client of another administrator.
func (w *world) person(name string) stack.Client {
	w.t.Helper()
	var made struct{ Token string }
	w.must(w.Do(w.ctx, http.MethodPost, "/api/v1/tokens", map[string]any{"name": name, "role": "admin"}, &made))
	return stack.NewClient(w.Stack.URL(), made.Token)
}

// watch is a policy of two approvers and a window of two hours a day.
func watch(namespace string, opens time.Time) map[string]any {
	return map[string]any{
		"selector":  map[string]any{"namespaces": []string{namespace}},
		"approvers": 2,
		"windows":   []any{map[string]any{"start": opens.UTC().Format("15:04"), "minutes": 120, "timeZone": "UTC"}},
	}
}

func (w *world) policy(name string, spec map[string]any) {
	w.t.Helper()
	w.must(w.Do(w.ctx, http.MethodPut, "/api/v1/approvalpolicies/"+name, spec, nil))
}

// answered repeats a question until the resolver has read what was written before it.
func (w *world) answered(ask func() error) {
	w.t.Helper()
	w.eventually("the resolver answers", func() (string, bool) {
		err := ask()
		var problem *stack.RefusedError
		if errors.As(err, &problem) && problem.Status == http.StatusServiceUnavailable {
			return problem.Error(), false
		}
		w.must(err)
		return "", true
	})
}

// previewed asks what a subscription would lead to, finds nothing changed by that, has it, and returns the plan that
// was announced.
func (w *world) previewed(namespace string, s subscription) plan {
	w.t.Helper()
	var preview struct {
		ID    string
		Items []struct {
			Plans []struct {
				Digest, Approval string
				Approvers        int
				Policies         []string
			}
		}
	}
	w.answered(func() error { return w.Post(w.ctx, scopePath(namespace, "subscriptions")+"?dryRun=true", s, &preview) })
	if len(preview.Items) != 1 || len(preview.Items[0].Plans) != 1 {
		w.t.Fatalf("got preview %+v, want one plan", preview)
	}
	announced := preview.Items[0].Plans[0]
	if announced.Approval != "Manual" || announced.Approvers != 2 || len(announced.Policies) != 1 {
		w.t.Errorf("announced %+v, want what the policy makes of it", announced)
	}
	w.refused(w.Get(w.ctx, scopePath(namespace, "subscriptions/"+s.Name), nil), http.StatusNotFound)

	w.answered(func() error { return w.Post(w.ctx, "/api/v1/previews/"+preview.ID+"/apply", nil, nil) })
	p := w.waiting(namespace)
	if p.Digest != announced.Digest || p.MissingApprovals != 2 {
		w.t.Errorf("planned %+v, announced %+v", p, announced)
	}
	return p
}

// consent approves a plan and returns what it then is.
func (w *world) consent(who stack.Client, p plan) plan {
	w.t.Helper()
	var now plan
	w.must(who.Post(w.ctx, "/api/v1/installplans/"+p.ID+"/approve", map[string]any{"digest": p.Digest}, &now))
	return now
}

// agree has two people approve a plan. The first of them counts once, however often.
func (w *world) agree(mate stack.Client, p plan) {
	w.t.Helper()
	one := w.consent(w.Client, p)
	if one.Phase != "RequiresApproval" || one.MissingApprovals != 1 {
		w.t.Errorf("with one approval: %+v", one)
	}
	if again := w.consent(w.Client, p); again.MissingApprovals != 1 || again.Version != one.Version {
		w.t.Errorf("with the same person's approval again: %+v, before %+v", again, one)
	}
	both := w.consent(mate, p)
	var people []string
	for _, a := range both.Approvals {
		people = append(people, a.By)
	}
	if len(people) != 2 || people[0] != "token-admin" || people[1] == people[0] || both.Phase != "Installing" {
		w.t.Errorf("with two approvals: %+v, by %v", both, people)
	}
}

// waitsFor waits until a subscription says that its approved plan waits for a window, and which event says so.
func (w *world) waitsFor(namespace, name string, opens time.Time) {
	w.t.Helper()
	var because string
	w.eventually("the plan waits for its window", func() (string, bool) {
		var s struct {
			Status struct {
				Conditions []struct{ Type, Reason, Message, Event string }
			}
		}
		w.must(w.Get(w.ctx, scopePath(namespace, "subscriptions/"+name), &s))
		for _, c := range s.Status.Conditions {
			if c.Type == "InstallPlanPending" && c.Reason == "MaintenanceWindow" &&
				strings.Contains(c.Message, opens.Format(time.RFC3339)) {
				because = c.Event
			}
		}
		return fmt.Sprintf("%+v", s.Status.Conditions), because != ""
	})
	approvals := w.events("type=installplan.approved.v1")
	if len(approvals) != 1 || approvals[0].ID != because {
		w.t.Errorf("the condition names event %s, the approvals are %+v", because, approvals)
	}
}

// void checks that a plan cannot be approved any more, and that the refusal names the other plan and what changed.
func (w *world) void(old, next plan) {
	w.t.Helper()
	err := w.Post(w.ctx, "/api/v1/installplans/"+old.ID+"/approve", map[string]any{"digest": old.Digest}, nil)
	w.refused(err, http.StatusConflict)
	if !strings.Contains(err.Error(), next.Name) || !strings.Contains(err.Error(), "approval policy changed") {
		w.t.Errorf("the refusal %q does not name %s and the approval policy", err, next.Name)
	}
}

// begun checks that this plan of a namespace was begun, and no other one.
func (w *world) begun(namespace string, p plan) {
	w.t.Helper()
	var got []string
	for _, e := range w.events("type=installplan.started.v1") {
		if strings.HasPrefix(e.Subject, spoke+"/"+namespace+"/") {
			got = append(got, e.Subject)
		}
	}
	if want := []string{spoke + "/" + namespace + "/" + p.Name}; !slices.Equal(got, want) {
		w.t.Errorf("begun were %v, want %v", got, want)
	}
}

// release puts lighthouse 1.3.0 into the catalog.
func (w *world) release(dir string) {
	w.t.Helper()
	type catalog struct{ State, Revision string }
	var before, now catalog
	w.must(w.Get(w.ctx, "/api/v1/catalogs/harbour", &before))
	next := filepath.Join(repository(w.t), "examples", "catalog-next", "lighthouse")
	w.must(os.CopyFS(filepath.Join(dir, "lighthouse", "1.3.0"), os.DirFS(filepath.Join(next, "1.3.0"))))
	text, err := os.ReadFile(filepath.Join(next, "catalog.yaml"))
	w.must(err)
	w.must(os.WriteFile(filepath.Join(dir, "lighthouse", "catalog.yaml"), text, 0o600))
	w.must(w.Post(w.ctx, "/api/v1/catalogs/harbour/refresh", nil, nil))
	w.eventually("the catalog has the new version", func() (string, bool) {
		w.must(w.Get(w.ctx, "/api/v1/catalogs/harbour", &now))
		return now.State, now.State == "Ready" && now.Revision != before.Revision
	})
}

// heldBy waits until the operator of a namespace says that a policy holds it back from a version.
func (w *world) heldBy(policy, namespace, csv string) {
	w.t.Helper()
	w.eventually(policy+" holds "+csv+" back", func() (string, bool) {
		var why struct {
			NotTaken []struct {
				CSV     string
				Reasons []struct{ Code, Policy, Text string }
			}
		}
		w.answered(func() error { return w.Get(w.ctx, scopePath(namespace, "operators/light/why"), &why) })
		for _, n := range why.NotTaken {
			if n.CSV == csv && len(n.Reasons) == 1 && n.Reasons[0].Code == "policy" && n.Reasons[0].Policy == policy {
				return "", true
			}
		}
		return fmt.Sprintf("%+v", why), false
	})
}

// planned checks how many plans the log has of a namespace, before a policy was deleted and after that.
func (w *world) planned(namespace string, before, after int) {
	w.t.Helper()
	got := map[bool]int{}
	deleted := false
	for _, e := range w.events("") {
		switch {
		case e.Type == "policy.approval-deleted.v1":
			deleted = true
		case e.Type == "installplan.proposed.v1" && strings.HasPrefix(e.Subject, spoke+"/"+namespace+"/"):
			got[deleted]++
		}
	}
	if got[false] != before || got[true] != after {
		w.t.Errorf("%d plans with the policy and %d without it, want %d and %d", got[false], got[true], before, after)
	}
}

// explained checks that a plan is decided again from its record as it was recorded.
func (w *world) explained(p plan) {
	w.t.Helper()
	var again struct {
		Agrees      bool
		PlanDigest  string
		Bundles     []struct{ CSV string }
		Differences []struct{ What, Recorded, Again string }
	}
	w.answered(func() error { return w.Get(w.ctx, "/api/v1/installplans/"+p.ID+"/explanation", &again) })
	if !again.Agrees || again.PlanDigest != p.Digest || len(again.Bundles) != 1 ||
		again.Bundles[0].CSV != p.Bundles[0].CSV {
		w.t.Errorf("plan %s (%s) of %s is explained as %+v", p.Name, p.Phase, p.Namespace, again)
	}
}
