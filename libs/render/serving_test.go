package render_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

// served is testdata/serving.yaml with pairs of texts replaced.
func served(tb testing.TB, replace ...string) bundle.Content {
	tb.Helper()
	text, err := os.ReadFile("testdata/serving.yaml")
	fatal(tb, err)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(text), replace[i]) {
			tb.Fatalf("testdata/serving.yaml has no %q", replace[i])
		}
	}
	var raw [][]byte
	for doc := range strings.SplitSeq(strings.NewReplacer(replace...).Replace(string(text)), "\n---\n") {
		raw = append(raw, []byte(doc))
	}
	c, err := bundle.FromManifests(raw)
	fatal(tb, err)
	return c
}

// TestServing: R-CSV-40, R-CSV-41, R-CSV-42, R-CSV-43, R-CSV-46, without what belongs to a cluster.
func TestServing(t *testing.T) {
	t.Parallel()
	objects, err := render.Render(render.Input{Content: served(t), Namespace: "coast-ops"})
	fatal(t, err)
	golden(t, "serving", objects)
}

// TestServingOf: R-CSV-40: what the API server calls has a Service, a Secret and its host names.
func TestServingOf(t *testing.T) {
	t.Parallel()
	csv, err := served(t).CSV()
	fatal(t, err)
	got, err := render.ServingOf(csv, "ops")
	fatal(t, err)
	want := []render.Serving{
		{
			Deployment: "buoy-controller", Service: "buoy-controller-service", Secret: "buoy-controller-service-cert",
			Hosts: []string{
				"buoy-controller-service.ops", "buoy-controller-service.ops.svc",
				"buoy-controller-service.ops.svc.cluster.local",
			},
		},
		{
			Deployment: "buoy.server", Service: "buoy-server-service", Secret: "buoy-server-service-cert",
			Hosts: []string{
				"buoy-server-service.ops", "buoy-server-service.ops.svc",
				"buoy-server-service.ops.svc.cluster.local",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	long := strings.Repeat("x", 70)
	if name := render.ServiceName(long); len(name) > 63 || name == render.ServiceName(long+"y") {
		t.Errorf("service name %s", name)
	}
}

// TestWebhookNames: the name of a configuration stays over versions, and differs between namespaces, so that an
// upgrade leaves no gap and two installs do not take each other's (R-CSV-42).
func TestWebhookNames(t *testing.T) {
	t.Parallel()
	names := func(ns string, replace ...string) string {
		objects, err := render.Render(render.Input{Content: served(t, replace...), Namespace: ns})
		fatal(t, err)
		var out []string
		for _, o := range objects {
			if o.GVK == render.GVKValidatingWebhook || o.GVK == render.GVKMutatingWebhook {
				out = append(out, o.Name)
			}
		}
		return strings.Join(out, " ")
	}
	first := names("ops")
	if next := names("ops", "v1.0.0", "v1.1.0", "timeoutSeconds: 7", "timeoutSeconds: 9"); next != first {
		t.Errorf("names moved with the version: %s, then %s", first, next)
	}
	if other := names("dock"); other == first {
		t.Errorf("names are the same in two namespaces: %s", other)
	}
}

// TestServingRefusals: R-CSV-45, R-CSV-46 and what cannot be served at all.
func TestServingRefusals(t *testing.T) {
	t.Parallel()
	const rules = "apiGroups: [sea.test], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [buoys]"
	for name, c := range map[string]struct {
		replace []string
		rule    string
		want    string
	}{
		"group *": {
			[]string{
				rules,
				"apiGroups: ['*'], apiVersions: [v1], operations: [CREATE], resources: [pods]",
			},
			"R-CSV-45",
			"cannot include all groups",
		},
		"the OLM group": {[]string{
			rules,
			"apiGroups: [apps, operators.coreos.com], apiVersions: [v1], operations: [CREATE], resources: " +
				"[subscriptions]",
		}, "R-CSV-45", "cannot include the OLM group"},
		"Chandler's group": {[]string{
			rules,
			"apiGroups: [apps, deep.chandler-fleet.io], apiVersions: ['*'], operations: [CREATE], resources: ['*']",
		}, bundle.RuleReserved, "cannot include groups of OLM or Chandler"},
		"webhook configurations": {
			[]string{
				rules,
				"apiGroups: [admissionregistration.k8s.io], apiVersions: [v1], operations: [DELETE], resources: " +
					"[ValidatingWebhookConfigurations]",
			},
			"R-CSV-45",
			"cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration",
		},
		"all of admission": {
			[]string{
				rules,
				"apiGroups: [admissionregistration.k8s.io], apiVersions: [v1], operations: [DELETE], resources: ['*/*']",
			},
			"R-CSV-45", "cannot include MutatingWebhookConfiguration",
		},
		"one generateName": {
			[]string{"mbuoy.sea.test", "vbuoy.sea.test"},
			"R-CSV-45",
			"repeated webhook description name vbuoy.sea.test",
		},
		"type":                  {[]string{"type: ConversionWebhook", "type: Convert"}, "R-CSV-42", `type "Convert"`},
		"short name":            {[]string{"vbuoy.sea.test", "vbuoy.test"}, "R-CSV-42", "at least three segments"},
		"form of a description": {[]string{"timeoutSeconds: 7", "timeoutSeconds: soon"}, "R-CSV-42", "webhook 1"},
		"form of the rules": {
			[]string{"operations: [CREATE, UPDATE]", "operations: CREATE"},
			"R-CSV-42",
			"vbuoy.sea.test",
		},
		"two targets of a port": {
			[]string{"containerPort: 9444", "containerPort: 443"},
			"R-CSV-42",
			"port 443 with two target ports, 9443 and convert",
		},
		"target": {
			[]string{"targetPort: convert", "targetPort: [1]"},
			"R-CSV-42",
			"neither a number nor a name",
		},
		"deployment of a webhook": {
			[]string{"deploymentName: buoy-controller", "deploymentName: nobody"},
			"R-CSV-42",
			`deployment "nobody"`,
		},
		"deployment of an API": {
			[]string{"deploymentName: buoy.server", "deploymentName: nobody"},
			"R-CSV-40",
			`deployment "nobody"`,
		},
		"modes of a converter": {
			[]string{
				"{type: OwnNamespace, supported: false}",
				"{type: OwnNamespace, supported: true}",
			},
			"R-CSV-46",
			"AllNamespaces must be the one supported install mode",
		},
		"converts another's": {
			[]string{"conversionCRDs: [buoys.sea.test]", "conversionCRDs: [tides.sea.test]"},
			"R-CSV-46", "no CRD that the operator owns",
		},
		"CRD not brought": {
			[]string{"metadata: {name: buoys.sea.test}", "metadata: {name: gulls.sea.test}"},
			"R-CSV-46", "does not bring",
		},
		"unknown fields kept": {
			[]string{"  scope: Namespaced", "  preserveUnknownFields: true\n  scope: Namespaced"},
			"R-CSV-46", "preserveUnknownFields must be false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := render.Render(render.Input{Content: served(t, c.replace...), Namespace: "ops"})
			if !errs.Is(err, errs.Invalid) || !hasRule(err, c.rule) || !strings.Contains(text(err), c.want) {
				t.Errorf("got %v (%s), want %q by rule %s", err, errs.KindOf(err), c.want, c.rule)
			}
		})
	}
}

// TestServingAsOLM: what OLM takes is taken (R-CSV-40, R-CSV-42, R-CSV-46).
func TestServingAsOLM(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string][]string{
		"a selector without matchLabels": {
			"selector: {matchLabels: {app: buoy}}",
			"selector: {matchExpressions: [{key: app, operator: Exists}]}",
		},
		"a converter of nothing": {"conversionCRDs: [buoys.sea.test]", "conversionCRDs: []"},
		"a CRD that is converted twice": {
			"conversionCRDs: [buoys.sea.test]",
			"conversionCRDs: [buoys.sea.test, buoys.sea.test]",
		},
	} {
		objects, err := render.Render(render.Input{Content: served(t, replace...), Namespace: "ops"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, o := range objects {
			if o.GVK.Kind != "Service" {
				continue
			}
			if spec, ok := o.Body["spec"].(map[string]any); !ok || len(fmt.Sprint(spec["selector"])) <= len("map[]") {
				t.Errorf("%s: %s selects no pods: %v", name, o, o.Body)
			}
		}
	}
}
