package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

// update writes the golden files anew: go test ./libs/render -run TestGolden -update
var update = flag.Bool("update", false,
	"write golden files anew") //nolint:gochecknoglobals // a flag of the test binary

func load(tb testing.TB) bundle.Content {
	tb.Helper()
	text, err := os.ReadFile("testdata/tide.yaml")
	fatal(tb, err)
	var raw [][]byte
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		raw = append(raw, doc)
	}
	c, err := bundle.FromManifests(raw)
	fatal(tb, err)
	return c
}

func fatal(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// golden compares the objects, as YAML in order, with a file.
func golden(t *testing.T, name string, objects []render.Object) {
	t.Helper()
	var out bytes.Buffer
	for _, o := range objects {
		d, err := o.Digest()
		fatal(t, err)
		out.WriteString("# " + o.String() + " " + string(d) + "\n---\n")
		out.Write(ordered(t, o.Body))
	}
	path := filepath.Join("testdata", name+".golden.yaml")
	if *update {
		fatal(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	fatal(t, err)
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// ordered is an object as YAML with its keys in the order of JSON: the order of the YAML library, which takes runs of
// digits for numbers, is no order for every three keys, and comes out one way or the other.
func ordered(t *testing.T, body map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(body)
	fatal(t, err)
	var n yaml.Node
	fatal(t, yaml.Unmarshal(raw, &n))
	plain(&n)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	fatal(t, e.Encode(&n))
	return out.Bytes()
}

// plain takes the style of JSON from a node.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plain(c)
	}
}

// TestGolden: R-IP-20, R-CSV-20, R-CSV-21, R-SUB-11, R-SUB-14, R-COND-1.
func TestGolden(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("testdata/config.json")
	fatal(t, err)
	for name, in := range map[string]render.Input{
		"plain":  {},
		"config": {Config: config},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in.Content, in.Namespace = load(t), "coast-ops"
			objects, err := render.Render(in)
			fatal(t, err)
			golden(t, name, objects)
		})
	}
}

// TestDeterministic: the same input gives the same digests, in any number of runs, and config only
// changes what it concerns.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	digests := func(config string) map[string]string {
		objects, err := render.Render(render.Input{
			Content: load(t), Namespace: "coast-ops",
			Config: json.RawMessage(config),
		})
		fatal(t, err)
		out := map[string]string{}
		for _, o := range objects {
			d, err := o.Digest()
			fatal(t, err)
			out[o.String()] = string(d)
		}
		return out
	}
	first := digests("")
	for range 20 {
		if diff := cmp.Diff(first, digests("null")); diff != "" {
			t.Fatalf("digests differ between runs:\n%s", diff)
		}
	}
	changed := digests(`{"env":[{"name":"X","value":"y"}]}`)
	for name, d := range first {
		if isDeployment := strings.HasPrefix(name, "Deployment "); (changed[name] != d) != isDeployment {
			t.Errorf("%s: changed by config: %v", name, changed[name] != d)
		}
	}
}

// TestInstallModes is the table of R-CSV-31, with R-CSV-30 and, of R-OG-10, that the modes of a member support the
// targets of its group; MultiNamespace is there for those who support it (R-MT-5).
func TestInstallModes(t *testing.T) {
	t.Parallel()
	own, single, multi, all := render.ModeOwn, render.ModeSingle, render.ModeMulti, render.ModeAll
	for name, c := range map[string]struct {
		targets   []string
		supported []string
		want      string
	}{
		"empty list": {
			nil,
			[]string{own, single, multi, all},
			"operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces",
		},
		"all": {[]string{""}, []string{all}, ""},
		"all unsupported": {
			[]string{""},
			[]string{own, single, multi},
			"AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces",
		},
		"own": {[]string{"own"}, []string{own}, ""},
		"own unsupported": {
			[]string{"own"},
			[]string{single, multi, all},
			"OwnNamespace InstallModeType not supported, cannot configure to watch own namespace",
		},
		"one": {[]string{"x"}, []string{single}, ""},
		"one unsupported": {
			[]string{"x"},
			[]string{own, multi, all},
			"SingleNamespace InstallModeType not supported, cannot configure to watch one namespace",
		},
		"several": {[]string{"a", "b"}, []string{multi}, ""},
		"several unsupported": {
			[]string{"a", "b", "c"},
			[]string{own, single, all},
			"MultiNamespace InstallModeType not supported, cannot configure to watch 3 namespaces",
		},
		"own and others": {[]string{"own", "b"}, []string{multi, own}, ""},
		"own and others, own": {
			[]string{"own", "b"},
			[]string{own, single, all},
			"MultiNamespace InstallModeType not supported, cannot configure to watch 2 namespaces",
		},
		"own and others, multi": {
			[]string{"own", "b"},
			[]string{multi},
			"OwnNamespace InstallModeType not supported, cannot configure to watch own namespace",
		},
		"all and others": {
			[]string{"", "b"},
			[]string{multi, all},
			"operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var modes []bundle.InstallMode
			var said []bundle.InstallMode // what is not supported may be listed as such, or not at all (R-CSV-30)
			for _, m := range []string{own, single, multi, all} {
				supported := slices.Contains(c.supported, m)
				said = append(said, bundle.InstallMode{Type: m, Supported: supported})
				if supported {
					modes = append(modes, bundle.InstallMode{Type: m, Supported: true})
				}
			}
			err := render.CheckInstallModes(modes, "own", c.targets)
			if got, listed := text(err), text(render.CheckInstallModes(said, "own", c.targets)); got != c.want ||
				listed != c.want {
				t.Errorf("got %q, and %q where all are listed, want %q", got, listed, c.want)
			}
			if err != nil && !errs.Is(err, errs.Unprocessable) {
				t.Errorf("kind %s", errs.KindOf(err))
			}
		})
	}
	if got := render.DuplicateMode([]bundle.InstallMode{{Type: own}, {Type: all}, {Type: own}}); got != own {
		t.Errorf("duplicate mode %q, want %q", got, own)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestRefusals: a bundle that cannot be rendered is refused with the rule that it breaks.
func TestRefusals(t *testing.T) {
	t.Parallel()
	csv := func(strategy, deployments string) string {
		return `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"installModes":[{"type":"OwnNamespace","supported":true}],"install":{"strategy":"` +
			strategy + `","spec":{"deployments":` + deployments + `}}}}`
	}
	for name, c := range map[string]struct {
		manifests []string
		config    string
		rule      string
	}{
		"strategy": {[]string{csv("helm", "[]")}, "", "R-CSV-2"},
		"deployment twice": {
			[]string{csv("deployment", `[{"name":"a","spec":{}},{"name":"a","spec":{"replicas":2}}]`)},
			"", "R-CSV-20",
		},
		"deployment type": {[]string{csv("deployment", `[{"name":"a","spec":{"replicas":"many"}}]`)}, "", "R-CSV-20"},
		"kind": {[]string{
			csv("deployment", "[]"),
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`,
		}, "", "R-CAT-53"},
		// R-TOK-5
		"of the platform": {
			[]string{
				csv("deployment", "[]"),
				`{"apiVersion":"cloudcredential.openshift.io/v1","kind":"CredentialsRequest","metadata":{"name":"p"}}`,
			},
			"",
			"R-CAT-53",
		},
		"pod monitor": {[]string{
			csv("deployment", "[]"),
			`{"apiVersion":"monitoring.coreos.com/v1","kind":"PodMonitor","metadata":{"name":"p"}}`,
		}, "", "R-CAT-53"},
		"crd v1beta1": {[]string{
			csv("deployment", "[]"),
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"tides.sea.test"}}`,
		}, "", "R-CAT-59"},
		"crd of Kubernetes": {[]string{
			csv("deployment", "[]"),
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"roles.rbac.authorization.k8s.io"}}`,
		}, "", bundle.RuleReserved},
		"name of Chandler": {[]string{
			csv("deployment", "[]"),
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"chandler-executor"}}`,
		}, "", "reserved-name"},
		"config": {[]string{csv("deployment", "[]")}, `{"env":"LOG=debug"}`, "R-SUB-14"},
		"mount of a nobody": {
			[]string{csv("deployment", `[{"name":"a","spec":{}}]`)},
			`{"volumeMounts":[{"name":"v","mountPath":"/v"}]}`, "R-SUB-14",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var raw [][]byte
			for _, m := range c.manifests {
				raw = append(raw, []byte(m))
			}
			content, err := bundle.FromManifests(raw)
			fatal(t, err)
			_, err = render.Render(render.Input{Content: content, Namespace: "ops", Config: json.RawMessage(c.config)})
			if !errs.Is(err, errs.Invalid) || !hasRule(err, c.rule) {
				t.Errorf("got %v (%s), want rule %s", err, errs.KindOf(err), c.rule)
			}
		})
	}
}

// TestRenderedAsOLM: what OLM installs is rendered, and each object once (R-CSV-20, R-CAT-53).
func TestRenderedAsOLM(t *testing.T) {
	t.Parallel()
	const csv = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"install":{"strategy":"deployment","spec":{"deployments":[%s]}}}}`
	for name, c := range map[string]struct {
		manifests []string
		object    string
	}{
		"equal deployments": {
			[]string{fmt.Sprintf(csv, `{"name":"a","spec":{}},{"name":"a","spec":{}}`)},
			"Deployment ops/a",
		},
		"a name of the system": {[]string{
			fmt.Sprintf(csv, ""),
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"system:metrics-server"}}`,
		}, "ClusterRole system:metrics-server"},
		"other namespaces": {
			[]string{
				fmt.Sprintf(csv, ""),
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"x"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"y"},"data":{"a":"b"}}`,
			},
			"ConfigMap ops/c",
		},
		"a group of the community": {[]string{
			fmt.Sprintf(csv, ""),
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"apps.charts.helm.k8s.io"}}`,
		}, "CustomResourceDefinition apps.charts.helm.k8s.io"},
	} {
		var raw [][]byte
		for _, m := range c.manifests {
			raw = append(raw, []byte(m))
		}
		content, err := bundle.FromManifests(raw)
		fatal(t, err)
		objects, err := render.Render(render.Input{Content: content, Namespace: "ops"})
		fatal(t, err)
		n := 0
		for _, o := range objects {
			if o.String() == c.object {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %s is there %d times in %v", name, c.object, n, objects)
		}
	}
}

// TestOthersWords: what a manifest says in Chandler's and OLM's words of owners and installation is dropped wherever it
// stands, what it says in its own is kept, and who brings an object that can be shared says so (R-CSV-22, R-IP-23).
func TestOthersWords(t *testing.T) {
	t.Parallel()
	words := `{"chandler-fleet.io/pull-secret":"true","chandler-fleet.io/plan":"x","operatorframework.io/installed-alongside-1":"a/b","olm.owner":"z",` +
		`"olm.owner.namespace":"z","olm.copiedFrom":"z","olm.opgroup.permissions/aggregate-to-admin":"true","olm.operatorgroup.uid/1":"","sea.test/kept":"yes"}`
	meta := func(name string) string {
		return `"metadata":{"name":"` + name + `","labels":` + words + `,"annotations":` + words + `}`
	}
	var raw [][]byte
	for _, m := range []string{
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",` + meta("a.v1") +
			`,"spec":{"install":{"strategy":"deployment","spec":{
			"deployments":[{"name":"a","label":` + words + `,"spec":{}}],"permissions":[{"serviceAccountName":"a","rules":[]}]}}}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` + meta("tides.sea.test") + `}`,
		`{"apiVersion":"v1","kind":"Secret",` + meta("s") + `}`,
		`{"apiVersion":"v1","kind":"ServiceAccount",` + meta("a") + `}`,
		`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",` + meta("p") + `}`,
	} {
		raw = append(raw, []byte(m))
	}
	content, err := bundle.FromManifests(raw)
	fatal(t, err)
	objects, err := render.Render(render.Input{Content: content, Namespace: "ops"})
	fatal(t, err)
	kept := 0
	for _, o := range objects {
		text, err := json.Marshal(o.Body["metadata"])
		fatal(t, err)
		kept += strings.Count(string(text), `"sea.test/kept"`)
		for _, foreign := range []string{
			`chandler-fleet.io`, `"a/b"`, `"z"`, `olm.copiedFrom`, `olm.opgroup`,
			`olm.operatorgroup`,
		} {
			if strings.Contains(string(text), foreign) {
				t.Errorf("%s keeps %s: %s", o, foreign, text)
			}
		}
		// Of the others in a namespace the executor notes the owners when it finds that there are several.
		shares := (o.Namespace == "" || o.GVK.Kind == "ServiceAccount") &&
			!strings.Contains(string(text), render.LabelPermissionsHash)
		if named := strings.Contains(string(text), `"ops/a.v1"`); named != shares {
			t.Errorf("%s names its owner: %v, want %v", o, named, shares)
		}
	}
	if kept != 11 { // labels and annotations of five manifests, and the label of the Deployment
		t.Errorf("%d words of the bundle's own are kept, want 11", kept)
	}
}

func hasRule(err error, rule string) bool {
	for err != nil {
		if e, ok := err.(*errs.Error); ok { //nolint:errorlint // each link of the chain is looked at
			if e.Rule == rule {
				return true
			}
			err = e.Unwrap()
			continue
		}
		return false
	}
	return false
}

// TestNames: R-CSV-21: generated names fit a label and differ between namespaces for cluster roles.
func TestNames(t *testing.T) {
	t.Parallel()
	names := func(ns string) map[string]bool {
		out := map[string]bool{}
		objects, err := render.Render(render.Input{Content: load(t), Namespace: ns})
		fatal(t, err)
		for _, o := range objects {
			if o.GVK.Kind == "ClusterRole" && o.Name != "tide-metrics-reader" {
				out[o.Name] = true
				if len(o.Name) > 63 {
					t.Errorf("%s has %d characters", o.Name, len(o.Name))
				}
			}
		}
		return out
	}
	a := names("a")
	for n := range names("b") {
		if a[n] {
			t.Errorf("cluster role %s is in both namespaces", n)
		}
	}
	long := strings.Repeat("x", 100)
	if got := render.OwnerLabelValue(long); len(got) > 63 || got == render.OwnerLabelValue(long+"y") {
		t.Errorf("owner label %s", got)
	}
}
