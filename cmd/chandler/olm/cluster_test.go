package olm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestNamespacesJoin: the labels and annotations of a Namespace go to the operator groups that are in it, and to no
// other; what chandler get writes of a group says its own.
func TestNamespacesJoin(t *testing.T) {
	t.Parallel()
	const files = `
{apiVersion: v1, kind: Namespace, metadata: {name: ports, labels: {tier: quay, kubernetes.io/metadata.name: ports},
  annotations: {openshift.io/node-selector: ""}}}
---
{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: in, namespace: ports}}
---
{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: out, namespace: docks}}
---
{apiVersion: chandler-fleet.io/v1, kind: OperatorGroup, name: own, namespace: ports}
---
{apiVersion: v1, kind: Namespace, metadata: {name: alone}}
`
	all, err := olm.Read(strings.NewReader(files), "f")
	if err != nil {
		t.Fatal(err)
	}
	olm.JoinNamespaces(all)
	groups, joined, annotations := map[string]map[string]string{}, map[string]bool{}, map[string]map[string]string{}
	for _, d := range all {
		if d.OperatorGroup != nil {
			groups[d.Name], annotations[d.Name] = d.OperatorGroup.NamespaceLabels, d.OperatorGroup.NamespaceAnnotations
		} else {
			joined[d.Name] = d.Joined
		}
	}
	want := map[string]map[string]string{"in": {"tier": "quay"}, "out": nil, "own": {}}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Error(diff)
	}
	want = map[string]map[string]string{"in": {"openshift.io/node-selector": ""}, "out": nil, "own": {}}
	if diff := cmp.Diff(want, annotations); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"ports": true, "alone": false}, joined); diff != "" {
		t.Error(diff)
	}
}

// TestOLMConfig: §4: of an OLMConfig the one setting that Chandler has, too, becomes the cluster's; what it does not
// say stays (R-CFG-1, R-CFG-4).
func TestOLMConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ metadata, spec, want, note, skipped, wrong string }{
		"copies":    {"{name: cluster}", "{features: {disableCopiedCSVs: false}}", "on", "", "", ""},
		"no copies": {"{name: cluster}", "{features: {disableCopiedCSVs: true}}", "off", "", "", ""},
		"an interval": {
			"{name: cluster}", "{features: {packageServerSyncInterval: 5m}}", "", "has no effect",
			"nothing is lost", "",
		},
		"nothing":           {"{name: cluster}", "{}", "", "", "nothing is lost", ""},
		"another name":      {"{name: other}", "{}", "", "", "", "an OLMConfig is named cluster"},
		"a namespace":       {"{name: cluster, namespace: ports}", "{}", "", "", "", "an OLMConfig is in none"},
		"an unknown field":  {"{name: cluster}", "{features: {disableCopies: true}}", "", "", "", `"disableCopies"`},
		"a text for a bool": {"{name: cluster}", `{features: {disableCopiedCSVs: "true"}}`, "", "", "", "cannot unmarshal"},
	} {
		d, ok := one(t, name, "{apiVersion: operators.coreos.com/v1, kind: OLMConfig, metadata: "+c.metadata+", spec: "+
			c.spec+"}", c.wrong)
		if !ok {
			continue
		}
		if notes := strings.Join(d.Notes, "\n"); d.CopiedCSVs != c.want || !strings.Contains(d.Skipped, c.skipped) ||
			(d.Skipped == "") != (c.skipped == "") || !strings.Contains(notes, c.note) ||
			(notes == "") != (c.note == "") {
			t.Errorf("%s: copied CSVs %q, skipped %q, notes %q", name, d.CopiedCSVs, d.Skipped, notes)
		}
	}
}

// TestAnnotationsOfNamespaces: issue 13 §4: settings are kept, and what is none is said, so that what kubectl get
// writes of a namespace applies; what an API server would refuse is refused.
func TestAnnotationsOfNamespaces(t *testing.T) {
	t.Parallel()
	read := func(annotations string) ([]olm.Document, error) {
		return olm.Read(strings.NewReader("{apiVersion: v1, kind: Namespace, metadata: {name: ports, annotations: {"+
			annotations+"}}}"), "f")
	}
	all, err := read(`linkerd.io/inject: enabled, openshift.io/requester: somebody, openshift.io/sa.scc.mcs: "s0:c1,c0",
  kubectl.kubernetes.io/last-applied-configuration: "{}", chandler-fleet.io/plan: p, long: ` + strings.Repeat("x", 1025) +
		`, most: ` + strings.Repeat("x", 1024))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"linkerd.io/inject": "enabled", "most": strings.Repeat("x", 1024)}
	if diff := cmp.Diff(want, all[0].NamespaceAnnotations); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"annotation chandler-fleet.io/plan: not kept, by such keys objects of operators are found in clusters",
		"annotation long: not kept, it has 1025 bytes, and settings have at most 1024",
		"annotation openshift.io/requester: not kept, the cluster notes there which person asked for the project",
		"annotation openshift.io/sa.scc.mcs: not kept, each cluster gives its namespaces ranges of their own",
	}, all[0].Notes); diff != "" {
		t.Error(diff)
	}
	if _, err := read(`"no key": a`); err == nil || !strings.Contains(err.Error(), "metadata.annotations") {
		t.Errorf("a key that is none: %v", err)
	}
}

// one reads a document; ok is false where it is refused, which it is to be with wrong.
func one(t *testing.T, name, text, wrong string) (d olm.Document, ok bool) {
	t.Helper()
	all, err := olm.Read(strings.NewReader(text), "f")
	switch {
	case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
		t.Errorf("%s: %v, want %s", name, err, wrong)
	case wrong == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case err == nil:
		return all[0], true
	}
	return d, false
}

// TestSecretsOfSources: Kubernetes' types of secrets that a catalog's source can use become its kinds, complete or not
// at all.
func TestSecretsOfSources(t *testing.T) {
	t.Parallel()
	const catalog = `{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: c},
  spec: {sourceType: git, url: "https://git.test/a.git", secrets: [s]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}, `
	for name, c := range map[string]struct{ text, kind, value, wrong string }{
		"a password": {
			"type: kubernetes.io/basic-auth, stringData: {username: bot, password: pw}}", "basic",
			`{"password":"pw","username":"bot"}`, "",
		},
		"data goes before what is not there": {
			"type: kubernetes.io/basic-auth, data: {username: Ym90, password: cHc=}}", "basic",
			`{"password":"pw","username":"bot"}`, "",
		},
		"a key": {
			"type: kubernetes.io/ssh-auth, stringData: {ssh-privatekey: k, known_hosts: h}}", "ssh",
			`{"knownHosts":"h","privateKey":"k"}`, "",
		},
		"a key without known hosts": {
			"type: kubernetes.io/ssh-auth, stringData: {ssh-privatekey: k}}", "", "", "data.known_hosts is missing",
		},
		"no password": {
			"type: kubernetes.io/basic-auth, stringData: {username: bot}}", "", "", "data.password is missing",
		},
	} {
		all, err := olm.Read(strings.NewReader(catalog+c.text), "f")
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", name, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		olm.Complete(all)
		s := all[1].Secret
		if s == nil || string(s.Kind) != c.kind || string(s.Value) != c.value {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestOperatorCondition: §4, R-COND-2: the overrides of an OperatorCondition are an intent, also none of them; what the
// operator says is nobody's here. A message has no place, and types without an effect are named.
func TestOperatorCondition(t *testing.T) {
	t.Parallel()
	const tested = `{type: Upgradeable, status: "True", reason: Tested, message: it was tried}`
	yes := model.ConditionOverride{Type: "Upgradeable", Status: "True", Reason: "Tested"}
	for name, c := range map[string]struct {
		spec           string
		want           []model.ConditionOverride
		notes, skipped string
		wrong          string
	}{
		"an override": {
			spec: "{overrides: [" + tested + "], conditions: [], deployments: [tide], serviceAccounts: [tide]}",
			want: []model.ConditionOverride{yes}, notes: "message of Upgradeable: not kept",
		},
		"of another type": {
			spec:  `{overrides: [{type: Ready, status: "False", reason: Season}]}`,
			want:  []model.ConditionOverride{{Type: "Ready", Status: "False", Reason: "Season"}},
			notes: "override of Ready: kept, and has no effect",
		},
		"none as a list":        {spec: "{overrides: []}", want: []model.ConditionOverride{}},
		"the operator's word":   {spec: "{conditions: [" + tested + "]}", skipped: "it has no overrides"},
		"nothing":               {spec: "{}", skipped: "it has no overrides"},
		"a field of no version": {spec: "{override: []}", wrong: `"override"`},
		"a status that is bool": {spec: "{overrides: [{type: Upgradeable, status: true}]}", wrong: "cannot unmarshal"},
	} {
		d, ok := one(t, name, "{apiVersion: operators.coreos.com/v2, kind: OperatorCondition, "+
			"metadata: {name: tide.v1, namespace: ports}, spec: "+c.spec+"}", c.wrong)
		if !ok {
			continue
		}
		var got []model.ConditionOverride
		if d.Overrides != nil {
			got = d.Overrides.Conditions
		}
		if diff := cmp.Diff(c.want, got); diff != "" || (d.Skipped == "") != (c.skipped == "") ||
			!strings.Contains(d.Skipped, c.skipped) || !strings.Contains(strings.Join(d.Notes, "\n"), c.notes) ||
			len(d.Notes) > 0 && c.notes == "" {
			t.Errorf("%s: skipped %q, notes %q (-want +got):\n%s", name, d.Skipped, d.Notes, diff)
		}
	}
}
