package bundles_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
)

// entry is one operator with two bundles, the second of which replaces the first along an edge of its catalog.
type entry struct {
	Package     string `json:"package"`
	HeadDir     string `json:"headDir"`     // inside the archive
	PreviousDir string `json:"previousDir"` // "" where the catalog has none
	Upgrade     bool   `json:"upgrade"`     // one of the twenty whose upgrade is measured

	shelf *shelf
	// lacks is a resource that the bundle's objects need and that no cluster of these tests has, as kind.version.group.
	lacks string
}

func (e entry) head(tb testing.TB) bundle.Content {
	tb.Helper()
	return e.shelf.bundle(tb, e.HeadDir)
}

func (e entry) previous(tb testing.TB) bundle.Content {
	tb.Helper()
	return e.shelf.bundle(tb, e.PreviousDir)
}

// first is what is installed before the upgrade.
func (e entry) first(tb testing.TB) bundle.Content {
	tb.Helper()
	if e.PreviousDir == "" {
		return e.head(tb)
	}
	return e.previous(tb)
}

// shelf holds the bundles of an archive, unpacked, and parses each when it is asked for.
type shelf struct {
	dir string
	mu  sync.Mutex
	got map[string]bundle.Content
}

// installSet unpacks the set of the measurements: its order is theirs.
func installSet(tb testing.TB) []entry {
	tb.Helper()
	dir := filepath.Join(catalogtest.Unpack(tb, catalogtest.InstallSet, nil), "install-set")
	raw, err := os.ReadFile(filepath.Join(dir, "set.json"))
	must(tb, err)
	var set []entry
	must(tb, json.Unmarshal(raw, &set))
	on := &shelf{dir: dir, got: map[string]bundle.Content{}}
	for i := range set {
		set[i].shelf = on
	}
	return set
}

// further are operators that the set of the measurements has no like of: they serve all namespaces only, convert
// their resources, or need an API that is not there.
func further() []entry {
	return []entry{
		{Package: "alloydb-omni-operator-certified", PreviousDir: "1.7.1", HeadDir: "1.8.0"},
		{Package: "appian-operator", PreviousDir: "v0.200.0", HeadDir: "0.205.0"},
		{Package: "cloud-native-postgresql", PreviousDir: "1.29.2", HeadDir: "1.30.0"},
		{Package: "cloudnative-pg", PreviousDir: "1.29.2", HeadDir: "1.30.0"},
		{Package: "dxoperator", PreviousDir: "1.0.77.3", HeadDir: "1.0.78"},
		{Package: "dxoperator-v2", PreviousDir: "2.0.87", HeadDir: "2.0.88"},
		{Package: "edb-hcp-operator", PreviousDir: "2.0.0", HeadDir: "2.1.0"},
		{Package: "f5-ai-security-operator", PreviousDir: "0.11.3", HeadDir: "0.11.4"},
		{Package: "hulft", PreviousDir: "10.3.0", HeadDir: "10.6.0"},
		{Package: "intel-device-plugins-operator", PreviousDir: "0.35.0", HeadDir: "0.36.0"},
		{Package: "minio-minkms-operator", PreviousDir: "2026.4.13102716", HeadDir: "2026.7.16235330"},
		{Package: "openshift-fusion-access-operator", PreviousDir: "1.1.1-1", HeadDir: "1.2.0-3"},
		{Package: "operator-certification-operator", HeadDir: "1.6.0"},
		{Package: "pg4k-pgd", PreviousDir: "1.2.0", HeadDir: "1.2.1"},
		{Package: "scaleops-operator", PreviousDir: "1.32.13", HeadDir: "1.33.6"},
		{Package: "trident-operator", PreviousDir: "26.2.1", HeadDir: "26.6.0"},
		{Package: "visionone-containersecurity", PreviousDir: "3.5.0", HeadDir: "3.5.1"},
		{
			Package: "airlock-microgateway", PreviousDir: "5.1.4", HeadDir: "5.1.5",
			lacks: "ServiceMonitor.v1.monitoring.coreos.com",
		},
		{
			Package: "amd-gpu-operator", PreviousDir: "1.5.1", HeadDir: "1.5.2",
			lacks: "PrometheusRule.v1.monitoring.coreos.com",
		},
		{
			Package: "habana-ai-operator", PreviousDir: "1.23.0-695", HeadDir: "1.24.0-1007",
			lacks: "ServiceMonitor.v1.monitoring.coreos.com",
		},
	}
}

// representative are the operators of a short campaign: every install mode but MultiNamespace, which none needs,
// permissions of both kinds, webhooks of all three kinds, all sorts of optional objects, fields that Kubernetes does
// not know, an API that is missing, and definitions that a later version drops.
func representative() []string {
	return []string{
		"gitlab-runner-operator", "elasticsearch-eck-operator-certified", "minio-object-store-operator",
		"infinibox-operator-certified", "stackable-kafka-operator", "hspc-operator", "appdynamics-operator",
		"victoriametrics-operator", "hulft", "intel-device-plugins-operator", "habana-ai-operator",
		"stackable-commons-operator",
	}
}

// campaignSet returns the operators of the whole campaign, or of the short one.
func campaignSet(tb testing.TB, whole bool) []entry {
	tb.Helper()
	more := further()
	wanted := func(e entry) bool { return whole || slices.Contains(representative(), e.Package) }
	more = slices.DeleteFunc(more, func(e entry) bool { return !wanted(e) })
	kept := map[string]bool{}
	for i, e := range more {
		if e.PreviousDir != "" {
			more[i].PreviousDir = e.Package + "/" + e.PreviousDir
		}
		more[i].HeadDir = e.Package + "/" + e.HeadDir
		kept[more[i].PreviousDir], kept[more[i].HeadDir] = true, true
	}
	dir := catalogtest.Unpack(tb, catalogtest.CertifiedBundles420, func(path string) bool {
		at, _, ok := strings.Cut(path, "/manifests/")
		return ok && kept[at]
	})
	on := &shelf{dir: dir, got: map[string]bundle.Content{}}
	for i := range more {
		more[i].shelf = on
	}
	set := slices.DeleteFunc(installSet(tb), func(e entry) bool { return !wanted(e) })
	return append(set, more...)
}

// bundle reads the manifests of a bundle directory.
func (s *shelf) bundle(tb testing.TB, dir string) bundle.Content {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.got[dir]; ok {
		return c
	}
	manifests := filepath.Join(s.dir, dir, "manifests")
	files, err := os.ReadDir(manifests)
	must(tb, err)
	var raw [][]byte
	for _, f := range files {
		body, err := os.ReadFile(filepath.Join(manifests, f.Name()))
		must(tb, err)
		raw = append(raw, body)
	}
	c, err := bundle.FromManifests(raw)
	must(tb, err)
	s.got[dir] = c
	return c
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
