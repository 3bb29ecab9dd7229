package operators_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/internal/installerclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operator"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

var tide = operator.Name{Cluster: "harbour", Namespace: "ops", Name: "tide.v1"}

// bus answers by subject, as the resolver and the installer would, and keeps what they were asked.
type bus struct {
	answers map[string]any
	asked   map[string]int
}

func (b *bus) Call(_ context.Context, subject string, _, out any) error {
	b.asked[subject]++
	a, known := b.answers[subject]
	if !known {
		return errs.New(errs.Unavailable, "nobody answers %s", subject)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// subscribers are those that the read model names.
type subscribers []string

func (s subscribers) Subscribers(
	context.Context, pg.Querier, string, string, string, string, string,
) ([]string, error) {
	return s, nil
}

func service(t *testing.T, names ...string) (*intenttest.Env, *operators.Service, *bus) {
	t.Helper()
	e := intenttest.New(t)
	e.Register("harbour")
	b := &bus{
		answers: map[string]any{previewapi.RemovalSubject: previewapi.RemovalPreview{}}, asked: map[string]int{},
	}
	s := &operators.Service{
		Units: e.Units, Subscribers: subscribers(names),
		Subscriptions: &subscriptions.Service{
			Units: e.Units, Groups: &operatorgroups.Service{Units: e.Units},
		},
		Resolver:  resolverclient.Client{Bus: b, Slog: e.Units.Slog},
		Installer: installerclient.Client{Bus: b, Slog: e.Units.Slog},
	}
	return e, s, b
}

func install(e *intenttest.Env) {
	e.Fact(events.Installer, events.KindCSV, tide.Subject(), tide.Subject(), events.CSVPhaseChanged{
		Cluster: tide.Cluster, Namespace: tide.Namespace, Name: tide.Name, Package: "tide", Phase: "Succeeded",
	})
}

// TestUninstall: R-UNI-1: what is not installed, or is another tenant's, is refused before others are asked; to ask
// twice is to ask once; other definitions than those of the request that has not ended are a conflict.
func TestUninstall(t *testing.T) {
	t.Parallel()
	e, s, b := service(t)
	ask := func(who model.Caller, in model.Uninstall) (model.RemovalRequested, error) {
		return s.Uninstall(t.Context(), who, tide, in)
	}
	if _, err := ask(intenttest.Ann, model.Uninstall{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("an operator that is not installed: %v", err)
	}
	install(e)
	if _, err := ask(intenttest.Eve, model.Uninstall{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant's operator: %v", err)
	}
	if len(b.asked) != 0 {
		t.Errorf("others were asked about what is not installed: %v", b.asked)
	}
	first, err := ask(intenttest.Ann, model.Uninstall{CRDs: []string{"b.sea.test", "a.sea.test"}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := ask(intenttest.Bob, model.Uninstall{CRDs: []string{"a.sea.test", "b.sea.test"}})
	if err != nil || again.Removal != first.Removal {
		t.Errorf("asked twice: removals %s and %s, %v", first.Removal, again.Removal, err)
	}
	if _, err := ask(intenttest.Ann, model.Uninstall{}); !errs.Is(err, errs.Conflict) {
		t.Errorf("other definitions while it is being removed: %v", err)
	}
	if _, err := ask(intenttest.Ann, model.Uninstall{CRDs: []string{"No Name"}}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a definition that is none: %v", err)
	}
	want := []events.Type{events.CSVPhaseChanged{}.EventType(), events.CSVRemovalRequested{}.EventType()}
	if got := e.Events(intenttest.Ann, events.KindCSV, tide.Subject()); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// TestDependants: R-UNI-4: an operator that another one needs is removed only with the plan that named that one; the
// resolver has to be heard first.
func TestDependants(t *testing.T) {
	t.Parallel()
	e, s, b := service(t)
	install(e)
	delete(b.answers, previewapi.RemovalSubject)
	if _, err := s.Uninstall(t.Context(), intenttest.Ann, tide, model.Uninstall{}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("without the resolver: %v", err)
	}
	b.answers[previewapi.RemovalSubject] = previewapi.RemovalPreview{Dependants: []previewapi.Dependant{
		{CSV: "buoy.v2", Requires: []string{"that provides Gauge"}},
	}}
	if _, err := s.Uninstall(t.Context(), intenttest.Ann, tide, model.Uninstall{}); !errs.Is(err, errs.Conflict) {
		t.Errorf("without a plan: %v", err)
	}
	if n := len(e.Events(intenttest.Ann, events.KindCSV, tide.Subject())); n != 1 {
		t.Fatalf("%d events after refusals", n)
	}
	if _, err := s.Uninstall(t.Context(), intenttest.Ann, tide, model.Uninstall{Plan: "sha256:p"}); err != nil {
		t.Errorf("with the plan that names it: %v", err)
	}
}

// TestSubscribers: R-UNI-1: a subscription that wants the operator is a conflict, or is deleted in the same
// transaction; one that the read model still names and that is gone is no error.
func TestSubscribers(t *testing.T) {
	t.Parallel()
	e, s, b := service(t, "tide", "gone")
	install(e)
	of := subscription.Name{Cluster: "harbour", Namespace: "ops", Name: "tide"}
	e.Fact(events.Gateway, events.KindSubscription, of.Subject(), of.Subject(), events.SubscriptionCreated{
		Cluster: "harbour", Namespace: "ops", Name: "tide",
		Spec: events.SubscriptionSpec{Package: "tide", Catalog: "fleet", Approval: "Manual"},
	})
	if _, err := s.Uninstall(t.Context(), intenttest.Ann, tide, model.Uninstall{}); !errs.Is(err, errs.Conflict) {
		t.Errorf("a subscription wants it: %v", err)
	}
	in := model.Uninstall{Subscriptions: true, CRDs: []string{"*"}}
	if _, err := s.Uninstall(t.Context(), intenttest.Ann, tide, in); !errs.Is(err, errs.Unavailable) {
		t.Errorf("all definitions, and the cluster cannot be asked: %v", err)
	}
	last := func() events.Type {
		all := e.Events(intenttest.Ann, events.KindSubscription, of.Subject())
		return all[len(all)-1]
	}
	if last() != (events.SubscriptionCreated{}).EventType() {
		t.Fatal("a refused request deleted the subscription")
	}
	b.answers[protocol.RPCInstallerRemoval] = model.RemovalPlan{Steps: []model.RemovalStep{
		{Action: protocol.RemovalCRDs, Objects: []model.Object{{Name: "gauges.sea.test"}}},
		{Action: "other", Objects: []model.Object{{Name: "not-this"}}},
	}}
	out, err := s.Uninstall(t.Context(), intenttest.Ann, tide, in)
	if err != nil || !slices.Equal(out.CRDs, []string{"gauges.sea.test"}) {
		t.Errorf("definitions %q, %v: want those that the plan deletes", out.CRDs, err)
	}
	if last() != (events.SubscriptionDeleted{}).EventType() {
		t.Error("the subscription stays and brings the operator back")
	}
}

// TestOverride: R-COND-6: overrides are of an operator that is installed in the caller's tenant; the answer tells who
// set them, also where nothing changes; a request to uninstall does not make the version stale that they were decided
// on, other overrides do.
func TestOverride(t *testing.T) {
	t.Parallel()
	e, s, _ := service(t)
	set := func(who model.Caller, m model.Match, status string) (model.OperatorOverrides, error) {
		return s.Override(unit.Matching(t.Context(), m), who, tide, model.SetOverrides{
			Conditions: []model.ConditionOverride{{Type: "Upgradeable", Status: status, Reason: "Tested"}},
		})
	}
	whatever := model.Match{Any: true}
	if _, err := set(intenttest.Ann, whatever, "True"); !errs.Is(err, errs.NotFound) {
		t.Errorf("an operator that is not installed: %v", err)
	}
	install(e)
	if _, err := set(intenttest.Eve, whatever, "True"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant's operator: %v", err)
	}
	if _, err := set(intenttest.Ann, model.Match{}, "True"); err == nil {
		t.Error("without a version that it was decided on")
	}
	first, err := set(intenttest.Ann, model.ParseMatch(`"1.1"`, ""), "True")
	if err != nil || first.By != intenttest.Ann.Actor || len(first.Conditions) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := set(intenttest.Bob, whatever, "True")
	if err != nil || again.By != intenttest.Ann.Actor || again.Version != first.Version {
		t.Errorf("set twice: %+v, %v", again, err)
	}
	if _, err := set(intenttest.Bob, model.ParseMatch(`"1.1"`, ""), "False"); err == nil {
		t.Error("decided on what was there before somebody else set it")
	}
	if _, err := s.Uninstall(t.Context(), intenttest.Ann, tide, model.Uninstall{}); err != nil {
		t.Fatal(err)
	}
	if _, err := set(intenttest.Bob, model.ParseMatch(first.Tag(), ""), "False"); err != nil {
		t.Errorf("after a request to uninstall: %v", err)
	}
	if _, err := s.RemoveOverrides(t.Context(), intenttest.Ann, tide); err != nil {
		t.Error(err)
	}
	if _, err := s.RemoveOverrides(t.Context(), intenttest.Ann, tide); !errs.Is(err, errs.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
}
