package load_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// edges writes a channel as "head: v3>v2-v1" for v3 replaces v2 and skips v1, in the order of the entries.
func edges(c catalog.Channel) string {
	var out []string
	for _, e := range c.Entries {
		s := strings.TrimPrefix(e.Name, "buoy.v")
		if e.Replaces != "" {
			s += ">" + strings.TrimPrefix(e.Replaces, "buoy.v")
		}
		for _, skip := range e.Skips {
			s += "-" + strings.TrimPrefix(skip, "buoy.v")
		}
		if e.SkipRange != "" {
			s += "~" + e.SkipRange
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// versionTree is package buoy in the community layout: the channels of each version, and what its CSV says.
func versionTree(ci string, bundles map[string]string) files {
	out := files{}
	for version, more := range bundles {
		joins, spec, _ := strings.Cut(more, "|")
		for name, text := range directory(version, manifestCSV("buoy.v"+version, version, spec), channels(joins), nil) {
			out["operators/"+name] = text
		}
	}
	delete(out, "operators/buoy/ci.yaml")
	if ci != "" {
		out["operators/buoy/ci.yaml"] = ci
	}
	return out
}

// TestGraphModes proves the three modes of ci.yaml in the community layout (R-CAT-75).
func TestGraphModes(t *testing.T) {
	t.Parallel()
	loose := map[string]string{"1.0.0": "a,b", "1.0.1": "a", "1.0.2": "a,b", "1.1.0": "a", "1.1.1": "a,b", "2.0.0": "a"}
	linked := map[string]string{
		"1.0.0": "a", "1.1.0": "b|  replaces: buoy.v1.0.0\n",
		"1.2.0": "b|  replaces: buoy.v1.0.0\n  skips: [buoy.v1.1.0]\n",
	}
	for _, c := range []struct {
		name, ci string
		bundles  map[string]string
		a, b     string
		warns    string
	}{
		{"absent means replaces", "", linked, "1.0.0", "1.0.0 1.1.0>1.0.0 1.2.0>1.0.0-1.1.0", ""},
		{
			"other keys", "reviewers: [a]\nfbc: {enabled: true}\n", linked, "1.0.0",
			"1.0.0 1.1.0>1.0.0 1.2.0>1.0.0-1.1.0", "",
		},
		{"replaces", "updateGraph: replaces-mode\n", linked, "1.0.0", "1.0.0 1.1.0>1.0.0 1.2.0>1.0.0-1.1.0", ""},
		{"null", "updateGraph:\n", linked, "1.0.0", "1.0.0 1.1.0>1.0.0 1.2.0>1.0.0-1.1.0", ""},
		{
			"semver", "---\nupdateGraph: semver-mode\n", loose,
			"1.0.0 1.0.1>1.0.0 1.0.2>1.0.1 1.1.0>1.0.2 1.1.1>1.1.0 2.0.0>1.1.1", "1.0.0 1.0.2>1.0.0 1.1.1>1.0.2", "",
		},
		{
			"skippatch", "updateGraph: semver-skippatch-mode\n", loose,
			"1.0.0 1.0.1 1.0.2-1.0.1-1.0.0 1.1.0 1.1.1>1.0.2-1.1.0 2.0.0>1.1.1", "1.0.0 1.0.2-1.0.0 1.1.1>1.0.2", "",
		},
		{
			"semver passes over what CSVs replace", "updateGraph: semver-mode\n", linked, "1.0.0", "1.1.0 1.2.0>1.1.0",
			"",
		},
		{
			"pre-releases", "updateGraph: semver-skippatch-mode\n",
			map[string]string{"1.0.0-rc.2": "a", "1.0.0-rc.10": "a", "1.0.0": "a", "0.9.0": "a"},
			"0.9.0 1.0.0>0.9.0-1.0.0-rc.10-1.0.0-rc.2 1.0.0-rc.10 1.0.0-rc.2", "", "",
		},
		{
			"unknown", "\nupdateGraph: newest\n", linked, "1.0.0", "1.0.0 1.1.0>1.0.0 1.2.0>1.0.0-1.1.0",
			"operators/buoy/ci.yaml:2:14: warning R-CAT-75",
		},
		{
			"of another form", "updateGraph: [a]\n", linked, "1.0.0", "1.0.0 1.1.0>1.0.0 1.2.0>1.0.0-1.1.0",
			"operators/buoy/ci.yaml:1:14: warning R-CAT-75",
		},
		{"broken", "updateGraph: {\n", linked, "1.0.0", "1.0.0 1.1.0>1.0.0 1.2.0>1.0.0-1.1.0", "warning R-CAT-75"},
		{
			"no order", "updateGraph: semver-mode\n",
			map[string]string{"1.0.0+a": "a", "1.0.0+b": "a"},
			"1.0.0+a 1.0.0+b>1.0.0+a", "", "warning R-CAT-75: the versions of",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := loadFiles(t, versionTree(c.ci, c.bundles))
			if got.Err() != nil || len(got.Packages) != 1 {
				t.Fatalf("%d packages, findings:\n%s", len(got.Packages), lines(got))
			}
			a, _ := got.Packages[0].Channel("a")
			b, _ := got.Packages[0].Channel("b")
			if edges(a) != c.a || edges(b) != c.b {
				t.Errorf("channels\n  %s\n  %s\nwant\n  %s\n  %s", edges(a), edges(b), c.a, c.b)
			}
			if c.warns == "" && strings.Contains(lines(got), "warning") || !strings.Contains(lines(got), c.warns) {
				t.Errorf("want the warning %q, findings:\n%s", c.warns, lines(got))
			}
		})
	}
}

// TestSkipPatchMovesEverybody proves that with semver-skippatch every older version gets to the head, by
// one step a minor version (R-CAT-75, R-GRA-7).
func TestSkipPatchMovesEverybody(t *testing.T) {
	t.Parallel()
	bundles := map[string]string{}
	for minor := range 4 {
		for patch := range 3 {
			bundles[fmt.Sprintf("1.%d.%d", minor, patch)] = "a"
		}
	}
	p := loadFiles(t, versionTree("updateGraph: semver-skippatch-mode\n", bundles)).Packages[0]
	c, _ := p.Channel("a")
	g, err := catalog.NewGraph(c)
	if err != nil {
		t.Fatal(err)
	}
	if d := g.Dead(p.Versions()); len(d.Cut) > 0 || g.Head().Name != "buoy.v1.3.2" {
		t.Errorf("head %s, dead ends %+v", g.Head().Name, d)
	}
	if w := g.NextPath("buoy.v1.0.1", "1.0.1", p.Versions()); !w.ReachesHead ||
		names(w.Steps) != "buoy.v1.0.2 buoy.v1.1.2 buoy.v1.2.2 buoy.v1.3.2" {
		t.Errorf("path from 1.0.1: %+v", w)
	}
}

// legacyTree is package buoy in the package-manifest layout.
func legacyTree(manifest string, bundles map[string]string) files {
	out := files{"old/buoy/buoy.package.yaml": manifest, "old/buoy/README.md": "prose"}
	for version, spec := range bundles {
		dir := "old/buoy/" + version + "/"
		out[dir+"buoy.clusterserviceversion.yaml"] = manifestCSV("buoy.v"+version, version, spec)
		out[dir+
			"buoys.crd.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: " +
			"{name: buoys.sea.test}\n"
	}
	return out
}

// TestPackageManifests proves that the legacy layout is read and converted (R-CAT-76, and why Chandler
// differs there from OLM).
func TestPackageManifests(t *testing.T) {
	t.Parallel()
	const manifest = "#! package-manifest\npackageName: buoy\nchannels:\n- name: fast\n  currentCSV: buoy.v1.2.0\n- " +
		"{name: steady, currentCSV: buoy.v1.1.0}\ndefaultChannel: steady\n"
	bundles := map[string]string{
		"1.0.0": "",
		"1.1.0": "  replaces: buoy.v1.0.0\n  customresourcedefinitions: {owned: [{name: buoys.sea.test, version: v1, " +
			"kind: Buoy}]}\n", "1.1.1": "  replaces: buoy.v1.1.0\n",
		"1.2.0": "  replaces: buoy.v1.1.0\n  skips: [buoy.v1.1.1]\n",
	}
	got := loadFiles(t, legacyTree(manifest, bundles))
	if got.Err() != nil || len(got.Packages) != 1 || strings.Contains(lines(got), "warning") {
		t.Fatalf("%d packages, findings:\n%s", len(got.Packages), lines(got))
	}
	p := got.Packages[0]
	fast, _ := p.Channel("fast")
	steady, _ := p.Channel("steady")
	if p.DefaultChannel != "steady" || edges(fast) != "1.0.0 1.1.0>1.0.0 1.1.1>1.1.0 1.2.0>1.1.0-1.1.1" ||
		edges(steady) != "1.0.0 1.1.0>1.0.0" {
		t.Errorf("default %s, fast %s, steady %s", p.DefaultChannel, edges(fast), edges(steady))
	}
	b, _ := p.Bundle("buoy.v1.1.0")
	if api, err := b.Provides(); err != nil || len(api) != 1 || b.Content == "" || b.Version != "1.1.0" {
		t.Errorf("bundle %+v, %v", b, err)
	}
	if !strings.Contains(lines(got), "old/buoy/buoy.package.yaml: info R-CAT-76") {
		t.Errorf("nobody is told of the format:\n%s", lines(got))
	}
	// The same bundles as bundle directories are the same package.
	dirs := files{}
	joins := map[string]string{"1.0.0": "fast,steady", "1.1.0": "fast,steady", "1.1.1": "fast", "1.2.0": "fast"}
	for v, spec := range bundles {
		maps.Copy(dirs, directory(v, manifestCSV("buoy.v"+v, v, spec),
			channels(joins[v])+"  operators.operatorframework.io.bundle.channel.default.v1: steady\n", nil))
		dirs["buoy/"+v+
			"/manifests/buoys.crd.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: " +
			"CustomResourceDefinition\nmetadata: {name: buoys.sea.test}\n"
	}
	if a, b := digestOf(t, legacyTree(manifest, bundles)), digestOf(t, dirs); a != b {
		t.Errorf("converted it is %s, as bundle directories %s", a, b)
	}
}

// TestSickPackageManifests proves what is told of package manifests that are not whole.
func TestSickPackageManifests(t *testing.T) {
	t.Parallel()
	good := map[string]string{"1.0.0": ""}
	for _, c := range []struct{ name, manifest, says string }{
		{
			"currentCSV of nobody",
			"packageName: buoy\nchannels:\n- {name: a, currentCSV: buoy.v1.0.0}\n- {name: b, currentCSV: buoy.v9.0.0}\n", "buoy.package.yaml:4:25: warning R-CAT-76: channel \"b\"",
		},
		{
			"channel without name",
			"packageName: buoy\nchannels:\n- {name: a, currentCSV: buoy.v1.0.0}\n- {currentCSV: buoy.v1.0.0}\n",
			"buoy.package.yaml:4:16: warning R-CAT-76: a channel",
		},
		{
			"default channel of nobody",
			"packageName: buoy\ndefaultChannel: c\nchannels: [{name: a, currentCSV: buoy.v1.0.0}]\n",
			"buoy.package.yaml:2:17: warning R-CAT-31",
		},
	} {
		got := loadFiles(t, legacyTree(c.manifest, good))
		if got.Err() != nil || len(got.Packages) != 1 || len(got.Packages[0].Channels) != 1 ||
			!strings.Contains(lines(got), c.says) {
			t.Errorf("%s: want %q, findings:\n%s", c.name, c.says, lines(got))
		}
	}
	// What is no package manifest is read as any other file.
	for _, manifest := range []string{
		"a: [\n", "schema: olm.package\nname: x\n", "packageName: buoy\n",
		"packageName: [buoy]\nchannels: [a]\n",
	} {
		if got := loadFiles(t, legacyTree(manifest, good)); got.Err() == nil {
			t.Errorf("%q passes", manifest)
		}
	}
}
