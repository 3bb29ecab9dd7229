package olm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
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
		all, err := olm.Read(strings.NewReader("{apiVersion: operators.coreos.com/v1, kind: OLMConfig, metadata: "+
			c.metadata+", spec: "+c.spec+"}"), "f")
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", name, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := all[0]
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
