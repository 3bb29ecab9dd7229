package load_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// directory returns the files of one bundle directory of package buoy.
func directory(version, csv, annotations string, more files) files {
	dir := "buoy/" + version + "/"
	out := files{
		dir + "manifests/csv.yaml": csv,
		dir +
			"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.package.v1: buoy\n" +
			annotations,
		dir + "tests/scorecard/config.yaml":  "kind: Configuration\n",
		dir + "bundle.Dockerfile":            "FROM scratch\n",
		"buoy/Makefile":                      "all:\n\ttrue\n",
		"buoy/ci.yaml":                       "fbc: {enabled: true}\n",
		"buoy/catalog-templates/v4.yaml":     "schema: olm.template.basic\n",
		dir + "manifests/.hidden":            "nothing: here",
		dir + "metadata/unknown-to-us.notes": "prose",
	}
	for name, text := range more {
		out[dir+name] = text
	}
	return out
}

func channels(list string) string {
	return "  operators.operatorframework.io.bundle.channels.v1: " + list + "\n"
}

func tree(all ...files) files {
	out := files{}
	for _, f := range all {
		maps.Copy(out, f)
	}
	return out
}

// TestSynthesised proves how bundle directories make a package: channels from annotations, shared
// replacement graph, edges from the CSV, the default channel and the description of its newest bundle
// (R-CAT-50, 55, 56, 57, 58, R-GRA-3, R-GRA-4).
func TestSynthesised(t *testing.T) {
	t.Parallel()
	c := loadFiles(t, tree(
		directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", ""), channels("steady"), nil),
		directory("1.1.0", manifestCSV("buoy.v1.1.0", "1.1.0", "  replaces: buoy.v1.0.0\n  skips: [buoy.v1.0.1]\n"),
			channels("steady,fast"), nil),
		directory("1.2.0", strings.Replace(manifestCSV("buoy.v1.2.0", "1.2.0",
			"  replaces: buoy.v1.1.0\n  description: Newest.\n"), "{name: buoy.v1.2.0}",
			"{name: buoy.v1.2.0, annotations: {olm.skipRange: '<1.2.0', olm.properties: "+
				"'[{\"type\":\"x.test\",\"value\":1}]'}}", 1), channels("fast")+
			"  operators.operatorframework.io.bundle.channel.default.v1: fast\n  other: true\n",
			files{
				"metadata/dependencies.yaml": "dependencies:\n- {type: olm.package, value: {packageName: tide, " +
					"version: '>1.0.0'}}\n- {type: olm.gvk, value: {group: sea.test, version: v1, kind: Gauge}}\n- " +
					"{type: olm.constraint, value: {gvk: {group: sea.test, version: v1, kind: Gauge}}}\n",
				"metadata/properties.yaml": "properties:\n- {type: sea.test/grade, value: {a: yes}}\n",
			}),
	))
	if err := c.Findings.Err(); err != nil || len(c.Packages) != 1 {
		t.Fatalf("%v, %v", err, c.Findings)
	}
	p := c.Packages[0]
	if p.DefaultChannel != "fast" || p.Description != "Newest." || len(p.Channels) != 2 {
		t.Errorf("default channel %s, description %q", p.DefaultChannel, p.Description)
	}
	fast, _ := p.Channel("fast")
	g, err := catalog.NewGraph(fast)
	if err != nil {
		t.Fatal(err)
	}
	// 1.0.0 names no channel but steady; fast reaches it through what its members replace.
	if names(g.Ordered()) != "buoy.v1.2.0 buoy.v1.1.0 buoy.v1.0.0" || g.Head().SkipRange != "<1.2.0" {
		t.Errorf("fast: %s", names(g.Ordered()))
	}
	if e, _ := g.Entry("buoy.v1.1.0"); len(e.Skips) != 1 {
		t.Errorf("skips are lost: %+v", e)
	}
	b, _ := p.Bundle("buoy.v1.2.0")
	var got []string
	for _, pr := range b.Properties {
		got = append(got, pr.Type+"="+string(pr.Value))
	}
	want := `olm.constraint={"gvk":{"group":"sea.test","kind":"Gauge","version":"v1"}} olm.gvk.required={"group":"sea.test","kind":"Gauge","version":"v1"} ` +
		`olm.package={"packageName":"buoy","version":"1.2.0"} olm.package.required={"packageName":"tide","versionRange":"\u003e1.0.0"} sea.test/grade={"a":true} x.test=1`
	if strings.Join(got, " ") != want {
		t.Errorf("properties %s", strings.Join(got, " "))
	}
	if len(b.RelatedImages) != 1 || b.RelatedImages[0].Image != "registry.example.com/op:1" || b.Content == "" {
		t.Errorf("bundle %+v", b)
	}
}

// TestLeftOut proves that a bundle directory that makes no bundle is left out with a warning that names
// its place, and takes no other away (R-CAT-51, 52, 55).
func TestLeftOut(t *testing.T) {
	t.Parallel()
	good := directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", ""), channels("steady"), nil)
	csv := manifestCSV("buoy.v2.0.0", "2.0.0", "")
	for _, c := range []struct {
		name string
		in   files
		rule string
		says string
	}{
		{
			"no CSV", directory("2.0.0", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", channels("steady"),
				nil),
			"R-CAT-51", "0 ClusterServiceVersions",
		},
		{"no channel", directory("2.0.0", csv, "", nil), "R-CAT-52", "names no channel"},
		{
			"package name", tree(directory("2.0.0", csv, channels("steady"), nil),
				files{
					"buoy/2.0.0/metadata/annotations.yaml": "annotations:\n  " +
						"operators.operatorframework.io.bundle.package.v1: A_B\n" + channels("steady"),
				}), "R-CAT-20",
			"DNS-1123",
		},
		{"no package", tree(directory("2.0.0", csv, channels("steady"), nil),
			files{"buoy/2.0.0/metadata/annotations.yaml": "annotations: {}\n"}), "R-CAT-55", "package.v1"},
		{"other media type", directory("2.0.0", csv, channels("steady")+
			"  operators.operatorframework.io.bundle.mediatype.v1: helm+v3\n", nil), "R-CAT-55", "media type"},
		{
			"broken CSV", directory("2.0.0", csv+"a: [\n", channels("steady"), nil), "R-CAT-51",
			"0 ClusterServiceVersions",
		},
		{"an object without a name", directory("2.0.0", csv, channels("steady"),
			files{"manifests/b.yaml": "apiVersion: v1\nkind: Secret\n"}), "R-CAT-51", "metadata.name"},
		{"broken annotations", tree(directory("2.0.0", csv, "", nil),
			files{"buoy/2.0.0/metadata/annotations.yaml": "a: [\n"}), "R-CAT-55", "not YAML"},
		{
			"version", directory("2.0.0", manifestCSV("buoy.v2.0.0", "two", ""), channels("steady"), nil), "R-CAT-26",
			"no semantic version",
		},
		{"dependency", directory("2.0.0", csv, channels("steady"),
			files{
				"metadata/dependencies.yaml": "dependencies: [{type: olm.package, value: {packageName: x, version: " +
					"one}}]\n",
			}), "R-CAT-25", "range of versions"},
		{"same name", directory("2.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", "  description: other\n"),
			channels("steady"), nil), "R-CAT-24", "buoy/1.0.0"},
	} {
		got := loadFiles(t, tree(good, c.in))
		if got.Findings.Errors() > 0 || len(got.Packages) != 1 || len(got.Packages[0].Bundles) != 1 ||
			got.Packages[0].Bundles[0].Name != "buoy.v1.0.0" {
			t.Errorf("%s: the good bundle is not served: %s", c.name, lines(got))
		}
		found := false
		for _, f := range got.Findings {
			if f.Rule == "R-CAT-25" && f.Place() != "buoy/2.0.0/metadata/dependencies.yaml:1:23" {
				t.Errorf("%s: told at %s", c.name, f.Place())
			}
			found = found || f.Severity == catalog.SeverityWarning && f.Rule == c.rule &&
				strings.Contains(f.Message, c.says) && strings.HasPrefix(f.File, "buoy/2.0.0")
		}
		if !found {
			t.Errorf("%s: want %s with %q, got:\n%s", c.name, c.rule, c.says, lines(got))
		}
	}
}

// TestLenientAsOLM goes through what authors get wrong and OLM takes all the same: the bundle is served, a warning
// names the place, and who asks as an author is refused (R-CAT-51, R-CAT-52, R-CAT-55 … R-CAT-57).
func TestLenientAsOLM(t *testing.T) {
	t.Parallel()
	csv := manifestCSV("buoy.v2.0.0", "2.0.0", "")
	annotations := "annotations:\n  operators.operatorframework.io.bundle.package.v1: buoy\n" + channels("steady")
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	for name, c := range map[string]struct {
		more  files // below buoy/2.0.0
		place string
		says  string
		holds int // objects
	}{
		"a key twice": {
			files{"manifests/csv.yaml": csv + "status: {a: 1}\nstatus: {}\n"},
			"manifests/csv.yaml:9:1", "the last one counts", 1,
		},
		"a key twice, in another": {
			files{"manifests/b.yaml": secret + "data:\n  a: b\n  a: c\n"},
			"manifests/b.yaml:6:3", "the last one counts", 2,
		},
		"another CSV": {
			files{"manifests/z.yaml": manifestCSV("x.v1.0.0", "1.0.0", "")},
			"manifests/z.yaml", "another ClusterServiceVersion, x.v1.0.0", 1,
		},
		"a broken file": {
			files{"manifests/b.yaml": "a: [\n"},
			"manifests/b.yaml",
			"passed over, as OLM does", 1,
		},
		"a number that nobody holds": {
			files{"manifests/b.yaml": secret + "n: .inf\n"},
			"manifests/b.yaml",
			"passed over, as OLM does", 1,
		},
		"prose": {
			files{"manifests/README.md": "# Buoy\n\nAn operator: for buoys.\n"},
			"manifests/README.md", "no Kubernetes object", 1,
		},
		"no object": {files{"manifests/b.yaml": "a: b\n"}, "manifests/b.yaml", "no Kubernetes object", 1},
		"several in a file": {
			files{"manifests/b.yaml": secret + "---\n" + strings.Replace(secret, "x", "y", 1)},
			"manifests/b.yaml:5:1", "more than one document", 2,
		},
		"an object again": {
			files{"manifests/b.yaml": secret, "manifests/c.yaml": secret + "type: Opaque\n"},
			"manifests/b.yaml", "comes again", 2,
		},
		"words of YAML 1.1": {
			files{"manifests/b.yaml": secret + "x: {y: 1}\n"},
			"manifests/b.yaml:1", "YAML 1.1",
			2,
		},
		"annotations by content": {
			files{"metadata/annotations.yaml": "", "metadata/bundle.yml": annotations},
			"metadata/bundle.yml", "annotations.yaml", 1,
		},
		"annotations with a key twice": {
			files{"metadata/annotations.yaml": strings.Replace(
				annotations, "annotations:\n",
				"annotations:\n  operators.operatorframework.io.bundle.package.v1: tide\n", 1)},
			"metadata/annotations.yaml:3:3", "the last one counts", 1,
		},
		"broken dependencies": {
			files{"metadata/dependencies.yaml": "dependencies: [\n"},
			"metadata/dependencies.yaml",
			"passed over, as OLM does", 1,
		},
		"odd dependencies": {
			files{"metadata/dependencies.yaml": "dependencies: none\n"},
			"metadata/dependencies.yaml",
			"passed over, as OLM does", 1,
		},
		"odd properties": {
			files{"metadata/properties.yaml": "[]\n"},
			"metadata/properties.yaml",
			"passed over, as OLM does", 1,
		},
		"no CRD": {
			files{"manifests/csv.yaml": manifestCSV(
				"buoy.v2.0.0", "2.0.0",
				"  customresourcedefinitions: {owned: [{name: buoys.sea.test, version: v1, kind: Buoy}]}\n")},
			"",
			"owns CRDs that are not in its bundle", 1,
		},
	} {
		in := directory("2.0.0", csv, channels("steady"), c.more)
		for n, text := range in {
			if text == "" {
				delete(in, n)
			}
		}
		var kept []load.Content
		got, err := load.Load(in.fs(), load.Options{
			Workers: 1,
			Keep:    func(k load.Content) error { kept = append(kept, k); return nil },
		})
		if err != nil || got.Findings.Errors() > 0 || len(got.Packages) != 1 || len(got.Packages[0].Bundles) != 1 ||
			got.Packages[0].Bundles[0].Name != "buoy.v2.0.0" {
			t.Errorf("%s: not served: %v\n%s", name, err, lines(got))
			continue
		}
		if n := strings.Count(string(kept[0].Canonical), `"kind":`) - strings.Count(
			string(kept[0].Canonical), `"kind":"Buoy"`); n != c.holds {
			t.Errorf("%s: %d objects, want %d", name, n, c.holds)
		}
		where := strings.TrimSuffix("buoy/2.0.0/"+c.place, "/")
		told := slices.ContainsFunc(got.Findings, func(f catalog.Finding) bool {
			return f.Severity == catalog.SeverityWarning && strings.HasPrefix(f.Place(), where) &&
				strings.Contains(f.Message, c.says)
		})
		if !told {
			t.Errorf("%s: want %q at %s in\n%s", name, c.says, c.place, lines(got))
		}
		if got.Findings.Strict().Errors() == 0 {
			t.Errorf("%s: who asks as an author is not refused", name)
		}
	}
}

// TestSeveralHeads proves that bundles which nothing connects are put in order of version, that edges
// which authors gave stay, and that a warning says so.
func TestSeveralHeads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		bundles map[string]string // version to edges
		order   string
		skips   string // of the head
	}{
		{"two loose ones", map[string]string{"1.0.0": "", "1.1.0": ""}, "buoy.v1.1.0 buoy.v1.0.0", ""},
		{"ten before nine", map[string]string{"1.9.0": "", "1.10.0": ""}, "buoy.v1.10.0 buoy.v1.9.0", ""},
		{
			"two chains",
			map[string]string{
				"1.0.0": "", "1.0.1": "  replaces: buoy.v1.0.0\n", "2.0.0": "",
				"2.0.1": "  replaces: buoy.v2.0.0\n",
			},
			"buoy.v2.0.1 buoy.v2.0.0 buoy.v1.0.1 buoy.v1.0.0", "",
		},
		{
			"a tail that names a virtual node",
			map[string]string{"1.0.0": "", "2.0.0": "  replaces: buoy.v1.9.0\n"},
			"buoy.v2.0.0 buoy.v1.0.0", "buoy.v1.9.0",
		},
		{
			"between two versions",
			map[string]string{
				"1.0.0": "", "2.0.0": "  replaces: buoy.v1.0.0\n", "1.4.0": "",
				"1.5.0": "  replaces: buoy.v1.4.0\n",
			},
			"buoy.v2.0.0 buoy.v1.0.0", "buoy.v1.5.0 buoy.v1.4.0",
		},
	} {
		var dirs []files
		for v, edges := range c.bundles {
			dirs = append(dirs, directory(v, manifestCSV("buoy.v"+v, v, edges), channels("steady"), nil))
		}
		got := loadFiles(t, tree(dirs...))
		if got.Findings.Errors() > 0 || len(got.Packages) != 1 || got.Findings[0].Rule != "R-CAT-35" ||
			!strings.Contains(got.Findings[0].Message, "order of version") {
			t.Errorf("%s: findings:\n%s", c.name, lines(got))
			continue
		}
		g, err := catalog.NewGraph(got.Packages[0].Channels[0])
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if names(g.Ordered()) != c.order || strings.Join(g.Head().Skips, " ") != c.skips {
			t.Errorf("%s: order %s, head skips %v", c.name, names(g.Ordered()), g.Head().Skips)
		}
		for v := range c.bundles {
			if n := "buoy.v" + v; n != g.Head().Name && len(g.Successors(n, v)) == 0 {
				t.Errorf("%s: %s has no successor", c.name, n)
			}
		}
	}
}

// TestSynthesisedCycleWarns proves that a graph which nobody checked is served with a warning.
func TestSynthesisedCycleWarns(t *testing.T) {
	t.Parallel()
	c := loadFiles(t, tree(
		directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", "  replaces: buoy.v2.0.0\n"), channels("steady"), nil),
		directory("2.0.0", manifestCSV("buoy.v2.0.0", "2.0.0", "  replaces: buoy.v1.0.0\n"), channels("steady"), nil),
	))
	if c.Findings.Errors() > 0 || len(c.Packages) != 1 || c.Findings[0].Rule != "R-CAT-35" {
		t.Errorf("findings:\n%s", lines(c))
	}
}

// TestAdopted proves that a file-based package takes content, or whole bundles, from bundle directories
// of the same name, and that its own channels count.
func TestAdopted(t *testing.T) {
	t.Parallel()
	in := tree(
		directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", ""), channels("ignored"), nil),
		directory("1.1.0", manifestCSV("buoy.v1.1.0", "1.1.0", "  replaces: elsewhere\n"), channels("ignored"), nil),
		directory("9.0.0", manifestCSV("buoy.v9.0.0", "9.0.0", ""), channels("ignored"), nil),
		files{"buoy/catalog.yaml": pkg + oneBundle +
			"schema: olm.channel\npackage: buoy\nname: steady\nentries: [{name: buoy.v1.1.0, replaces: buoy.v1.0.0}, " +
			"{name: buoy.v1.0.0}]\n"},
	)
	c := loadFiles(t, in)
	if err := c.Findings.Err(); err != nil {
		t.Fatal(err)
	}
	p := c.Packages[0]
	if len(p.Channels) != 1 || len(p.Bundles) != 2 || p.Bundles[0].Image == "" || p.Bundles[0].Content == "" ||
		p.Bundles[1].Content == "" || p.Bundles[1].Version != "1.1.0" {
		t.Errorf("package %+v", p)
	}
	if got := strings.Join(rulesOf(c), ", "); !strings.Contains(got, "warning R-CAT-29") {
		t.Errorf("the directory that no channel names is not told: %s", got)
	}
}

func names(entries []catalog.Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}
