package load_test

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

const bundleImage = "registry.dock.test/buoy-bundle@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func annotation(key string) string { return "operators.operatorframework.io.bundle." + key }

// TestReadBundle proves that one bundle is rendered by itself as a catalog would have it: properties from
// CSV, dependencies and annotations, related images with the bundle's own (R-CAT-50, 55, 58).
func TestReadBundle(t *testing.T) {
	t.Parallel()
	in := files{
		"manifests/csv.yaml": strings.Replace(
			manifestCSV("buoy.v1.2.0", "1.2.0", "  replaces: buoy.v1.1.0\n  skips: [buoy.v1.1.1]\n"),
			"{name: buoy.v1.2.0}", "{name: buoy.v1.2.0, annotations: {olm.skipRange: '<1.2.0'}}", 1),
		"metadata/annotations.yaml": "annotations:\n  " + annotation("package.v1") + ": buoy\n" +
			channels("steady, fast") + "  " + annotation("channel.default.v1") + ": fast\n",
	}
	b, findings := load.ReadBundle(in.fs(), nil, bundleImage)
	if len(findings) > 0 {
		t.Fatalf("%v", findings)
	}
	if b.Package != "buoy" || b.DefaultChannel != "fast" || !cmp.Equal(b.Channels, []string{"steady", "fast"}) {
		t.Errorf("package %s, channels %v, default %s", b.Package, b.Channels, b.DefaultChannel)
	}
	if b.CSV.Spec.Replaces != "buoy.v1.1.0" || len(b.CSV.Spec.Skips) != 1 ||
		b.CSV.Annotations[catalog.AnnotationSkipRange] != "<1.2.0" || len(b.Files) != 2 {
		t.Errorf("CSV %+v, %d files", b.CSV.Spec, len(b.Files))
	}
	want := []catalog.RelatedImage{{Image: bundleImage}, {Image: "registry.example.com/op:1"}}
	if diff := cmp.Diff(want, b.Bundle.RelatedImages); diff != "" || b.Bundle.Image != bundleImage {
		t.Errorf("related images (-want +got):\n%s", diff)
	}
	content, d, err := bundle.Unpack(bundle.Pack(b.Content.Canonical))
	if err != nil || d != b.Content.Digest || d != b.Bundle.Content || len(content.Manifests) != 1 {
		t.Errorf("content %s, %s, %v", d, b.Bundle.Content, err)
	}
}

// TestReadBundleLabels proves that labels of an image stand in for annotations.yaml, that the file wins over
// them, and that both can say where the directories are (R-CAT-55).
func TestReadBundleLabels(t *testing.T) {
	t.Parallel()
	csv := manifestCSV("buoy.v1.0.0", "1.0.0", "")
	labels := map[string]string{
		annotation("package.v1"): "label", annotation("channels.v1"): "fast",
		annotation("manifests.v1"): "/deploy/", annotation("metadata.v1"): "about/",
	}
	for _, c := range []struct {
		name     string
		in       files
		labels   map[string]string
		pkg, err string
	}{
		{"labels alone", files{"deploy/csv.yaml": csv}, labels, "label", ""},
		{
			"file wins",
			files{"manifests/csv.yaml": csv, "about/annotations.yaml": "annotations: {" +
				annotation("package.v1") + ": file, " + annotation("manifests.v1") + ": manifests/}\n"},
			labels, "file",
			"",
		},
		{"neither", files{"manifests/csv.yaml": csv}, nil, "", "annotations.yaml"},
		{"a way out", files{"manifests/csv.yaml": csv}, map[string]string{
			annotation("package.v1"): "x", annotation("manifests.v1"): "../..",
		}, "", "no directory of the bundle"},
		{
			"a way out of metadata",
			files{"manifests/csv.yaml": csv},
			map[string]string{annotation("package.v1"): "x", annotation("metadata.v1"): "a/../../b"},
			"",
			"no directory of the bundle",
		},
		{
			"broken file",
			files{"manifests/csv.yaml": csv, "metadata/annotations.yaml": "a: ["},
			map[string]string{annotation("package.v1"): "x"},
			"x", "",
		},
		{
			"broken file alone",
			files{"manifests/csv.yaml": csv, "metadata/annotations.yaml": "a: ["},
			nil, "",
			"set the annotation",
		},
	} {
		b, findings := load.ReadBundle(c.in.fs(), c.labels, "")
		err := findings.Err()
		if c.err == "" && (err != nil || b.Package != c.pkg || b.Bundle.Name != "buoy.v1.0.0") {
			t.Errorf("%s: package %s, %v", c.name, b.Package, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || b.Bundle.Name != "") {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
	}
}

// TestReadBundleRefuses proves that what makes no bundle is an error that names rule and file.
func TestReadBundleRefuses(t *testing.T) {
	t.Parallel()
	annotations := files{"metadata/annotations.yaml": "annotations:\n  " + annotation("package.v1") + ": buoy\n" +
		channels("steady")}
	csv := manifestCSV("buoy.v1.0.0", "1.0.0", "")
	for _, c := range []struct {
		name string
		in   files
		rule string
		file string
	}{
		{"nothing", files{}, "R-CAT-51", "metadata/annotations.yaml"},
		{"no manifests", annotations, "R-CAT-51", "manifests"},
		{
			"no CSV", tree(annotations, files{
				"manifests/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n",
			}),
			"R-CAT-51", ".",
		},
		{"broken", tree(annotations, files{"manifests/a.yaml": "a: ["}), "R-CAT-51", "."},
		{"version", tree(annotations, files{"manifests/a.yaml": manifestCSV("b", "one", "")}), "R-CAT-26", "."},
		{"dependency", tree(annotations, files{
			"manifests/a.yaml":           csv,
			"metadata/dependencies.yaml": "dependencies: [{type: olm.package, value: {packageName: x, version: one}}]",
		}), "R-CAT-25", "."},
		{"rule of a constraint", tree(annotations, files{
			"manifests/a.yaml": csv,
			"metadata/dependencies.yaml": "dependencies: [{type: olm.constraint, value: {cel: {rule: " +
				"size(properties)}}}]",
		}), "R-CAT-25", "."},
	} {
		_, findings := load.ReadBundle(c.in.fs(), nil, "")
		if findings.Errors() == 0 || findings[0].Rule != c.rule || findings[0].File != c.file {
			t.Errorf("%s: %v, want %s at %s", c.name, findings, c.rule, c.file)
		}
	}
	_, findings := load.ReadBundle(tree(files{"manifests/a.yaml": csv, "metadata/annotations.yaml": "annotations: {" +
		annotation("package.v1") + ": buoy}"}).fs(), nil, "")
	if findings.Err() != nil || len(findings) != 1 || findings[0].Rule != "R-CAT-52" {
		t.Errorf("no channel: %v", findings)
	}
}

// TestReadBundleOfRealDirectories proves that a bundle read alone is the one that a whole load makes of it,
// but for its image.
func TestReadBundleOfRealDirectories(t *testing.T) {
	t.Parallel()
	dir := catalogtest.Unpack(t, catalogtest.InstallSet, fewPackages)
	c, err := load.Load(os.DirFS(dir), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]catalog.Bundle{}
	for _, p := range c.Packages {
		for _, b := range p.Bundles {
			want[b.Name] = b
		}
	}
	seen := 0
	for _, at := range globDirs(t, dir) {
		b, findings := load.ReadBundle(os.DirFS(at), nil, "")
		if findings.Err() != nil {
			t.Errorf("%s: %v", at, findings.Err())
			continue
		}
		seen++
		if diff := cmp.Diff(asJSON(t, want[b.Bundle.Name]), asJSON(t, b.Bundle)); diff != "" {
			t.Errorf("%s (-load +alone):\n%s", at, diff)
		}
	}
	if seen != len(want) {
		t.Errorf("%d bundles alone, %d in the load", seen, len(want))
	}
}

// globDirs returns the directories below dir that hold manifests.
func globDirs(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch at := path.Join(dir, e.Name()); {
		case e.IsDir() && e.Name() == "manifests":
			return []string{dir}
		case e.IsDir():
			out = append(out, globDirs(t, at)...)
		}
	}
	return out
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
