package compare_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestHolds: what somebody added does not matter, what somebody changed or took away does (R-CSV-24).
func TestHolds(t *testing.T) {
	t.Parallel()
	want := `{"spec":{"replicas":1,"empty":{},"none":[],"containers":[{"name":"a","env":[{"name":"X","value":"1"}]}]}}`
	for name, c := range map[string]struct {
		live string
		want bool
	}{
		"the same": {want, true},
		"defaults": {`{"status":{},"spec":{"replicas":1,"paused":false,"containers":[{"name":"a","image":"i","env":[{"name":"X","value":"1"}]}]}}`, true},
		"another value": {
			`{"spec":{"replicas":0,"containers":[{"name":"a","env":[{"name":"X","value":"1"}]}]}}`,
			false,
		},
		"an entry more":   {`{"spec":{"replicas":1,"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y"}]}]}}`, false},
		"an entry less":   {`{"spec":{"replicas":1,"containers":[{"name":"a"}]}}`, false},
		"a field is gone": {`{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"1"}]}]}}`, false},
		"another kind":    {`{"spec":[]}`, false},
	} {
		if got := compare.Holds(parse(t, want), parse(t, c.live)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestFields: each field that differs is reported with both values and by pointer; what the API server notes itself is
// not.
func TestFields(t *testing.T) {
	t.Parallel()
	want := parse(
		t, `{"kind":"Deployment","metadata":{"name":"d","resourceVersion":"1","generation":1,"managedFields":[],"labels":{"a/b":"x"}},"spec":{"replicas":1,"list":[1,2],"gone":true},"status":{"a":1}}`)
	live := parse(
		t, `{"kind":"Deployment","metadata":{"name":"d","resourceVersion":"2","generation":2,"labels":{"a/b":"y"}},"spec":{"replicas":0,"list":[1,2,3],"more":"z"},"status":{"a":2}}`)
	got := compare.Fields(want, live)
	expected := []protocol.FieldDrift{
		{Path: "/metadata/labels/a~1b", Want: json.RawMessage(`"x"`), Have: json.RawMessage(`"y"`)},
		{Path: "/spec/gone", Want: json.RawMessage(`true`)},
		{Path: "/spec/list", Want: json.RawMessage(`[1,2]`), Have: json.RawMessage(`[1,2,3]`)},
		{Path: "/spec/more", Have: json.RawMessage(`"z"`)},
		{Path: "/spec/replicas", Want: json.RawMessage(`1`), Have: json.RawMessage(`0`)},
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := compare.Fields(want, want); len(got) != 0 {
		t.Errorf("an object differs from itself: %v", got)
	}
}

// TestFieldsAreBounded: a number of fields, short values that are still JSON, and nothing of Secrets.
func TestFieldsAreBounded(t *testing.T) {
	t.Parallel()
	data := map[string]any{}
	for i := range 2 * compare.MaxFields {
		data[fmt.Sprintf("key-%02d", i)] = strings.Repeat("ä", compare.MaxValueBytes)
	}
	got := compare.Fields(map[string]any{"kind": "Gauge", "data": data},
		map[string]any{"kind": "Gauge", "data": map[string]any{}})
	if len(got) != compare.MaxFields {
		t.Fatalf("%d fields, want %d", len(got), compare.MaxFields)
	}
	if v := got[0].Want; !json.Valid(v) || len(v) > compare.MaxValueBytes+10 {
		t.Errorf("value is %s", v)
	}
	secret := compare.Fields(map[string]any{"kind": "Secret", "data": data},
		map[string]any{"kind": "Secret", "data": map[string]any{}})
	if len(secret) != compare.MaxFields || secret[0].Want != nil || secret[0].Have != nil ||
		secret[0].Path != "/data/key-00" {
		t.Errorf("of a Secret it tells %+v", secret[0])
	}
}

// TestConfidential: of values that a configuration sets, and of data, only the path is reported and that they differ.
func TestConfidential(t *testing.T) {
	t.Parallel()
	const open, closed = "open", "closed"
	for name, c := range map[string]struct{ want, live, told string }{
		"env": {
			`{"kind":"Deployment","spec":{"containers":[{"env":[{"value":"a"}]}]}}`,
			`{"spec":{"containers":[{"env":[{"value":"b"}]}]}}`, closed,
		},
		"an env more": {
			`{"kind":"Deployment","spec":{"containers":[{"env":[]}]}}`,
			`{"spec":{"containers":[{"env":[{"value":"b"}]}]}}`, closed,
		},
		"args": {
			`{"kind":"Deployment","spec":{"containers":[{"args":["a"]}]}}`,
			`{"spec":{"containers":[{"args":["b"]}]}}`, closed,
		},
		"command": {
			`{"kind":"Deployment","spec":{"containers":[{}]}}`,
			`{"spec":{"containers":[{"command":["b"]}]}}`, closed,
		},
		"a container more": {
			`{"kind":"Deployment","spec":{"containers":[]}}`,
			`{"spec":{"containers":[{"name":"x","envFrom":[{"prefix":"p"}]}]}}`, closed,
		},
		"image": {
			`{"kind":"Deployment","spec":{"containers":[{"image":"a"}]}}`,
			`{"spec":{"containers":[{"image":"b"}]}}`, open,
		},
		"ConfigMap":        {`{"kind":"ConfigMap","data":{"k":"a"}}`, `{"data":{"k":"b"}}`, closed},
		"all of ConfigMap": {`{"kind":"ConfigMap","binaryData":{"k":"YQ=="}}`, `{}`, closed},
		"label": {
			`{"kind":"ConfigMap","metadata":{"labels":{"k":"a"}}}`,
			`{"metadata":{"labels":{"k":"b"}}}`, open,
		},
		"Secret": {`{"kind":"Secret","stringData":{"k":"a"}}`, `{"stringData":{"k":"b"}}`, closed},
		"last applied": {
			`{"kind":"Deployment","metadata":{"annotations":{"a":"b"}}}`,
			`{"metadata":{"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`, closed,
		},
	} {
		got := compare.Fields(parse(t, c.want), parse(t, c.live))
		told := closed
		for _, f := range got {
			if f.Path == "/kind" {
				continue // only one side of the table says it
			}
			if f.Want != nil || f.Have != nil {
				told = open
			}
		}
		if told != c.told || len(got) < 2 {
			t.Errorf("%s: told %+v, want it %s", name, got, c.told)
		}
	}
}
