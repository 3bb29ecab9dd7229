package app_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	gauge     = "tidegauge.v1.0.0"
	gaugePath = "/api/v1/clusters/spoke/namespaces/ops/operators/" + gauge
	gaugeCRD  = "gauges.example.com"
)

// installed records an operator of the package tidegauge.
func (b *bench) installed() {
	b.t.Helper()
	const subject = "spoke/ops/" + gauge
	b.fact(events.Installer, events.KindCSV, subject, subject, events.CSVPhaseChanged{
		Cluster: "spoke", Namespace: "ops", Name: gauge, Package: "tidegauge", Version: "1.0.0", Phase: "Succeeded",
		Reason: "InstallSucceeded",
	})
}

// installer plays the installer service on a gateway's bus.
func installer(b *bench, nats natsconn.Settings) (asked <-chan protocol.OperatorQuestion) {
	b.t.Helper()
	return answering(b, nats, protocol.RPCInstallerRemoval, func(q protocol.OperatorQuestion) any {
		crd := protocol.ObjectRef{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
			Name: gaugeCRD,
		}
		p := protocol.RemovalPreview{RemovalPlan: protocol.RemovalPlan{
			CSV: gauge, Steps: []protocol.RemovalStep{},
			Stays: []protocol.Leftover{},
		}, Digest: "sha256:shown"}
		if len(q.CRDs) == 0 {
			p.Stays = append(p.Stays, protocol.Leftover{ObjectRef: crd, Reason: protocol.LeftNotAsked})
			return p
		}
		p.Steps = append(p.Steps, protocol.RemovalStep{
			Action:  protocol.RemovalCRDs,
			Objects: []protocol.ObjectRef{crd},
		})
		p.Losses = []protocol.Loss{{CRD: gaugeCRD, Objects: 3, Sample: []string{"ops/north"}}}
		return p
	})
}

// dependants plays the resolver's answer about removals on a gateway's bus.
func dependants(b *bench, nats natsconn.Settings, of ...previewapi.Dependant) (
	asked <-chan previewapi.RemovalQuestion,
) {
	b.t.Helper()
	return answering(b, nats, previewapi.RemovalSubject, func(q previewapi.RemovalQuestion) any {
		out := previewapi.RemovalPreview{Dependants: of, After: previewapi.ScopePreview{
			Cluster: q.Cluster, Namespace: q.Namespace,
		}}
		for range of {
			out.After.Plans = append(out.After.Plans, previewapi.PreviewPlan{
				Approval: "Automatic", Bundles: []events.PlannedBundle{{CSV: q.CSV, Reason: "RequiredPackage"}},
			})
		}
		return out
	})
}

// answering answers a question on a gateway's bus until the test ends, and tells what was asked.
func answering[Q any](b *bench, nats natsconn.Settings, subject string, answer func(Q) any) (asked <-chan Q) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	user := natsauth.Installer
	if strings.HasPrefix(subject, "chandler.rpc.resolver.") {
		user = natsauth.Resolver
	}
	conn := connectAs(b, user, nats)
	questions := make(chan Q, 100)
	done := make(chan error, 1)
	go func() {
		done <- conn.Serve(ctx, subject, func(_ context.Context, raw json.RawMessage) (any, error) {
			var q Q
			if err := json.Unmarshal(raw, &q); err != nil {
				return nil, err
			}
			questions <- q
			return answer(q), nil
		})
	}()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
		conn.Close()
	})
	return questions
}

// TestUninstall is R-UNI-1 and P14: what would be removed is shown without a trace, a subscription that would bring the
// operator back stands in the way by name, and the request says how far it is until the operator is gone.
func TestUninstall(t *testing.T) {
	t.Parallel()
	var nats natsconn.Settings
	b := setupWith(t, func(c *app.Config) { nats = c.NATS })
	b.cluster("spoke")
	b.catalog("fleet")
	b.position = must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tides", "tidegauge"))).Position
	must[problem](b, 404, b.do("DELETE", gaugePath, nil))
	must[problem](b, 404, b.do("DELETE", gaugePath+"?dryRun=true", nil))
	b.installed()
	b.do("GET", b.seen("/api/v1/subscriptions"), nil)

	if p := must[problem](b, 503, b.do("DELETE", gaugePath, nil)); !strings.Contains(
		p.Detail, "the resolver does not answer") {
		t.Errorf("while nobody says who depends on it: %+v", p)
	}
	dependants(b, nats)
	b.until(func() bool {
		p := must[problem](b, 503, b.do("DELETE", gaugePath+"?dryRun=true", nil))
		return strings.Contains(p.Detail, `cluster "spoke" cannot be asked`)
	})
	asked := installer(b, nats)
	before := b.count(`select count(*) from eventlog.events`)
	var shown model.RemovalPlan
	b.until(func() bool {
		a := b.do("DELETE", gaugePath+"?dryRun=true&crds=*", nil)
		if a.status != 200 {
			return false
		}
		shown = must[model.RemovalPlan](b, 200, a)
		return true
	})
	if shown.Digest != "sha256:shown" || len(shown.Losses) != 1 || shown.Losses[0].Objects != 3 ||
		!slices.Equal(shown.Subscriptions, []string{"tides"}) {
		t.Errorf("shown %+v", shown)
	}
	if q := <-asked; q.Tenant != events.DefaultTenant || q.Cluster != "spoke" || q.Namespace != "ops" ||
		q.CSV != gauge || !slices.Equal(q.CRDs, []string{"*"}) {
		t.Errorf("asked %+v", q)
	}

	p := must[problem](b, 409, b.do("DELETE", gaugePath, nil))
	if p.Errors[0].Rule != "no-subscription-wants-it" ||
		!strings.Contains(p.Detail, "subscription tides wants operator "+gauge) {
		t.Errorf("a subscription wants it: %+v", p)
	}
	if after := b.count(`select count(*) from eventlog.events`); after != before {
		t.Errorf("%d events by what changes nothing", after-before)
	}
	must[problem](b, 400, b.do("DELETE", gaugePath+"?crds=Not%20a%20name&subscriptions=delete", nil))

	made := must[model.RemovalRequested](b, 202, b.do("DELETE",
		gaugePath+"?crds=*&subscriptions=delete&plan=sha256:shown", nil))
	if made.Removal == "" || !slices.Equal(made.CRDs, []string{gaugeCRD}) ||
		!slices.Equal(made.Subscriptions, []string{"tides"}) || made.Plan != "sha256:shown" {
		t.Errorf("got %+v", made)
	}
	b.position = made.Position
	if list := must[struct{ Items []model.Subscription }](
		b, 200, b.do("GET", b.seen("/api/v1/subscriptions"), nil)); len(list.Items) != 0 {
		t.Errorf("the subscription is still there: %+v", list)
	}
	b.removalIs(model.Removal{ID: made.Removal, Phase: model.RemovalAsked, Plan: "sha256:shown"})
	again := must[model.RemovalRequested](b, 202, b.do("DELETE", gaugePath+"?crds="+gaugeCRD, nil))
	if again.Removal != made.Removal {
		t.Errorf("asking twice made removal %s beside %s", again.Removal, made.Removal)
	}
	must[problem](b, 409, b.do("DELETE", gaugePath, nil))
}

// TestRemovalIsShown: how far a removal is, with the installer's sentence, and what stayed once the operator is gone
// (R-UNI-7).
func TestRemovalIsShown(t *testing.T) {
	t.Parallel()
	var nats natsconn.Settings
	b := setupWith(t, func(c *app.Config) { nats = c.NATS })
	b.cluster("spoke")
	b.installed()
	dependants(b, nats)
	var made model.RemovalRequested
	b.until(func() bool {
		a := b.do("DELETE", gaugePath, nil)
		if a.status != 202 {
			return false
		}
		made = must[model.RemovalRequested](b, 202, a)
		return true
	})
	b.position = made.Position
	const subject = "spoke/ops/" + gauge
	fact := func(p events.Payload) { b.fact(events.Installer, events.KindCSV, subject, subject, p) }
	b.exec("installer",
		`insert into installer.messages (tenant, subject, kind, message) values ('default', $1, 'removal', 'why')`,
		subject)
	fact(events.CSVRemovalStarted{Removal: made.Removal})
	b.removalIs(model.Removal{ID: made.Removal, Phase: model.RemovalStarted, Message: "why"})
	fact(events.CSVRemovalBlocked{Removal: made.Removal, Class: "transient", Reason: "FinalizersPending"})
	b.removalIs(model.Removal{
		ID: made.Removal, Phase: model.RemovalBlocked, Class: "transient",
		Reason: "FinalizersPending", Message: "why",
	})
	fact(events.CSVRemovalRefused{Removal: made.Removal, Reason: "PlanChanged"})
	b.removalIs(model.Removal{ID: made.Removal, Phase: model.RemovalRefused, Reason: "PlanChanged", Message: "why"})
	made = must[model.RemovalRequested](b, 202, b.do("DELETE", gaugePath, nil))
	b.position = made.Position
	b.removalIs(model.Removal{ID: made.Removal, Phase: model.RemovalAsked, Message: "why"})

	fact(events.CSVRemoved{Reason: "Uninstalled", Removal: made.Removal})
	must[problem](b, 404, b.do("GET", b.seen(gaugePath), nil))
	b.exec("installer",
		`insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ('default', 'spoke', '11111111-1111-5111-8111-111111111111', '', '')`)
	b.exec("installer",
		`insert into installer.leftovers (tenant, cluster_id, namespace, csv, package, removal, objects, more, removed)
		select 'default', '11111111-1111-5111-8111-111111111111', 'ops', 'tidegauge.v' || n, 'tidegauge', 'r', '[{"kind": "CustomResourceDefinition", "name": "gauges.example.com", "reason": "NotAsked"}]', 5, now()
		from generate_series(1, 3) n`)
	type page struct {
		Items []model.Leftovers
		Next  string
	}
	first := must[page](b, 200, b.do("GET", "/api/v1/leftovers?cluster=spoke&package=tidegauge&limit=2", nil))
	if len(first.Items) != 2 || first.Items[0].Name != "tidegauge.v1" || len(first.Items[0].Objects) != 1 ||
		first.Items[0].Objects[0].Name != gaugeCRD || first.Items[0].More != 5 || first.Next == "" {
		t.Errorf("got %+v", first)
	}
	if rest := must[page](b, 200, b.do("GET", "/api/v1/leftovers?limit=2&cluster=spoke&package=tidegauge&cursor="+
		first.Next, nil)); len(rest.Items) != 1 || rest.Next != "" {
		t.Errorf("got %+v", rest)
	}
	if none := must[page](b, 200, b.do("GET", "/api/v1/leftovers?namespace=elsewhere", nil)); len(none.Items) != 0 {
		t.Errorf("got %+v", none)
	}
}

// TestDependantsAreInTheWay is R-UNI-4 for requirements that stand beside the ClusterServiceVersion: the operators that
// have them are named, and in the way unless the plan that names them was shown; what would be planned next is part of
// what is shown.
func TestDependantsAreInTheWay(t *testing.T) {
	t.Parallel()
	var nats natsconn.Settings
	b := setupWith(t, func(c *app.Config) { nats = c.NATS })
	b.cluster("spoke")
	b.installed()
	asked := installer(b, nats)
	dependants(b, nats, previewapi.Dependant{
		Namespace: "ops", CSV: "buoy.v1.0.0",
		Requires: []string{"of package tidegauge in range >=1.0.0"},
	})
	var shown model.RemovalPlan
	b.until(func() bool {
		a := b.do("DELETE", gaugePath+"?dryRun=true", nil)
		if a.status != 200 {
			return false
		}
		shown = must[model.RemovalPlan](b, 200, a)
		return true
	})
	if q := <-asked; !slices.Equal(q.Dependants, []string{"ops/buoy.v1.0.0"}) {
		t.Errorf("the cluster was asked %+v", q)
	}
	if len(shown.Requires) != 1 || shown.Requires[0].Operator != "ops/buoy.v1.0.0" || shown.Next == nil ||
		len(shown.Next.Plans) != 1 || shown.Next.Plans[0].Bundles[0].CSV != gauge {
		t.Errorf("shown %+v", shown)
	}
	p := must[problem](b, 409, b.do("DELETE", gaugePath, nil))
	if p.Errors[0].Rule != "nobody-depends-on-it" || !strings.Contains(
		p.Detail, "required by ops/buoy.v1.0.0 (an operator of package tidegauge in range >=1.0.0)") {
		t.Errorf("without the plan: %+v", p)
	}
	must[model.RemovalRequested](b, 202, b.do("DELETE", gaugePath+"?plan=sha256:shown", nil))
	if n := b.count(
		`select count(*) from eventlog.events where type = 'csv.removal-requested.v1' and convert_from(body, 'UTF8') like '%"dependants":["ops/buoy.v1.0.0"]%'`); n != 1 {
		t.Errorf("%d requests that name who depends on it", n)
	}
}

// overrides let the operator be upgraded, whatever it says.
var overrides = model.SetOverrides{Conditions: []model.ConditionOverride{
	{Type: "Upgradeable", Status: "True", Reason: "Tested"},
}}

// TestOverrides is R-COND-6 and §4: what counts in the place of an operator's own conditions is set on the version of
// the operator that was read, is shown with it and by itself, and is taken back. What no condition could say is refused
// with the place. A dry run writes nothing.
func TestOverrides(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const path = gaugePath + "/overrides"
	must[problem](b, 404, b.do("PUT", path, overrides))
	b.installed()
	must[problem](b, 404, b.do("GET", b.seen(path), nil))
	must[problem](b, 404, b.do("DELETE", path, nil))
	must[problem](b, 428, b.ask("PUT", path, overrides))
	tag := b.do("GET", b.seen(gaugePath), nil).header.Get("ETag")
	dry := must[model.OperatorOverrides](b, 200, b.ask("PUT", path+"?dryRun=true", overrides, "If-Match", tag))
	if len(dry.Conditions) != 1 || dry.Position != "" {
		t.Errorf("the dry run answers %+v", dry)
	}
	for place, wrong := range map[string]map[string]any{
		"body.conditions": {"conditions": []any{}},
		"body.conditions[0].status": {
			"conditions": []any{map[string]any{"type": "Upgradeable", "status": "yes", "reason": "A"}},
		},
		"body.conditions[0]": {"conditions": []any{map[string]any{"type": "Upgradeable", "status": "True"}}},
		"body.message":       {"conditions": overrides.Conditions, "message": "it was tried"},
	} {
		if p := must[problem](b, 400, b.ask("PUT", path, wrong, "If-Match", "*")); p.Errors[0].Location != place {
			t.Errorf("%v: %+v, want %s", wrong, p.Errors, place)
		}
	}
	free := map[string]any{
		"conditions": []any{map[string]any{"type": "Upgradeable", "status": "True", "reason": "it was tried"}},
	}
	p := must[problem](b, 400, b.ask("PUT", path, free, "If-Match", "*"))
	if p.Errors[0].Rule != "kubernetes-condition-reason" {
		t.Errorf("free text: %+v", p.Errors)
	}
	set := b.ask("PUT", path, overrides, "If-Match", tag)
	made := must[model.OperatorOverrides](b, 200, set)
	if made.Name != gauge || made.By == "" || made.Since.IsZero() || made.Position == "" {
		t.Errorf("set: %+v", made)
	}
	changed := overrides
	changed.Conditions = []model.ConditionOverride{{Type: "Upgradeable", Status: "False", Reason: "Season"}}
	must[problem](b, 412, b.ask("PUT", path, changed, "If-Match", tag))
	shown := must[model.Operator](b, 200, b.do("GET", gaugePath+"?minPosition="+made.Position, nil))
	if shown.Overrides == nil || shown.Overrides.Conditions[0] != overrides.Conditions[0] ||
		shown.Overrides.By != made.By {
		t.Errorf("shown with the operator: %+v", shown.Overrides)
	}
	must[model.OperatorOverrides](b, 200, b.ask("PUT", path, changed, "If-Match", shown.Tag()))
	gone := must[model.Removed](b, 200, b.do("DELETE", path, nil))
	must[problem](b, 404, b.do("GET", path+"?minPosition="+gone.Position, nil))
	if n := b.count(`select count(*) from eventlog.events where type like 'operatorcondition.overrid%'`); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

// removalIs compares what the operator says of its removal, but for who asked and when.
func (b *bench) removalIs(want model.Removal) {
	b.t.Helper()
	o := must[model.Operator](b, 200, b.do("GET", b.seen(gaugePath), nil))
	if o.Removal == nil || o.Removal.By == "" || o.Removal.Since.IsZero() {
		b.t.Fatalf("got %+v", o.Removal)
	}
	got := *o.Removal
	if got.Phase != want.Phase || got.ID != want.ID || got.Class != want.Class || got.Reason != want.Reason ||
		got.Message != want.Message || want.Plan != "" && got.Plan != want.Plan {
		b.t.Errorf("got %+v, want %+v", got, want)
	}
}
