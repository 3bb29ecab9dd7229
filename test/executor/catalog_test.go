package executor_test

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// realOperators is how many operators of the install set are brought to Succeeded, unless
// CHANDLER_REAL_OPERATORS says how many (50 at most); the first ten are the set of the measurements.
const (
	realOperators    = 10
	realOperatorsEnv = "CHANDLER_REAL_OPERATORS"
)

// setEntry is one line of the install set's set.json.
type setEntry struct {
	Package     string `json:"package"`
	HeadDir     string `json:"headDir"`
	PreviousDir string `json:"previousDir"`
	Upgrade     bool   `json:"upgrade"`
}

// TestRealOperators brings published operators to Succeeded on a real API server, one namespace each, and
// then those that are marked for it to their next version.
func TestRealOperators(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: small bundles stand for real ones")
	}
	set, contents := installSet(t)
	set = set[:min(len(set), wanted(t))]
	b := newBed(t)
	b.masters(t)
	b.start(b.config("one"))
	await(t, "the executor", func(ctx context.Context) error { return b.heldIn(ctx, 1) })
	first := func(e setEntry) string {
		if e.Upgrade {
			return e.PreviousDir
		}
		return e.HeadDir
	}
	started := time.Now()
	installed := map[string]string{} // CSV by package
	for _, e := range set {
		installed[e.Package] = b.wantReal(t, e, contents[first(e)], "")
	}
	for ns, name := range installed {
		b.awaitCSV(ns, name, reached("Succeeded"))
	}
	t.Logf("%d operators Succeeded in %s", len(set), time.Since(started).Round(time.Millisecond))
	started = time.Now()
	upgraded := map[string]string{}
	for _, e := range set {
		if e.Upgrade {
			upgraded[e.Package] = b.wantReal(t, e, contents[e.HeadDir], installed[e.Package])
		}
	}
	for ns, name := range upgraded {
		b.awaitCSV(ns, name, reached("Succeeded"))
		b.awaitCSV(ns, installed[ns], func(r protocol.CSVReport) bool { return r.Removed })
	}
	t.Logf("%d operators upgraded in %s", len(upgraded), time.Since(started).Round(time.Millisecond))
}

// masters gives the nodes the label by which one of the operators chooses them.
func (b *bed) masters(t *testing.T) {
	t.Helper()
	nodes, err := b.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	patch := []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}`)
	for _, n := range nodes.Items {
		_, err := b.kube.CoreV1().Nodes().Patch(t.Context(), n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
	}
}

func wanted(t *testing.T) int {
	t.Helper()
	text := os.Getenv(realOperatorsEnv)
	if text == "" {
		return realOperators
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// wantReal asks for a bundle in the package's own namespace and returns the name of its CSV.
func (b *bed) wantReal(t *testing.T, e setEntry, c bundle.Content, replaces string) string {
	t.Helper()
	csv, err := c.CSV()
	must(t, err)
	b.targets(e.Package, csv)
	b.want(e.Package, b.plan(e.Package, e.Package, planned{content: c, replaces: replaces}))
	return csv.Name
}

// targets publishes a group that the operator supports.
func (b *bed) targets(ns string, csv bundle.CSV) {
	s := b.scope(ns)
	for _, targets := range [][]string{{ns}, {""}} {
		if render.CheckInstallModes(csv.Spec.InstallModes, ns, targets) == nil {
			s.OperatorGroup.Spec = events.OperatorGroupSpec{TargetNamespaces: targets}
			if targets[0] == "" {
				s.OperatorGroup.Spec.TargetNamespaces = nil
			}
			break
		}
	}
	b.publish(s)
}

// installSet reads the archive: the list, and the bundles by directory. Without the data the test is
// skipped, but in CI it fails.
func installSet(t *testing.T) ([]setEntry, map[string]bundle.Content) {
	t.Helper()
	root := os.Getenv("CHANDLER_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(root, "data", "install-set.tar.zst"))
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("real bundles are not here (CHANDLER_TESTDATA): %v", err)
	}
	must(t, err)
	defer func() { must(t, f.Close()) }()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28), zstd.WithDecoderConcurrency(1))
	must(t, err)
	defer z.Close()
	dirs := map[string][][]byte{}
	var set []setEntry
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		switch dir := path.Dir(h.Name); {
		case h.Typeflag != tar.TypeReg:
		case path.Base(h.Name) == "set.json":
			must(t, json.Unmarshal(body, &set))
		case path.Base(dir) == "manifests":
			dirs[path.Dir(dir)] = append(dirs[path.Dir(dir)], body)
		}
	}
	contents := map[string]bundle.Content{}
	for dir, raw := range dirs {
		c, err := bundle.FromManifests(raw)
		must(t, err)
		contents[strings.TrimPrefix(dir, "install-set/")] = c
	}
	return set, contents
}
