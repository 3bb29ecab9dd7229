package catalog_test

import (
	"testing"
	"testing/fstest"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// FuzzLoad feeds arbitrary text as a catalog file, an ignore file and a manifest: loading must end
// without a panic, twice with the same outcome, and what it serves must have a digest and be decided
// by its graph (DESIGN D10).
func FuzzLoad(f *testing.F) {
	f.Add([]byte(valid), []byte("*.md"), []byte(manifestCSV("buoy.v1.0.0", "1.0.0", "")))
	f.Add([]byte(`{"schema":"olm.package","name":"a"}{"schema":"x"}`), []byte("**/*\n!*.yaml"), []byte("a: &a [*a]"))
	f.Add([]byte("a: &a {<<: *a}\n--- !!binary x\n...\n%YAML 1.2\n---\n- b"), []byte("\\"), []byte("{"))
	f.Add([]byte("schema: olm.channel\npackage: p\nname: c\nentries: [{name: a, replaces: a, skipRange: '>1 || x'}]"), []byte("[a-"), []byte(""))
	f.Add([]byte("schema: olm.bundle\npackage: p\nname: b\nproperties: [{type: olm.bundle.object, value: {data: e30=}}]"), []byte("/"), []byte("[]"))
	f.Fuzz(func(t *testing.T, file, ignore, manifest []byte) {
		fsys := fstest.MapFS{
			"a/catalog":                               {Data: file},
			"a/.indexignore":                          {Data: ignore},
			"b/1.0.0/manifests/x":                     {Data: manifest},
			"b/1.0.0/metadata/annotations.yaml":       {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: b, operators.operatorframework.io.bundle.channels.v1: c}")},
			"b/1.0.0/metadata/dependencies.yaml":      {Data: file},
			"b/1.0.0/metadata/properties.yaml":        {Data: manifest},
			"b/1.0.1/metadata/annotations.yaml":       {Data: file},
			"b/1.0.1/manifests/clusterserviceversion": {Data: manifest},
		}
		one, err := catalog.Load(fsys, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		two, err := catalog.Load(fsys, catalog.Options{Workers: 1})
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
