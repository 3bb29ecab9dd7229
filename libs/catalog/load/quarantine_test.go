package load_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

func lenient(t interface{ Fatal(...any) }, f files) *load.Catalog {
	c, err := load.Load(f.fs(), load.Options{Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// named is the smallest valid package under another name.
func named(name string) string { return strings.ReplaceAll(valid, "buoy", name) }

func packages(c *load.Catalog) string {
	var out []string
	for _, p := range c.Packages {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

// TestQuarantine proves what a lenient load leaves out, serves, and refuses whole.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	const broken = "a: [b\n"
	two := files{"buoy/catalog.yaml": valid, "tide/catalog.yaml": named("tide")}
	for _, c := range []struct {
		name               string
		in                 files
		out, served, fatal string // fatal is a part of what Err says
	}{
		{
			"a rule of one package", tree(two, files{"buoy/more.yaml": another("buoy.v2.0.0", "2.0.0")}), "buoy",
			"tide", "",
		},
		{
			"two packages", tree(two, files{
				"buoy/more.yaml": pkg,
				"tide/x":         "schema: olm.bundle\npackage: tide\nname: tide.v2\n", "wave/c": named("wave"),
			}), "buoy tide",
			"wave", "",
		},
		{"all packages", files{"a": valid + pkg}, "buoy", "", "R-CAT-21"},
		{
			"a blob that cannot be decoded",
			tree(two, files{"tide/x": "schema: olm.channel\npackage: tide\nname: x\nentries: {}\n"}), "tide", "buoy",
			"",
		},
		{"a file in the package's directory", tree(two, files{"buoy/deep/er.yaml": broken}), "buoy", "tide", ""},
		{"a document in the package's file", tree(two, files{"buoy/catalog.yaml": valid + broken}), "buoy", "tide", ""},
		{
			"a blob that names no package",
			tree(two, files{"buoy/x": "schema: olm.channel\nname: x\nentries: [{name: y}]\n"}), "buoy", "tide", "",
		},
		{
			"a directory of which nothing can be read", tree(two, files{"wave/catalog.yaml": broken}), "wave",
			"buoy tide", "",
		},
		{"a file beside many packages", tree(two, files{"README": "prose"}), "", "buoy tide", "R-CAT-6"},
		{
			"a directory of several packages",
			files{"all/a.yaml": valid + named("tide"), "all/b.yaml": broken},
			"",
			"buoy tide", "R-CAT-1",
		},
		{"a directory of nobody, in a tree of files", files{
			"a.yaml": valid, "b.yaml": named("tide"),
			"x/c.yaml": broken,
		}, "", "buoy tide", "R-CAT-1"},
		{
			"a file of one package, in a tree of files",
			files{"a.yaml": valid + broken, "b.yaml": named("tide")},
			"buoy",
			"tide", "",
		},
		{
			"a file of nobody, in a tree of files",
			files{"a.yaml": valid, "b.yaml": named("tide"), "c.yaml": broken},
			"",
			"buoy tide", "R-CAT-1",
		},
		{"a file of one of a package's files", files{
			"a.yaml": valid + broken, "c.yaml": named("tide"),
			"b.yaml": "schema: olm.deprecations\npackage: buoy\nentries: []\n",
		}, "", "buoy tide", "R-CAT-1"},
		{
			"a slip of the pen", tree(two, files{"buoy/x": "schema: olm.deprecations\npackage: bouy\nentries: []\n"}),
			"bouy buoy", "tide", "",
		},
		{"an orphan beside many", files{"a": valid + named("tide") +
			"schema: olm.deprecations\npackage: bouy\nentries: []\n"}, "bouy", "buoy tide", ""},
		{"a limit that ended the walk", tree(two, files{"buoy/" + strings.Repeat("a/", catalog.MaxDirectoryDepth+2) +
			"x": valid}), "", "buoy", "R-CAT-1"},
		{"warnings", files{"a": strings.ReplaceAll(valid, "buoy.v1.0.0", "buoy-1")}, "", "buoy", ""},
		{"nothing", files{"a": ""}, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := lenient(t, c.in)
			var out []string
			for _, q := range got.Quarantined {
				out = append(out, q.Package)
				if q.Findings == 0 || q.First.Severity != catalog.SeverityError ||
					!slices.Contains(got.Findings, q.First) {
					t.Errorf("quarantined without a reason: %+v", q)
				}
			}
			if strings.Join(out, " ") != c.out || packages(got) != c.served {
				t.Errorf("quarantined %v, served %s; want %s and %s; findings:\n%s", out, packages(got), c.out,
					c.served, lines(got))
			}
			if err := got.Err(); (err == nil) != (c.fatal == "") || err != nil &&
				!strings.Contains(err.Error(), c.fatal) {
				t.Errorf("Err() = %v, want %q", err, c.fatal)
			}
			if len(got.Digests()) != len(got.Packages) {
				t.Errorf("%d digests of %d packages", len(got.Digests()), len(got.Packages))
			}
			if strict := loadFiles(t, c.in); (strict.Err() == nil) != (strict.Findings.Errors() == 0) {
				t.Errorf("strict: %v with %d errors", strict.Err(), strict.Findings.Errors())
			}
		})
	}
}

// breakages are ways to break a package in its own directory.
func breakages() map[string]string {
	return map[string]string{
		"broken.yaml": "a: [b\n",
		"prose.md":    "Hello.",
		"twice.yaml":  "schema: olm.package\nname: NAME\ndefaultChannel: steady\n",
		"loose.yaml": "schema: olm.bundle\npackage: NAME\nname: NAME.v9\nimage: x\nproperties: [{type: " +
			"olm.package, value: {packageName: NAME, version: 9.0.0}}]\n",
		"orphan.yaml": "schema: olm.channel\npackage: nobody\nname: c\nentries: [{name: x}]\n",
		"form.json":   `{"schema": "olm.channel", "package": "NAME", "name": "c", "entries": 1}`,
		"cut.json":    `{"schema": "olm.channel", "package": "NAME", "na`,
		"homeless":    "schema: olm.deprecations\nentries: []\n",
		"binary.bin":  "\x00\xff\x01",
		"constraint": "schema: olm.bundle\npackage: NAME\nname: NAME.v1.0.0\nproperties: [{type: olm.constraint, " +
			"value: {x: 1}}]\n",
		"a/b/deep.yml": "schema: 1\n",
	}
}

// TestQuarantineLeavesOthersAlone proves that breaking one random package of a random catalog, in a random
// way, changes nothing of the others where the catalog is loaded leniently.
func TestQuarantineLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	ways := slices.Sorted(maps.Keys(breakages()))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "packages")
		in := files{}
		for i := range n {
			name := fmt.Sprintf("p%d", i)
			whole := named(name)
			for v := range rapid.IntRange(0, 3).Draw(t, "versions") {
				older := fmt.Sprintf("%s.v0.%d.0", name, v)
				whole += strings.ReplaceAll(another(older, fmt.Sprintf("0.%d.0", v)), "buoy", name) +
					fmt.Sprintf("schema: olm.channel\npackage: %s\nname: c%d\nentries: [{name: %s}]\n---\n", name, v,
						older)
			}
			docs := strings.SplitAfter(whole, "---\n")
			for f, doc := range docs {
				file := fmt.Sprintf("%s/%d.yaml", name, rapid.IntRange(0, f).Draw(t, "file"))
				in[file] += doc
			}
		}
		before := lenient(t, in)
		if before.Err() != nil || len(before.Packages) != n {
			t.Fatalf("not a valid catalog: %s", lines(before))
		}
		sick := fmt.Sprintf("p%d", rapid.IntRange(0, n-1).Draw(t, "sick"))
		way := rapid.SampledFrom(ways).Draw(t, "way")
		in[sick+"/"+way] = strings.ReplaceAll(breakages()[way], "NAME", sick)
		after := lenient(t, in)
		want := before.Digests()
		delete(want, sick)
		if got := after.Digests(); !maps.Equal(got, want) || after.Err() != nil {
			t.Fatalf("%s in %s: %v, %v; findings:\n%s", way, sick, slices.Sorted(maps.Keys(got)), after.Err(),
				lines(after))
		}
		if !slices.ContainsFunc(after.Quarantined, func(q load.Quarantine) bool { return q.Package == sick }) {
			t.Fatalf("%s is not told of: %+v", sick, after.Quarantined)
		}
	})
}
