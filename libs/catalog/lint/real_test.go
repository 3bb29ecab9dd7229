package lint_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/lint"
)

// go test ./libs/catalog/lint -run TestRealBundles -update writes the golden file anew.
var update = flag.Bool("update", false, "write the golden file")

// few chooses some packages: the race detector makes all of them take minutes.
func few(path string) bool {
	return slices.ContainsFunc([]string{
		"anzo-operator", "bookkeeper-operator", "kubecost-operator",
		"nutanixcsioperator", "nvidia-network-operator", "stackable-hdfs-operator", "k8s-triliovault",
	},
		func(p string) bool { return strings.Contains("/"+path, "/"+p+"/") })
}

// TestRealBundles proves that linting published bundles finds what is listed and nothing more: how often,
// and the first of each (R-CAT-59). Each heading was looked at: the findings are right, or the check
// would be changed.
func TestRealBundles(t *testing.T) {
	t.Parallel()
	root := os.DirFS(catalogtest.Unpack(t, catalogtest.InstallSet, few))
	manifests, err := fs.Glob(root, "*/*/*/manifests")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%d bundles, %v", len(manifests), err)
	}
	count, first := map[string]int{}, map[string]string{}
	for _, m := range manifests {
		dir := path.Dir(m)
		sub, err := fs.Sub(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		b, err := lint.Read(sub)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, f := range lint.Check(b, lint.Options{Groups: lint.All()}) {
			if f.Line == 0 || f.Column == 0 {
				t.Errorf("%s: no place: %s", dir, f)
			}
			key := string(f.Severity) + " " + f.Rule
			count[key]++
			if count[key] == 1 {
				first[key] = fmt.Sprintf("%s/%s: %s", dir, f.Place(), f.Message)
			}
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# Lint of %d published bundles: how often, and the first\n", len(manifests))
	keys := make([]string, 0, len(count))
	for k := range count {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&out, "\n%s (%d)\n  %s\n", k, count[k], first[k])
	}
	const golden = "testdata/install-set.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("found\n%s\nwant\n%s", out.String(), want)
	}
}
