package load_test

import (
	"testing"
	"testing/fstest"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// FuzzLoad feeds arbitrary text as a catalog file, an ignore file and a manifest: loading must end
// without a panic, twice with the same outcome, and what it serves must have a digest and be decided
// by its graph (DESIGN D10).
func FuzzLoad(f *testing.F) {
	f.Add([]byte(valid), []byte("*.md"), []byte(manifestCSV("buoy.v1.0.0", "1.0.0", "")))
	f.Add([]byte(`{"schema":"olm.package","name":"a"}{"schema":"x"}`), []byte("**/*\n!*.yaml"), []byte("a: &a [*a]"))
	f.Add([]byte("a: &a {<<: *a}\n--- !!binary x\n...\n%YAML 1.2\n---\n- b"), []byte("\\"), []byte("{"))
	f.Add([]byte("schema: olm.channel\npackage: p\nname: c\nentries: [{name: a, replaces: a, skipRange: '>1 || x'}]"),
		[]byte("[a-"), []byte(""))
	f.Add(
		[]byte("schema: olm.bundle\npackage: p\nname: b\nproperties: [{type: olm.bundle.object, value: {data: e30=}}]"),
		[]byte("/"), []byte("[]"))
	f.Fuzz(func(t *testing.T, file, ignore, manifest []byte) {
		fsys := fstest.MapFS{
			"a/catalog":           {Data: file},
			"a/.indexignore":      {Data: ignore},
			"b/1.0.0/manifests/x": {Data: manifest},
			"b/1.0.0/metadata/annotations.yaml": {Data: []byte(
				"annotations: {operators.operatorframework.io.bundle.package.v1: b, " +
					"operators.operatorframework.io.bundle.channels.v1: c}")},
			"b/1.0.0/metadata/dependencies.yaml":      {Data: file},
			"b/1.0.0/metadata/properties.yaml":        {Data: manifest},
			"b/1.0.1/metadata/annotations.yaml":       {Data: file},
			"b/1.0.1/manifests/clusterserviceversion": {Data: manifest},
		}
		one, err := load.Load(fsys, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		two, err := load.Load(fsys, load.Options{Workers: 1})
		if err != nil || lines(one) != lines(two) || len(one.Packages) != len(two.Packages) {
			t.Fatalf("two loads differ (%v):\n%s\n%s", err, lines(one), lines(two))
		}
		for _, p := range one.Packages {
			if _, err := p.Digest(); err != nil {
				t.Errorf("package %q has no digest: %v", p.Name, err)
			}
			for _, c := range p.Channels {
				if g, err := catalog.NewGraph(c); err == nil {
					g.Successors("x", "1.0.0")
				}
			}
		}
	})
}

// FuzzRange feeds arbitrary text as a range of versions: parsing ends, says the same twice, and alternatives
// hold what one of them holds (R-CAT-17).
func FuzzRange(f *testing.F) {
	for _, s := range []string{
		">=1.0.0 <2.0.0 !1.2.1", "1.0.0 || >2.0.0", "<1.x", ">1", "!=1.0.0", "= 1.2.3-rc.1+b",
		"||", " ", "v1.0.0", "1.0.0||", ">=1.0.0, <2", "9999999999999999999.0.0", "<=1.2.3-alpha.1 >0.0.0-0",
	} {
		f.Add(s, s)
	}
	var versions []semver.Version
	for _, v := range []string{
		"0.0.0", "0.0.0-0", "1.0.0", "1.2.3", "1.2.3-rc.1", "2.0.0+b",
		"18446744073709551615.0.0",
	} {
		versions = append(versions, semver.MustParse(v))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		first, err1 := catalog.ParseRange(a)
		second, err2 := catalog.ParseRange(b)
		both, err := catalog.ParseRange(a + " || " + b)
		if err1 != nil || err2 != nil || err != nil {
			return // a half may be too long, or end in what joins it to the other
		}
		again, err := catalog.ParseRange(a)
		if err != nil {
			t.Fatalf("%q is no range the second time: %v", a, err)
		}
		for _, v := range versions {
			if first(v) != again(v) {
				t.Errorf("%q says two things of %s", a, v)
			}
			if both(v) != (first(v) || second(v)) {
				t.Errorf("%q or %q: %v, %v, together %v for %s", a, b, first(v), second(v), both(v), v)
			}
		}
	})
}

// FuzzReadBundle feeds arbitrary files as one bundle: reading ends without a panic, twice with the same
// outcome, the content is a bundle, and a load makes the same of the directory (R-CAT-50 … R-CAT-58).
func FuzzReadBundle(f *testing.F) {
	about := []byte("annotations: {" + annotation("package.v1") + ": buoy, " + annotation("channels.v1") + ": steady}")
	csv := []byte(manifestCSV("buoy.v1.0.0", "1.0.0", "  relatedImages: [{name: a, image: a.test/b:1}]\n"))
	crd := []byte(
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " +
			"a.b}\n---\n{\"kind\":\"X\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"y\"}}")
	f.Add(about, csv, crd, []byte("dependencies: [{type: olm.package, value: {packageName: x, version: '1.0.0'}}]"),
		"manifests/")
	f.Add([]byte("{}"), csv, []byte(`{"a":1}{"b":2}`), []byte("properties: [{type: x, value: {a: 1.5}}]"), "/")
	f.Add([]byte("annotations: {a: 1}"), []byte("a: &a [*a]"), []byte("--- |\n  x"), []byte("[]"), "../x")
	f.Fuzz(func(t *testing.T, annotations, csv, manifest, metadata []byte, dir string) {
		fsys := fstest.MapFS{
			"manifests/a.yaml":           {Data: csv},
			"manifests/b.yaml":           {Data: manifest},
			"metadata/annotations.yaml":  {Data: annotations},
			"metadata/dependencies.yaml": {Data: metadata},
			"metadata/properties.yaml":   {Data: metadata},
		}
		labels := map[string]string{annotation("package.v1"): "buoy", annotation("manifests.v1"): dir}
		one, findings := load.ReadBundle(fsys, labels, "a.test/b:1")
		two, again := load.ReadBundle(fsys, labels, "a.test/b:1")
		if len(findings) != len(again) || one.Content.Digest != two.Content.Digest {
			t.Fatalf("two readings differ:\n%v\n%v", findings, again)
		}
		if findings.Err() != nil {
			return
		}
		content, d, err := bundle.FromCanonical(one.Content.Canonical)
		if err != nil || d != one.Content.Digest {
			t.Fatalf("the content is no bundle: %s, want %s, %v", d, one.Content.Digest, err)
		}
		if _, d, err = content.Canonical(); err != nil || d != one.Content.Digest {
			t.Fatalf("written again the content is %s, want %s, %v", d, one.Content.Digest, err)
		}
		if _, err := (catalog.Package{Bundles: []catalog.Bundle{one.Bundle}}).Digest(); err != nil {
			t.Fatal(err)
		}
	})
}
