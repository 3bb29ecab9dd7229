package hub

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/allowance"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
)

// fold folds an event of any stream, and publishes what comes of it.
func (d *fixture) fold(subject string, p events.Payload) {
	d.t.Helper()
	def, ok := events.Lookup(p.EventType())
	if !ok {
		d.t.Fatalf("no type %s", p.EventType())
	}
	d.n++
	e := eventlog.Recorded{
		Envelope: events.Envelope{
			ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(), Subject: subject,
		},
		StreamID: events.StreamID{
			Kind: def.Kind, Key: events.Key(events.DefaultTenant, def.Kind, subject), Incarnation: 1,
		},
		Position: events.Position{Epoch: 1, N: d.n}, Payload: p,
	}
	if err := d.h.c.Pool.Tx(d.t.Context(), func(tx pgx.Tx) error {
		return d.h.handlers.Handle(d.t.Context(), tx, e)
	}); err != nil {
		d.t.Fatal(err)
	}
	d.publish()
}

// keep stores a content as the indexer does, and returns its digest.
func (d *fixture) keep(manifests ...string) string {
	d.t.Helper()
	raw := make([][]byte, len(manifests))
	for i, m := range manifests {
		raw[i] = []byte(m)
	}
	c, err := bundle.FromManifests(raw)
	if err != nil {
		d.t.Fatal(err)
	}
	canonical, sum, err := c.Canonical()
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.db.Pool(d.t, string(events.Indexer)).Exec(d.t.Context(), `insert into catalog.contents
		(tenant, digest, size, pack) values ($1, $2, $3, $4) on conflict do nothing`,
		events.DefaultTenant, string(sum), len(canonical), bundle.Pack(canonical)); err != nil {
		d.t.Fatal(err)
	}
	return string(sum)
}

// gauge is the manifest of an operator whose pods may do what the verbs say with Secrets everywhere.
func gauge(version, verbs string) string {
	return fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",
		"metadata":{"name":"tidegauge.v%s"},"spec":{"version":"%s","installModes":[{"type":"AllNamespaces","supported":true}],
		"install":{"strategy":"deployment","spec":{"clusterPermissions":[{"serviceAccountName":"gauge","rules":[
		{"apiGroups":[""],"resources":["secrets"],"verbs":[%s]}]}],"deployments":[{"name":"gauge","spec":{
		"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"serviceAccountName":
		"gauge","containers":[{"name":"c","image":"registry.test/gauge:1"}]}}}}]}}}}`, version, version, verbs)
}

// givesAway is a binding of all accounts to cluster-admin.
const givesAway = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"all"},
	"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
	"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]}`

// granted reports whether executors would be given the plan.
func (d *fixture) granted() bool {
	d.t.Helper()
	w, ok, err := d.h.read(d.t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
	if err != nil || !ok {
		d.t.Fatal(ok, err)
	}
	return len(w.message.Plans) == 1
}

// wantRefused wants no grant, and the reason and words for people.
func (d *fixture) wantRefused(what, reason, words string) {
	d.t.Helper()
	d.wantNone()
	w, ok, err := d.h.read(d.t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
	if err != nil || !ok || len(w.withheld) != 1 || w.withheld[0].reason != reason ||
		!strings.Contains(w.withheld[0].why, words) {
		d.t.Errorf("%s: withheld %+v (%v, %v), want %s: %s", what, w.withheld, ok, err, reason, words)
	}
}

func ofGauge(version, content string) events.InstallPlanProposed {
	p := windowed("Automatic")
	p.Rendering, p.Component = render.Semantics, "tidegauge"
	p.Bundles = []events.PlannedBundle{{
		CSV: "tidegauge.v" + version, Package: "tidegauge", Version: version, Content: content, Catalog: "harbour",
		Reason: "NextStep",
	}}
	return p
}

// TestGrantsFollowIntents: whether people have to approve a plan is what subscriptions and policies in the log say; a
// plan that a resolver proposes with less gets no grant, and one that was handed out is taken back (ADR 0034).
func TestGrantsFollowIntents(t *testing.T) {
	t.Parallel()
	sub := func(pkg, approval string) events.SubscriptionCreated {
		return events.SubscriptionCreated{
			Cluster: "east", Namespace: "ns", Name: pkg,
			Spec: events.SubscriptionSpec{Package: pkg, Catalog: "harbour", Approval: approval},
		}
	}
	placed := events.SubscriptionPlaced{
		Cluster: "east", Namespace: "ns", Name: "tidegauge", Owner: "tidegauge", Rollout: 1,
		Spec: sub("tidegauge", "Manual").Spec,
	}
	set := func(change func(*events.ApprovalPolicySpec)) events.ApprovalPolicySet {
		p := events.ApprovalPolicySet{Name: "p"}
		change(&p.Spec)
		return p
	}
	every := func(mode string) func(*events.ApprovalPolicySpec) {
		return func(s *events.ApprovalPolicySpec) { s.Rules = []events.ApprovalRule{{Change: "Any", Mode: mode}} }
	}
	type fact struct {
		subject string
		payload events.Payload
	}
	policy := func(change func(*events.ApprovalPolicySpec)) fact { return fact{"approval/p", set(change)} }
	staged := policy(func(s *events.ApprovalPolicySpec) {
		every("Manual")(s)
		s.Selector.ClusterLabels = map[string]string{"stage": "production"}
	})
	growth := policy(func(s *events.ApprovalPolicySpec) { s.PermissionGrowth = "Manual" })
	for name, c := range map[string]struct {
		log   []fact
		plan  func(p *events.InstallPlanProposed)
		to    string // verbs of the new version, where they are others
		words string // "" is a grant
	}{
		"automatic":         {log: []fact{{"east/ns/tidegauge", sub("tidegauge", "Automatic")}}},
		"manual":            {log: []fact{{"east/ns/tidegauge", sub("tidegauge", "Manual")}}, words: "Manual"},
		"another's, manual": {log: []fact{{"east/ns/buoy", sub("buoy", "Manual")}}},
		"a dependency of one that is manual": {
			log: []fact{{"east/ns/buoy", sub("buoy", "Manual")}},
			plan: func(p *events.InstallPlanProposed) {
				p.Bundles = append(p.Bundles, events.PlannedBundle{
					CSV: "buoy.v1", Package: "buoy", Content: p.Bundles[0].Content,
				})
			},
			words: "Manual",
		},
		"changed to manual": {log: []fact{
			{"east/ns/tidegauge", sub("tidegauge", "Automatic")},
			{"east/ns/tidegauge", events.SubscriptionChanged{Spec: sub("tidegauge", "Manual").Spec}},
		}, words: "Manual"},
		"placed as automatic": {log: []fact{
			{"east/ns/tidegauge", sub("tidegauge", "Manual")},
			{"east/ns/tidegauge", events.SubscriptionPlaced{
				Spec: sub("tidegauge", "Automatic").Spec, Owner: "tidegauge",
			}},
		}},
		"placed as manual": {log: []fact{
			{"east/ns/tidegauge", sub("tidegauge", "Automatic")}, {"east/ns/tidegauge", placed},
		}, words: "Manual"},
		"a policy":                    {log: []fact{policy(every("Manual"))}, words: "PatchUpgrade"},
		"a policy for other clusters": {log: []fact{staged}},
		"a policy that labels bring": {log: []fact{
			staged, {"east", events.ClusterLabelsChanged{Labels: map[string]string{"stage": "production"}}},
		}, words: "PatchUpgrade"},
		"a policy that is gone": {log: []fact{policy(every("Manual")), {"approval/p", events.ApprovalPolicyDeleted{}}}},
		"rights that grow":      {log: []fact{growth}, to: `"get","delete"`, words: "PermissionGrowth"},
		"rights that stay":      {log: []fact{growth}},
		"windows that the plan leaves out": {log: []fact{policy(func(s *events.ApprovalPolicySpec) {
			s.Windows = []events.Window{night}
		})}, words: "windows of policy p"},
		"two people": {log: []fact{
			{"east/ns/tidegauge", sub("tidegauge", "Manual")},
			policy(func(s *events.ApprovalPolicySpec) { s.Approvers = 2 }),
		}, plan: func(p *events.InstallPlanProposed) { p.Approval = "Manual" }, words: "2 people"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t, friday)
			if _, err := d.h.c.Pool.Exec(t.Context(), `update installer.clusters set cluster_id = $1`,
				events.StreamID{
					Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster, "east"),
					Incarnation: 1,
				}.UUID()); err != nil {
				t.Fatal(err)
			}
			from := d.keep(gauge("1.0.0", `"get"`))
			if c.to == "" {
				c.to = `"get"`
			}
			p := ofGauge("1.0.1", d.keep(gauge("1.0.1", c.to)))
			if c.plan != nil {
				c.plan(&p)
			}
			d.fold("east/ns/tidegauge.v1.0.0", events.CSVPhaseChanged{
				Cluster: "east", Namespace: "ns", Name: "tidegauge.v1.0.0", Package: "tidegauge", Version: "1.0.0",
				Phase: "Succeeded", Content: from,
			})
			d.publishPlan(p)
			if p.Approval == "Manual" {
				d.publishPlan(events.InstallPlanApproved{Digest: p.Digest, Expires: friday.AddDate(0, 0, 1)})
			}
			if !d.granted() {
				t.Error("it is refused although nothing is asked for")
			}
			for _, f := range c.log {
				d.fold(f.subject, f.payload)
			}
			if c.words == "" {
				if !d.granted() {
					t.Error("it is refused")
				}
				return
			}
			d.wantRefused("taken back", events.ApprovalDiffers, c.words)
			d.publishPlan(events.InstallPlanStarted{})
			if !d.granted() {
				t.Error("one that has begun is not brought to its end")
			}
		})
	}
}

// TestGrantsGoBackAsAsked: a plan that goes back gets a grant without a person's approval only where a rollout in the
// log asks for just that: what the plan says of itself is no reason (ADR 0081).
func TestGrantsGoBackAsAsked(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	p := ofGauge("1.0.1", d.keep(gauge("1.0.1", `"get"`)))
	p.Bundles[0].Reason, p.Bundles[0].Subscriptions = events.ReasonRollback, []string{"tidegauge"}
	d.publishPlan(p)
	d.wantRefused("nobody asked", events.ApprovalDiffers, "Rollback")
	placed := events.SubscriptionPlaced{
		Cluster: "east", Namespace: "ns", Name: "tidegauge", Owner: "tidegauge", Rollout: 3,
		Spec:     events.SubscriptionSpec{Package: "tidegauge", Catalog: "harbour", Approval: "Automatic"},
		Rollback: events.SubscriptionRollback{From: "tidegauge.v1.0.2", To: "tidegauge.v1.0.0"},
	}
	d.fold("east/ns/tidegauge", placed)
	d.wantRefused("further than asked", events.ApprovalDiffers, "Rollback")
	placed.Rollback.To = "tidegauge.v1.0.1"
	d.fold("east/ns/tidegauge", placed)
	if !d.granted() {
		t.Error("it is refused although a rollout asks for it")
	}
	placed.Spec.Approval = "Manual"
	d.fold("east/ns/tidegauge", placed)
	d.wantRefused("with a person's approval", events.ApprovalDiffers, "Manual")
	d.fold("east/ns/tidegauge", events.SubscriptionChanged{Spec: events.SubscriptionSpec{
		Package: "tidegauge", Catalog: "harbour", Approval: "Automatic",
	}})
	d.wantRefused("not asked any more", events.ApprovalDiffers, "Rollback")
}

// TestGrantsNeedAllowances: a bundle that gives the cluster away gets no grant without an administrator's word for
// exactly this, whatever the resolver says of it, also where only the document brings it (ADR 0034).
func TestGrantsNeedAllowances(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	hostile := d.keep(gauge("1.0.0", `"get"`), givesAway)
	p := ofGauge("1.0.0", hostile)
	d.publishPlan(p)
	d.wantRefused("by the event", events.AllowanceNeeded, "system:authenticated")
	var said string
	if err := d.h.c.Pool.QueryRow(t.Context(), `select message from installer.messages
		where subject = 'east/ns/install-7x2kq'`).Scan(&said); err != nil || !strings.Contains(said, "--allow") {
		t.Errorf("people are told %q, %v", said, err)
	}

	content, err := bundle.FromManifests([][]byte{[]byte(gauge("1.0.0", `"get"`)), []byte(givesAway)})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Render(render.Input{Content: content, Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := allowance.Of(p.Bundles, objects, nil)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	allow := func(finding string) {
		d.publishPlan(events.InstallPlanObstaclesSettled{Digest: "d", By: "anna", Choices: []events.PlanChoice{{
			Object: found[0].Object(), Choice: events.ChoiceAllow, Finding: finding, Reason: "c1",
		}}})
	}
	allow("sha256:of-something-else")
	d.wantRefused("allowed something else", events.AllowanceNeeded, "cluster-admin")
	allow(found[0].Finding)
	if !d.granted() {
		t.Error("it is allowed and refused")
	}

	d = newFixture(t, friday)
	hostile = d.keep(gauge("1.0.0", `"get"`), givesAway)
	harmless := d.keep(gauge("1.0.0", `"get"`))
	document, err := json.Marshal(installplan.Document{Bundles: ofGauge("1.0.0", hostile).Bundles})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.db.Pool(t, "resolver").Exec(t.Context(), `update resolver.plan_documents set document = $1`,
		document); err != nil {
		t.Fatal(err)
	}
	d.publishPlan(ofGauge("1.0.0", harmless))
	d.wantRefused("by the document alone", events.AllowanceNeeded, "cluster-admin")
}
