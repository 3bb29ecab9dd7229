package mirror_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/chandlercrd"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// TestColumns: R-CSV-6, R-SUB-22: kubectl lists what it lists under OLM; it begins with NAME by itself.
func TestColumns(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, d := range mirror.CRDs(events.MirrorAll) {
		var columns []string
		for _, c := range d.Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, c.Name+"="+c.JSONPath)
		}
		if len(columns) > 0 {
			got[d.Spec.Names.Kind] = strings.Join(columns, " ")
		}
	}
	want := map[string]string{
		"CatalogSource": "Display=.spec.displayName Type=.spec.sourceType Publisher=.spec.publisher " +
			"Age=.metadata.creationTimestamp",
		"ClusterServiceVersion": "Display=.spec.displayName Version=.spec.version Release=.spec.release " +
			"Replaces=.spec.replaces Phase=.status.phase",
		"Subscription": "Package=.spec.name Source=.spec.source Channel=.spec.channel",
		"InstallPlan":  "CSV=.spec.clusterServiceVersionNames[0] Approval=.spec.approval Approved=.spec.approved",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestViewRole: R-NAD-2: who may view a namespace may read its mirrors, all kinds of them, and nobody may write any.
func TestViewRole(t *testing.T) {
	t.Parallel()
	r := mirror.ViewRole()
	if r.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "true" || len(r.Rules) != 1 {
		t.Fatalf("got %+v", r)
	}
	rule := r.Rules[0]
	for _, d := range mirror.CRDs(events.MirrorAll) {
		kind := d.Spec.Names.Kind
		if mirrored := kind != "OperatorCondition" && kind != "OLMConfig"; slices.Contains(
			rule.Resources, d.Spec.Names.Plural) != mirrored {
			t.Errorf("%s may be read: %v, want %v", kind, !mirrored, mirrored)
		}
	}
	if diff := cmp.Diff([]string{"get", "list", "watch"}, rule.Verbs); diff != "" ||
		!slices.Equal(rule.APIGroups, []string{"operators.coreos.com"}) {
		t.Errorf("rule %+v", rule)
	}
}

// TestRevisions: the definitions are exactly those that are shipped. One that differs from the one before has a higher
// revision: in clusters that have an older one it is written anew, and only then.
func TestRevisions(t *testing.T) {
	t.Parallel()
	got := map[string]shipped{}
	for _, d := range mirror.CRDs(events.MirrorAll) {
		sum, err := digest.JSON("chandler.definition.v1", d.Spec)
		if err != nil {
			t.Fatal(err)
		}
		got[d.Spec.Names.Kind] = shipped{chandlercrd.RevisionOf(d), string(sum)}
	}
	if diff := cmp.Diff(revisions, got, cmp.AllowUnexported(shipped{})); diff != "" {
		t.Errorf("raise the revision with every change, and note both here (-want +got):\n%s", diff)
	}
}

// shipped is one definition as clusters have it.
type shipped struct {
	revision int
	digest   string
}

// revisions are the definitions as they are shipped.
var revisions = map[string]shipped{
	"OperatorCondition":     {1, "sha256:7ce304a75ee5c177586c2544f24d84c575cbadd2313cb594951c2a15756f41c8"},
	"ClusterServiceVersion": {1, "sha256:87e69d21a4e7c3a3d150f1fa39b3f226d3ad5a020e6b248ef94c61bc74d27ee4"},
	"Subscription":          {2, "sha256:0c0f280a6b6a0416852c1dc8d0ef2dc4b0ba8487ac8db3584f04b87e37abefef"},
	"InstallPlan":           {1, "sha256:4ab64fbaffa23d73f80a618ba5cd1efea93fbad699fa5b9c841622dc50f944c4"},
	"OperatorGroup":         {1, "sha256:7c9df961530af2578d073d067aa5d2f9e9b0822976159b7e9aa7725eb6c00c90"},
	"Operator":              {1, "sha256:83d4472c4322854bcb53a0699b95e980e6cd862e92e53414779ec4bffe8a7093"},
	"CatalogSource":         {1, "sha256:7197b40ea91dbe202f9c72efc43a5a0a342ef5fc0bbbbb41440b14526baa1a3d"},
	"OLMConfig":             {1, "sha256:d489d50e5afe9c9d608a6e3f9d9e2e2111e81cadb45cadd5a0e0a821b57d9d4a"},
}

// TestOperatorConditionVersions: R-COND-1, R-COND-8: both versions are served, with the same fields, so that neither a
// reader nor a writer of one loses what the other says; the newer one is stored.
func TestOperatorConditionVersions(t *testing.T) {
	t.Parallel()
	d := mirror.CRDs(events.MirrorNone)[0]
	got := map[string][2]bool{}
	for _, v := range d.Spec.Versions {
		got[v.Name] = [2]bool{v.Served, v.Storage}
		if diff := cmp.Diff(d.Spec.Versions[0].Schema, v.Schema); diff != "" {
			t.Errorf("%s: %s", v.Name, diff)
		}
	}
	if diff := cmp.Diff(map[string][2]bool{"v2": {true, true}, "v1": {true, false}}, got); diff != "" ||
		d.Spec.Conversion != nil {
		t.Errorf("%s, conversion %+v", diff, d.Spec.Conversion)
	}
}

// TestSchemasExplain: each field that is named has a type, and each one that people look for a sentence.
func TestSchemasExplain(t *testing.T) {
	t.Parallel()
	var walk func(path string, s apiextensionsv1.JSONSchemaProps, depth int)
	walk = func(path string, s apiextensionsv1.JSONSchemaProps, depth int) {
		if s.Type == "" && s.XPreserveUnknownFields == nil {
			t.Errorf("%s has no type", path)
		}
		if depth > 1 && s.Description == "" && !strings.HasSuffix(path, "[]") && !strings.HasSuffix(path, "{}") {
			t.Errorf("%s has no description", path)
		}
		for name, p := range s.Properties {
			walk(path+"."+name, p, depth+1)
		}
		if s.Items != nil {
			walk(path+"[]", *s.Items.Schema, depth)
		}
		if s.AdditionalProperties != nil {
			walk(path+"{}", *s.AdditionalProperties.Schema, depth)
		}
	}
	for _, d := range mirror.CRDs(events.MirrorAll) {
		for _, v := range d.Spec.Versions {
			root := v.Schema.OpenAPIV3Schema
			walk(d.Spec.Names.Kind, *root, 0)
			for _, part := range []string{"spec", "status"} {
				if p := root.Properties[part]; len(p.Properties) == 0 && d.Spec.Names.Kind+part != "Operatorspec" {
					t.Errorf("%s.%s names no field", d.Spec.Names.Kind, part)
				}
			}
		}
	}
}
