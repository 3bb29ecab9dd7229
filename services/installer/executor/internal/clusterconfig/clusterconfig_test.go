package clusterconfig_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
)

// TestOverridden: R-SUB-10: the three variables are one unit, and an empty one counts.
func TestOverridden(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]bool{
		"":                              false,
		`{}`:                            false,
		`{"env":[{"name":"LEVEL"}]}`:    false,
		`{"env":[{"name":"NO_PROXY"}]}`: true,
		`{"env":[{"name":"HTTPS_PROXY","value":""},{"name":"LEVEL"}]}`:   true,
		`{"env":[{"name":"HTTP_PROXY","value":"http://p.example.com"}]}`: true,
	} {
		got, err := clusterconfig.Overridden(json.RawMessage(config))
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", config, got, err, want)
		}
	}
}

// TestProxy: R-PRX-1, R-PRX-2: every container gets the variables that have a value, over those of the same name.
func TestProxy(t *testing.T) {
	t.Parallel()
	var o unstructured.Unstructured
	if err := json.Unmarshal(
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[
		{"name":"a","env":[{"name":"HTTP_PROXY","valueFrom":{}},{"name":"LEVEL","value":"x"}]},{"name":"b"}]}}}}`), &o.Object); err != nil {
		t.Fatal(err)
	}
	for range 2 { // laying it twice is laying it once
		if err := (clusterconfig.Proxy{HTTP: "http://p.example.com", No: ".svc"}).Apply(&o); err != nil {
			t.Fatal(err)
		}
	}
	got, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	want := []any{
		map[string]any{"name": "a", "env": []any{
			variable("HTTP_PROXY", "http://p.example.com"), variable("LEVEL", "x"),
			variable("NO_PROXY", ".svc"),
		}},
		map[string]any{"name": "b", "env": []any{
			variable("HTTP_PROXY", "http://p.example.com"),
			variable("NO_PROXY", ".svc"),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAttach: what others put on an account stays where it is, and of Chandler's own only what is wanted now.
func TestAttach(t *testing.T) {
	t.Parallel()
	ref := func(name string) any { return map[string]any{"name": name} }
	secrets := []clusterconfig.PullSecret{{Name: "chandler-pull-a"}, {Name: "chandler-pull-b"}}
	for name, c := range map[string]struct {
		have    []any
		secrets []clusterconfig.PullSecret
		want    []any
		changed bool
	}{
		"none yet": {nil, secrets, []any{ref("chandler-pull-a"), ref("chandler-pull-b")}, true},
		"one is there": {
			[]any{ref("own"), ref("chandler-pull-b")},
			secrets,
			[]any{ref("own"), ref("chandler-pull-b"), ref("chandler-pull-a")},
			true,
		},
		"all are there": {
			[]any{ref("chandler-pull-b"), ref("own"), ref("chandler-pull-a")},
			secrets,
			[]any{ref("chandler-pull-b"), ref("own"), ref("chandler-pull-a")},
			false,
		},
		"a former one": {[]any{ref("chandler-pull-z"), ref("own")}, nil, []any{ref("own")}, true},
		"nothing":      {[]any{ref("own")}, nil, []any{ref("own")}, false},
	} {
		got, changed := clusterconfig.Attach(c.have, c.secrets)
		if diff := cmp.Diff(c.want, got); diff != "" || changed != c.changed {
			t.Errorf("%s: changed %v, want %v (-want +got):\n%s", name, changed, c.changed, diff)
		}
	}
}
