package provenance_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// said is what an object says that somebody has edited; by are the executions of plans.
func said(change func(*provenance.Claim), by ...*kube.Execution) provenance.Claim {
	s := provenance.Claim{Plan: "p", GrantedOperator: protocol.GrantedOperator{
		CSV: "tide.v1", Package: "tide", Content: "own", Replaces: "mine",
	}}
	s.Execution = func(plan string) *kube.Execution {
		for _, x := range by {
			if x.Spec.Plan == plan {
				return x
			}
		}
		return nil
	}
	change(&s)
	return s
}

func execution(plan string, operators ...protocol.GrantedOperator) *kube.Execution {
	return &kube.Execution{Spec: kube.ExecutionSpec{
		Plan:  plan,
		Grant: protocol.Grant{Plan: plan, Operators: operators},
	}}
}

// TestGranted is the table above Claim.Granted (DESIGN D6): what is acted on is what the hub signed, whatever the
// object says.
func TestGranted(t *testing.T) {
	t.Parallel()
	tide := protocol.GrantedOperator{CSV: "tide.v1", Package: "tide", Content: "granted", Reason: "Subscribed"}
	buoy := protocol.GrantedOperator{CSV: "buoy.v1", Package: "buoy", Content: "granted"}
	document, err := json.Marshal(installplan.Document{
		Bundles: []events.PlannedBundle{{CSV: "tide.v1", Content: "planned"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(*provenance.Claim) {}
	wanted := func(id string) func(*provenance.Claim) {
		return func(s *provenance.Claim) { s.Plans = []protocol.Plan{{ID: id, Document: document}} }
	}
	recorded := func(csv, plan string) func(*provenance.Claim) {
		return func(s *provenance.Claim) {
			s.Installed = []protocol.Installed{{CSV: csv, Plan: plan, Content: "recorded"}}
		}
	}
	for name, c := range map[string]struct {
		said provenance.Claim
		want string // plan and content; "" is refused
	}{
		"the grant names it": {said(nothing, execution("p", buoy, tide)), "p granted"},
		"the record does not hold it yet": {
			said(recorded("buoy.v1", "q"), execution("p", tide)),
			"p granted",
		},
		"the record holds what was before": {said(recorded("tide.v1", "before"), execution("p", tide),
			execution("before", tide)), "p granted"},
		"the grant names others": {said(nothing, execution("p", buoy)), ""},
		"it names the plan of another, the record not": {said(recorded("tide.v1", "q"), execution("p", buoy),
			execution("q", tide)), "q granted"},
		"it names no plan of ours, the record has one": {
			said(recorded("tide.v1", "q"), execution("q", tide)),
			"q granted",
		},
		"the record was told of the wrong plan":         {said(recorded("tide.v1", "p"), execution("p", buoy)), ""},
		"the hub wants the plan":                        {said(wanted("p")), "p planned"},
		"the hub wants another plan":                    {said(wanted("q")), ""},
		"no log, and the record holds it":               {said(recorded("tide.v1", "p")), "p recorded"},
		"no log, and the record names another plan":     {said(recorded("tide.v1", "q")), "q recorded"},
		"a grant without names, the record holds it":    {said(recorded("tide.v1", "p"), execution("p")), "p recorded"},
		"a grant without names, the record is behind":   {said(nothing, execution("p")), "p own"},
		"nobody knows it":                               {said(nothing), ""},
		"nobody knows it, though the record knows more": {said(recorded("buoy.v1", "q"), execution("q", buoy)), ""},
	} {
		plan, got, err := c.said.Verify()
		switch {
		case c.want == "" && !errs.Is(err, errs.Forbidden):
			t.Errorf("%s: got %+v, %v, want forbidden", name, got, err)
		case c.want != "" && (err != nil || plan+" "+got.Content != c.want):
			t.Errorf("%s: got plan %s with %+v, %v, want %s", name, plan, got, err, c.want)
		}
		if got.Content == "granted" && got != tide {
			t.Errorf("%s: got %+v, want all of what was granted", name, got)
		}
	}
}

// TestConfig: a configuration that somebody wrote into a PlanExecution gives no operator an environment (R-SUB §4.2).
func TestConfig(t *testing.T) {
	t.Parallel()
	config, other := json.RawMessage(`{"env":[{"name":"A","value":"b"}]}`),
		json.RawMessage(`{"env":[{"name":"LD_PRELOAD","value":"/x"}]}`)
	d, err := protocol.ConfigDigest(config)
	if err != nil {
		t.Fatal(err)
	}
	tide := protocol.GrantedOperator{CSV: "tide.v1", Config: d}
	with := func(c json.RawMessage) *kube.Execution {
		x := execution("p", tide)
		x.Spec.Configs = map[string]json.RawMessage{"tide.v1": c}
		return x
	}
	now := func(c json.RawMessage) []protocol.Installed {
		return []protocol.Installed{{CSV: "tide.v1", Plan: "p", Config: c}}
	}
	for name, c := range map[string]struct {
		x         *kube.Execution
		installed []protocol.Installed
		ok        bool
	}{
		"as granted":            {with(json.RawMessage(`{"env": [{"value":"b","name":"A"}]}`)), nil, true},
		"another one":           {with(other), nil, false},
		"none":                  {with(nil), nil, false},
		"the hub says what now": {with(other), now(config), true},
		"the hub says none now": {with(other), now(json.RawMessage("null")), true},
		"the hub does not say":  {with(other), now(nil), false},
		"an old grant":          {execution("p"), nil, true},
	} {
		s := said(func(s *provenance.Claim) { s.Installed = c.installed }, c.x)
		if err := s.CheckConfig("p", tide); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSetAnnotations: what an object says of where it comes from is what was granted.
func TestSetAnnotations(t *testing.T) {
	t.Parallel()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAnnotations(map[string]string{"plan": "p", "content": "own", "reason": "Rollback", "else": "x"})
	want := map[string]string{"plan": "p", "content": "granted", "reason": "", "package": "tide"}
	if other := provenance.SetAnnotations(o, want); !slices.Equal(other, []string{"content", "package", "reason"}) {
		t.Errorf("other are %v", other)
	}
	if got := o.GetAnnotations(); !maps.Equal(got, map[string]string{
		"plan": "p", "content": "granted",
		"package": "tide", "else": "x",
	}) {
		t.Errorf("it says %v", got)
	}
	if other := provenance.SetAnnotations(o, want); other != nil {
		t.Errorf("then %v", other)
	}
}

// TestEqualSpecs: nothing that decides anything hides beside what was granted, and what the API server drops does not
// count.
func TestEqualSpecs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"equal":                 {`{"a":[{"b":1}],"c":"d"}`, `{"c":"d","a":[{"b":1}]}`, true},
		"empty and absent":      {`{"a":{},"b":[],"c":null,"d":{"e":null}}`, `{}`, true},
		"another value":         {`{"a":[{"b":1}]}`, `{"a":[{"b":2}]}`, false},
		"a field more":          {`{"a":{"b":1}}`, `{"a":{"b":1,"c":["*"]}}`, false},
		"a field less":          {`{"a":{"b":1,"c":["*"]}}`, `{"a":{"b":1}}`, false},
		"an entry more":         {`{"a":[{"b":1}]}`, `{"a":[{"b":1},{"b":1}]}`, false},
		"an empty entry more":   {`{"a":[]}`, `{"a":[{}]}`, false},
		"false is not absent":   {`{"a":false}`, `{}`, false},
		"a list is not a map":   {`{"a":["b"]}`, `{"a":{"b":1}}`, false},
		"a scalar is not a map": {`{"a":{"b":1}}`, `{"a":1}`, false},
	} {
		var a, b any
		for text, into := range map[string]*any{c.a: &a, c.b: &b} {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		if provenance.EqualSpecs(a, b) != c.same || provenance.EqualSpecs(b, a) != c.same {
			t.Errorf("%s: want %v", name, c.same)
		}
	}
}
