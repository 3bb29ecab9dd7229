package planreview_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/planreview"
)

// object is an object of YAML.
func object(t *testing.T, text string) planreview.Object {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	meta, _ := body["metadata"].(map[string]any)
	apiVersion, _ := body["apiVersion"].(string)
	kind, _ := body["kind"].(string)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := digest.Canonical(body)
	if err != nil {
		t.Fatal(err)
	}
	o := planreview.Object{
		Object: render.Object{GVK: gv.WithKind(kind), Namespace: namespace, Name: name, Body: body}, Shown: shown,
	}
	if o.Digest, err = o.Object.Digest(); err != nil {
		t.Fatal(err)
	}
	return o
}

const deploymentBefore = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: sea, annotations: {a: one, b/c~d: old}}
spec:
  replicas: 1
  template: {spec: {containers: [
    {name: main, image: "registry.example.com/main:1", args: [--a, --b]},
    {name: gone, image: "registry.example.com/gone:1"}]}}
`

const deploymentAfter = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: sea, annotations: {a: one, b/c~d: new}}
spec:
  template: {spec: {containers: [
    {name: first, image: "registry.example.com/first:1"},
    {name: main, image: "registry.example.com/main:2", args: [--a, --c, --d]}]}}
`

// TestDiff: what differs is told field by field, containers by their names, images apart; what has another name in the
// new version is compared where one goes and one comes.
func TestDiff(t *testing.T) {
	t.Parallel()
	role := func(name, verb string) planreview.Object {
		return object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: `+name+
			`, namespace: sea}, rules: [{apiGroups: [""], resources: [pods], verbs: [`+verb+`]}]}`)
	}
	config := func(name string) planreview.Object {
		return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, namespace: sea}}`)
	}
	changes, err := planreview.Diff(
		[]planreview.Object{role("a-1", "get"), object(t, deploymentBefore), config("same"), config("p"), config("q")},
		[]planreview.Object{role("a-2", "list"), object(t, deploymentAfter), config("same"), config("r")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		was := ""
		if c.Was != nil {
			was = c.Was.Name
		}
		got = append(got, strings.Join([]string{c.Change, c.Area, c.Of().GVK.Kind, was + "/" + c.Of().Name}, " "))
		for _, f := range c.Fields {
			got = append(got, "  "+f.Path+" "+string(f.Was)+" -> "+string(f.Is))
		}
		for _, i := range c.Images {
			got = append(got, "  image "+i.Container+" "+i.Was+" -> "+i.Is)
		}
	}
	want := `Changed RBAC Role a-1/a-2
  /metadata/name "a-1" -> "a-2"
  /rules/0/verbs/0 "get" -> "list"
Changed Workload Deployment web/web
  /metadata/annotations/b~1c~0d "old" -> "new"
  /spec/replicas 1 -> 
  /spec/template/spec/containers/0  -> {"image":"registry.example.com/first:1","name":"first"}
  /spec/template/spec/containers/1 {"image":"registry.example.com/gone:1","name":"gone"} -> 
  /spec/template/spec/containers/1/args/1 "--b" -> "--c"
  /spec/template/spec/containers/1/args/2  -> "--d"
  /spec/template/spec/containers/1/image "registry.example.com/main:1" -> "registry.example.com/main:2"
  image first  -> registry.example.com/first:1
  image gone registry.example.com/gone:1 -> 
  image main registry.example.com/main:1 -> registry.example.com/main:2
Added Other ConfigMap /r
Removed Other ConfigMap p/p
Removed Other ConfigMap q/q`
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Error(diff)
	}
}

// TestUnified: the text is one that git applies: to what is installed it gives what will be.
func TestUnified(t *testing.T) {
	t.Parallel()
	unified(t, object(t, deploymentBefore), object(t, deploymentAfter),
		"--- a/apps/Deployment/sea/web\n+++ b/apps/Deployment/sea/web\n@@ ")
	// Differences near to each other, then one far behind: the numbers of lines count on.
	long := func(other ...int) planreview.Object {
		var b strings.Builder
		for i := range 60 {
			value := "same"
			if slices.Contains(other, i) {
				value = "other"
			}
			fmt.Fprintf(&b, "  k%02d: %s\n", i, value)
		}
		return object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"+b.String())
	}
	unified(t, long(), long(6, 10, 30, 34, 58), "--- a/core/ConfigMap/a\n")
}

// unified has git, which every machine with this repository has, make of one object the other one.
func unified(t *testing.T, was, is planreview.Object, head string) {
	t.Helper()
	changes, err := planreview.Diff([]planreview.Object{was}, []planreview.Object{is})
	if err != nil || len(changes) != 1 {
		t.Fatal(err, changes)
	}
	c := changes[0]
	text, err := c.Unified()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, head) {
		t.Errorf("got %s", text)
	}
	dir := t.TempDir()
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "--- a/"), "\n")
	file := filepath.Join(dir, filepath.FromSlash(name))
	before, err := yaml.JSONToYAML(c.Was.Shown)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, before, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "apply", "--verbose")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(text)
	said, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(said), "offset") {
		t.Fatalf("git apply: %v: %s\n%s", err, said, text)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.JSONToYAML(c.Is.Shown)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(after)); diff != "" {
		t.Error(diff)
	}
}

// TestBounds: what is too large is counted, never silently left out.
func TestBounds(t *testing.T) {
	t.Parallel()
	many := func(value string) planreview.Object {
		var b strings.Builder
		for i := range planreview.MaxFields + 7 {
			b.WriteString("  k" + strings.Repeat("x", i) + ": " + value + "\n")
		}
		return object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"+b.String())
	}
	changes, err := planreview.Diff([]planreview.Object{many("a")}, []planreview.Object{many("b")})
	if err != nil || len(changes) != 1 || len(changes[0].Fields) != planreview.MaxFields || changes[0].More != 7 {
		t.Errorf("%v, %+v", err, changes)
	}
	large := func(value string) planreview.Object {
		return object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: "+
			strings.Repeat(value, planreview.MaxValue)+"}}")
	}
	changes, err = planreview.Diff([]planreview.Object{large("a")}, []planreview.Object{large("b")})
	if err != nil || len(changes) != 1 || !changes[0].Fields[0].Large || changes[0].Fields[0].Was != nil {
		t.Errorf("%v, %+v", err, changes)
	}
}

// TestUnifiedEndsSoon: what a publisher writes does not decide how long a difference takes. Lists of few values that
// repeat are those in which every line equals thousands of the other form; lines that alternate between what is common
// and what is not are those in which each common one is found by itself. Work that grows with the square of the lines
// lasts for minutes, and the test ends by its own bound.
func TestUnifiedEndsSoon(t *testing.T) {
	t.Parallel()
	const elements, values = 150_000, 150
	list := func(line func(i int) string) planreview.Object {
		var b strings.Builder
		b.WriteString("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"list\":[\"\"")
		for i := range elements {
			fmt.Fprintf(&b, ",%q", line(i))
		}
		b.WriteString("]}")
		return object(t, b.String())
	}
	for name, line := range map[string][2]func(i int) string{
		"values that repeat": {
			func(i int) string { return fmt.Sprint("v", i%values) },
			func(i int) string { return fmt.Sprint("v", i*7%values) },
		},
		"one common line, one that is not": {
			func(i int) string { return fmt.Sprint("a"[i%2:], i) },
			func(i int) string { return fmt.Sprint("b"[i%2:], i) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, is := list(line[0]), list(line[1])
			c := planreview.Change{Was: &was, Is: &is}
			done := make(chan error, 1)
			go func() {
				text, err := c.Unified()
				if err == nil && !strings.Contains(text, "\n@@ ") {
					err = fmt.Errorf("no difference: %.200s", text)
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("a difference takes longer than a minute")
			}
		})
	}
}
