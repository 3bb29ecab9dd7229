package sparse

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

type part struct {
	Type   string    `json:"type"`
	Status string    `json:"status,omitempty"`
	Since  time.Time `json:"since"`
}

type common struct {
	Labels map[string]string `json:"labels,omitempty"`
	Name   string            `json:"name"`
}

type thing struct {
	common

	Name    string          `json:"name"`
	Spec    *part           `json:"spec,omitempty"`
	Zero    time.Time       `json:"zero,omitzero"`
	Parts   []part          `json:"parts"`
	Raw     json.RawMessage `json:"raw,omitempty"`
	Hidden  string          `json:"-"`
	Plain   int
	private int
}

func parse(t reflect.Type, text string) (Fields, error) {
	var v rule.Violations
	f := Parse(&v, t, text)
	return f, v.Err()
}

// TestFields: what is kept of a value is what encoding/json writes of these fields (the section 3: sparse
// fields).
func TestFields(t *testing.T) {
	t.Parallel()
	full := thing{
		common: common{Labels: map[string]string{"example.com/tier": "1", "site": "north"}, Name: "inner"},
		Name:   "gauge", Spec: &part{Type: "Ready", Status: "True"}, Raw: json.RawMessage(`{"a":1}`), Plain: 3,
		Parts: []part{{Type: "A", Status: "x"}, {Type: "B"}}, Hidden: "h", private: 1,
	}
	for _, c := range []struct {
		fields string
		of     thing
		want   string
	}{
		{"name", full, `{"name":"gauge"}`},
		{"name,spec.type", full, `{"name":"gauge","spec":{"type":"Ready"}}`},
		{"parts.type", full, `{"parts":[{"type":"A"},{"type":"B"}]}`},
		{"parts.status", full, `{"parts":[{"status":"x"},{}]}`},
		{"parts.type,parts", thing{Parts: []part{}}, `{"parts":[]}`},
		{"parts.type", thing{}, `{"parts":null}`},
		{"spec.type,spec.status", full, `{"spec":{"status":"True","type":"Ready"}}`},
		{"spec.type", thing{}, `{}`},
		{"labels.example.com/tier", full, `{"labels":{"example.com/tier":"1"}}`},
		{"labels", full, `{"labels":{"example.com/tier":"1","site":"north"}}`},
		{"labels.none", full, `{"labels":{}}`},
		{"labels,labels.site", full, `{"labels":{"example.com/tier":"1","site":"north"}}`},
		{"zero,Plain,raw", full, `{"Plain":3,"raw":{"a":1}}`},
	} {
		f, err := parse(reflect.TypeFor[thing](), c.fields)
		if err != nil {
			t.Errorf("%s: %v", c.fields, err)
			continue
		}
		got, err := json.Marshal(f.Of(c.of))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.fields, got, err, c.want)
		}
	}
}

// TestUnknownFields: a name that is not there is refused with what is near, and so is a part of what has none.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		"nam":              `there is no field "nam" (did you mean name?)`,
		"spec.tipe":        `there is no field "tipe" in spec`,
		"name.first":       "which has no fields",
		"raw.a":            "which has no fields",
		"zero.wall":        "which has no fields",
		"private":          `no field "private"`,
		"Hidden":           `no field "Hidden"`,
		"name,":            `no field ""`,
		"spec.":            `no field ""`,
		"parts,parts":      "",
		"parts,parts.tipe": `there is no field "tipe"`,
		strings.Repeat("name,", maxPaths) + "name": "101 names",
	} {
		_, err := parse(reflect.TypeFor[thing](), fields)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", fields, err)
			}
			continue
		}
		if err == nil || !strings.Contains(strings.Join(strings.Fields(err.Error()), " "), want) {
			t.Errorf("%.40s: %v, want %s", fields, err, want)
		}
	}
}

// TestFieldsOfModels: of every field of the largest answers something can be asked for, and comes as it is alone.
func TestFieldsOfModels(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		model.Subscription{Cluster: "east", Namespace: "ports", Name: "gauge"},
		model.Cluster{Name: "east"},
		model.Operator{Name: "gauge.v1"},
		model.InstallPlan{ID: "1"},
		model.Catalog{Name: "fleet"},
	} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(raw, &whole); err != nil {
			t.Fatal(err)
		}
		for _, k := range fieldsOf(reflect.TypeOf(v)) {
			f, err := parse(reflect.TypeOf(v), k.name)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]json.RawMessage{}
			if whole[k.name] != nil {
				want[k.name] = whole[k.name]
			}
			wanted, _ := json.Marshal(want) //nolint:errchkjson // as it was written
			if got, err := json.Marshal(f.Of(v)); err != nil || !bytes.Equal(got, wanted) {
				t.Errorf("%T with %s: %s, %v; want %s", v, k.name, got, err, wanted)
			}
			delete(whole, k.name)
		}
		if len(whole) > 0 {
			t.Errorf("%T has fields that cannot be asked for: %v", v, whole)
		}
	}
}

// BenchmarkEncoding is what a page of subscriptions costs to encode, as a whole and by three fields.
func BenchmarkEncoding(b *testing.B) {
	page := make([]model.Subscription, 500)
	for i := range page {
		page[i] = model.Subscription{
			Cluster: "east", Namespace: "ports", Name: "gauge", CreatedAt: time.Now(),
			Metadata: model.Metadata{Labels: map[string]string{"team": "harbour", "tier": "1"}},
			Status: model.SubscriptionStatus{State: model.StateAtLatestKnown, Conditions: []model.Condition{
				{Type: "CatalogSourcesUnhealthy", Status: "False", Message: strings.Repeat("all is well ", 8)},
				{Type: "InstallPlanPending", Status: "False", Message: strings.Repeat("none waits ", 8)},
			}},
		}
	}
	f, err := parse(reflect.TypeFor[model.Subscription](), "cluster,namespace,name")
	if err != nil {
		b.Fatal(err)
	}
	for name, fields := range map[string]Fields{"whole": {}, "three": f} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				raw, err := json.Marshal(fields.Of(page))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(raw)), "B/page")
			}
		})
	}
}
