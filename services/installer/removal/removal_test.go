package removal_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

const csvName = "tidegauge.v1.0.0"

func gauge() removal.Operator {
	return removal.Operator{
		Namespace: "ports", Name: csvName,
		Owned: []removal.API{api("Gauge"), api("Buoy"), {Group: "live.example.com", Version: "v1", Kind: "Reading"}},
	}
}

func api(kind string) removal.API {
	return removal.API{Group: "example.com", Version: "v1", Kind: kind, CRD: crdName(kind)}
}

func crdName(kind string) string { return strings.ToLower(kind) + "s.example.com" }

func definition(kind string) removal.Definition {
	return removal.Definition{
		ObjectRef: crdRef(crdName(kind)), Managed: true, Alongside: []string{"ports/" + csvName},
		Loss: protocol.Loss{CRD: crdName(kind), Objects: 2},
	}
}

func crdRef(name string) protocol.ObjectRef {
	return protocol.ObjectRef{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		Name: name,
	}
}

func ref(kind, name string) protocol.ObjectRef {
	return protocol.ObjectRef{Version: "v1", Kind: kind, Namespace: "ports", Name: name}
}

func owned(kind, name string, alongside ...string) removal.Owned {
	return removal.Owned{ObjectRef: ref(kind, name), Alongside: alongside}
}

func self() protocol.ObjectRef { return ref("InstalledOperator", csvName) }

func input() removal.Input {
	return removal.Input{
		Operator: gauge(), Object: self(),
		Objects: []removal.Owned{
			owned("ServiceAccount", "gauge"), owned("Role", "gauge"), owned("Service", "gauge"),
			owned("RoleBinding", "gauge"), owned("Deployment", "gauge"), owned("MutatingWebhookConfiguration", "gauge"),
			owned("APIService", "v1.live.example.com"),
		},
		Definitions: []removal.Definition{definition("Gauge"), definition("Buoy")},
	}
}

func plan(t *testing.T, in removal.Input) protocol.RemovalPlan {
	t.Helper()
	p, err := removal.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told is a plan as lines, in order.
func told(p protocol.RemovalPlan) []string {
	var out []string
	for _, s := range p.Steps {
		var names []string
		for _, o := range s.Objects {
			names = append(names, o.Kind+" "+o.Name)
		}
		out = append(out, s.Action+": "+strings.Join(names, ", "))
	}
	return out
}

// TestOrder is R-UNI-1 and P14: custom resources, what calls the operator, Deployments, the rest, definitions, the
// InstalledOperator last.
func TestOrder(t *testing.T) {
	t.Parallel()
	in := input()
	in.CRDs = []string{crdName("Gauge")}
	in.Definitions[1].Converts = true
	want := []string{
		"DeleteCustomResources: CustomResourceDefinition gauges.example.com",
		"ResetConversion: CustomResourceDefinition buoys.example.com",
		"DeleteObjects: APIService v1.live.example.com, MutatingWebhookConfiguration gauge",
		"DeleteObjects: Deployment gauge",
		"DeleteObjects: Service gauge, RoleBinding gauge, Role gauge, ServiceAccount gauge",
		"DeleteCRDs: CustomResourceDefinition gauges.example.com",
		"DeleteObjects: InstalledOperator " + csvName,
	}
	p := plan(t, in)
	if diff := cmp.Diff(want, told(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]protocol.Loss{{CRD: crdName("Gauge"), Objects: 2}}, p.Losses); diff != "" {
		t.Errorf("losses: %s", diff)
	}
}

// TestDefinitionsStay names each row of the table above stays (R-UNI-2).
func TestDefinitionsStay(t *testing.T) {
	t.Parallel()
	other := removal.Operator{Namespace: "coast", Name: "buoys.v3.0.0", Owned: []removal.API{api("Gauge")}}
	for name, row := range map[string]struct {
		change func(*removal.Input)
		reason string
		owners []string
	}{
		"an installed operator owns it, too": {
			func(in *removal.Input) { in.Others = []removal.Operator{other} },
			protocol.LeftOtherOwners,
			[]string{"coast/buoys.v3.0.0"},
		},
		"an installed operator owns it, too, and it is asked for": {func(in *removal.Input) {
			in.Others, in.CRDs = []removal.Operator{other}, []string{removal.All}
		}, protocol.LeftOtherOwners, []string{"coast/buoys.v3.0.0"}},
		"the definition names an installed operator as its owner": {func(in *removal.Input) {
			in.Others, in.CRDs = []removal.Operator{{Namespace: "coast", Name: "x.v1"}}, []string{removal.All}
			in.Definitions[0].Alongside = append(in.Definitions[0].Alongside, "coast/x.v1")
		}, protocol.LeftOtherOwners, []string{"coast/x.v1"}},
		"Chandler did not write it first": {func(in *removal.Input) {
			in.CRDs, in.Definitions[0].Managed = []string{removal.All}, false
		}, protocol.LeftNotOurs, nil},
		"it was not asked for": {
			func(in *removal.Input) { in.CRDs = []string{crdName("Buoy")} },
			protocol.LeftNotAsked, nil,
		},
		"it was asked for, by name": {func(in *removal.Input) { in.CRDs = []string{crdName("Gauge")} }, "", nil},
		"it was asked for, with *":  {func(in *removal.Input) { in.CRDs = []string{removal.All} }, "", nil},
		"an owner that is gone does not count": {func(in *removal.Input) {
			in.CRDs, in.Definitions[0].Alongside = []string{removal.All}, []string{"coast/gone.v1"}
		}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input()
			row.change(&in)
			p := plan(t, in)
			i := slices.IndexFunc(p.Stays, func(l protocol.Leftover) bool { return l.Name == crdName("Gauge") })
			goes := slices.ContainsFunc(p.Steps, func(s protocol.RemovalStep) bool {
				return s.Action == protocol.RemovalCRDs && slices.Contains(s.Objects, crdRef(crdName("Gauge")))
			})
			if goes != (row.reason == "") || (i < 0) != (row.reason == "") {
				t.Fatalf("goes %v, stays %v: want reason %q", goes, p.Stays, row.reason)
			}
			if i >= 0 && (p.Stays[i].Reason != row.reason || !slices.Equal(p.Stays[i].Owners, row.owners)) {
				t.Errorf("got %+v, want %s by %v", p.Stays[i], row.reason, row.owners)
			}
		})
	}
}

// TestSharedObjectsStay: what another installed operator brought, too, stays and names it; one that is gone does not
// count.
func TestSharedObjectsStay(t *testing.T) {
	t.Parallel()
	in := input()
	in.Others = []removal.Operator{{Namespace: "coast", Name: "x.v1"}, {Namespace: "bay", Name: "y.v1"}}
	in.Objects = append(
		in.Objects, owned("PriorityClass", "kept", "ports/"+csvName, "coast/x.v1", "bay/y.v1"),
		owned("PriorityClass", "goes", "ports/"+csvName, "coast/gone.v1"),
	)
	p := plan(t, in)
	want := protocol.Leftover{
		ObjectRef: ref("PriorityClass", "kept"), Reason: protocol.LeftOtherOwners,
		Owners: []string{"bay/y.v1", "coast/x.v1"},
	}
	if !slices.ContainsFunc(p.Stays, func(l protocol.Leftover) bool { return cmp.Equal(l, want) }) {
		t.Errorf("stays %+v, want %+v among them", p.Stays, want)
	}
	steps := strings.Join(told(p), "\n")
	if strings.Contains(steps, "PriorityClass kept") || !strings.Contains(steps, "PriorityClass goes") {
		t.Errorf("steps:\n%s", steps)
	}
}

// TestReservedDefinitionsStay: no removal takes a definition of Chandler's, OLM's or Kubernetes' own, whoever says that
// it is the operator's (R-UNI-2).
func TestReservedDefinitionsStay(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{
		"installedoperators.chandler-fleet.io": true, "clusterserviceversions.operators.coreos.com": true,
		"roles.rbac.authorization.k8s.io": true, "volumesnapshots.snapshot.storage.k8s.io": false,
	} {
		in := input()
		in.CRDs = []string{removal.All}
		in.Definitions = []removal.Definition{{
			ObjectRef: crdRef(name), Managed: true, Converts: true,
			Alongside: []string{"ports/" + csvName},
		}}
		p := plan(t, in)
		touched := slices.ContainsFunc(p.Steps, func(s protocol.RemovalStep) bool {
			return slices.Contains(
				s.Objects, crdRef(name))
		})
		if left := len(p.Stays) == 1 && p.Stays[0].Reason == protocol.LeftNotOurs; left != stays || touched == stays {
			t.Errorf("%s: stays %+v, steps %v", name, p.Stays, told(p))
		}
	}
}

// TestBefore: what was there before Chandler stays and is announced, whatever is asked for (R-UNI-3).
func TestBefore(t *testing.T) {
	t.Parallel()
	in := input()
	in.CRDs = []string{removal.All}
	mine := protocol.ObjectRef{Version: "v1", Kind: "ServiceAccount", Namespace: "ports", Name: "mine"}
	in.Before = []protocol.ObjectRef{mine}
	p := plan(t, in)
	if !slices.ContainsFunc(p.Stays, func(l protocol.Leftover) bool {
		return l.ObjectRef == mine &&
			l.Reason == protocol.LeftNotOurs
	}) {
		t.Errorf("it does not stay: %+v", p.Stays)
	}
	for _, s := range p.Steps {
		if slices.Contains(s.Objects, mine) {
			t.Errorf("it goes: %+v", s)
		}
	}
}

// TestUnknownDefinition: a mistyped name is refused with those that there are, before anything is done.
func TestUnknownDefinition(t *testing.T) {
	t.Parallel()
	in := input()
	in.CRDs = []string{"guages.example.com"}
	_, err := removal.Plan(in)
	if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "buoys.example.com, gauges.example.com") {
		t.Errorf("got %v", err)
	}
	in.Definitions, in.CRDs = nil, []string{crdName("Gauge")}
	if p := plan(t, in); len(p.Losses) > 0 { // its own, and gone already
		t.Errorf("got %+v", p)
	}
}

// TestNeeded is R-UNI-4: who needs an API is named, unless another operator brings it, too.
func TestNeeded(t *testing.T) {
	t.Parallel()
	user := removal.Operator{Namespace: "coast", Name: "harbor.v1", Required: []removal.API{api("Gauge")}}
	live := removal.Operator{
		Namespace: "coast", Name: "chart.v1",
		Required: []removal.API{{Group: "live.example.com", Version: "v1", Kind: "Reading"}},
	}
	older := removal.Operator{
		Namespace: "coast", Name: "old.v1",
		Required: []removal.API{{Group: "example.com", Version: "v1beta1", Kind: "Gauge", CRD: crdName("Gauge")}},
	}
	in := input()
	in.Others = []removal.Operator{user, live, older}
	if got := plan(t, in).Needed; !slices.Equal(got, []string{"coast/chart.v1", "coast/harbor.v1"}) {
		t.Errorf("got %v", got)
	}
	in.Others = append(in.Others, removal.Operator{
		Namespace: "inland", Name: "gauges.v2",
		Owned: []removal.API{api("Gauge")},
	})
	if got := plan(t, in).Needed; !slices.Equal(got, []string{"coast/chart.v1"}) {
		t.Errorf("with another provider: got %v", got)
	}
	in.Dependants = []string{"coast/old.v1", "coast/chart.v1", "inland/gone.v1"} // the last one is not there
	if got := plan(t, in).Needed; !slices.Equal(got, []string{"coast/chart.v1", "coast/old.v1"}) {
		t.Errorf("with what the hub knows: got %v", got)
	}
}

// TestRefuse names each row of the table above Refuse.
func TestRefuse(t *testing.T) {
	t.Parallel()
	free, wanted := plan(t, input()), plan(t, func() removal.Input {
		in := input()
		in.Others = []removal.Operator{{Namespace: "coast", Name: "harbor.v1", Required: []removal.API{api("Gauge")}}}
		return in
	}())
	digestOf := func(p protocol.RemovalPlan) string {
		d, err := removal.Digest(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(d)
	}
	again := free
	again.UID = "of another life"
	counted := free
	counted.Losses = []protocol.Loss{{CRD: "x", Objects: 7}}
	for name, row := range map[string]struct {
		plan  protocol.RemovalPlan
		shown string
		want  string
	}{
		"shown, and the plan is another one now":                 {wanted, digestOf(free), removal.RefusedChanged},
		"not shown, and other operators need its APIs":           {wanted, "", removal.RefusedNeeded},
		"shown, and the plan is the same":                        {wanted, digestOf(wanted), ""},
		"shown, and the operator was installed anew since":       {again, digestOf(free), removal.RefusedChanged},
		"shown, and only what would be lost is another number":   {counted, digestOf(free), ""},
		"not shown, and nobody needs it":                         {free, "", ""},
		"shown, and the definitions that go are other ones":      {withCRDs(t), digestOf(free), removal.RefusedChanged},
		"shown with definitions that go, and they do not go now": {free, digestOf(withCRDs(t)), removal.RefusedChanged},
	} {
		reason, message, err := removal.Refuse(row.plan, row.shown)
		if err != nil || reason != row.want || (message == "") != (reason == "") {
			t.Errorf("%s: got %q %q %v, want %q", name, reason, message, err, row.want)
		}
	}
}

func withCRDs(t *testing.T) protocol.RemovalPlan {
	t.Helper()
	in := input()
	in.CRDs = []string{removal.All}
	return plan(t, in)
}

// TestDeterministic: the order in which the cluster lists things changes nothing, and every object goes or stays
// exactly once.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		kinds := []string{"Gauge", "Buoy"}
		in := input()
		if rapid.Bool().Draw(r, "all") {
			in.CRDs = []string{removal.All}
		}
		in.Definitions[0].Managed = rapid.Bool().Draw(r, "managed")
		if rapid.Bool().Draw(r, "shared") {
			in.Others = []removal.Operator{{
				Namespace: "coast", Name: "o.v1",
				Owned: []removal.API{api(rapid.SampledFrom(kinds).Draw(r, "kind"))},
			}}
		}
		first, err := removal.Plan(in)
		if err != nil {
			r.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		rng.Shuffle(len(in.Objects), func(i, j int) { in.Objects[i], in.Objects[j] = in.Objects[j], in.Objects[i] })
		slices.Reverse(in.Definitions)
		second, err := removal.Plan(in)
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			r.Fatal(diff)
		}
		checkComplete(r, in, first)
	})
}

func checkComplete(r *rapid.T, in removal.Input, p protocol.RemovalPlan) {
	count := map[protocol.ObjectRef]int{}
	for _, s := range p.Steps {
		if s.Action == protocol.RemovalObjects || s.Action == protocol.RemovalCRDs {
			for _, o := range s.Objects {
				count[o]++
			}
		}
	}
	for _, l := range p.Stays {
		count[l.ObjectRef]++
	}
	want := []protocol.ObjectRef{self()}
	for _, o := range in.Objects {
		want = append(want, o.ObjectRef)
	}
	for _, d := range in.Definitions {
		want = append(want, d.ObjectRef)
	}
	for _, o := range want {
		if count[o] != 1 {
			r.Fatalf("%s is named %d times", o, count[o])
		}
	}
	if len(count) != len(want) {
		r.Fatalf("the plan names what nobody brought: %v", count)
	}
}

// TestOperatorOf: APIs are read from the ClusterServiceVersion as it stands in a cluster.
func TestOperatorOf(t *testing.T) {
	t.Parallel()
	csv, err := bundle.ParseCSV(json.RawMessage(`{"metadata": {"name": "tidegauge.v1.0.0"}, "spec": {
		"customresourcedefinitions": {"owned": [{"name": "gauges.example.com", "version": "v1", "kind": "Gauge"}],
			"required": [{"name": "maps.example.org", "version": "v1", "kind": "Map"}]},
		"apiservicedefinitions": {"owned": [{"group": "live.example.com", "version": "v1", "kind": "Reading"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := removal.Operator{
		Namespace: "ports", Name: csvName,
		Owned:    []removal.API{api("Gauge"), {Group: "live.example.com", Version: "v1", Kind: "Reading"}},
		Required: []removal.API{{Group: "example.org", Version: "v1", Kind: "Map", CRD: "maps.example.org"}},
	}
	if diff := cmp.Diff(want, removal.OperatorOf("ports", csv)); diff != "" {
		t.Error(diff)
	}
}
