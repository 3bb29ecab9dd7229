package render_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
)

// sharedData opens one archive of the real catalogs. Without the data the test is skipped, but in CI it fails.
func sharedData(t *testing.T, name string) *tar.Reader {
	t.Helper()
	root := os.Getenv("CHANDLER_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(root, "data", name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI needs the real catalogs (CHANDLER_TESTDATA): %v", err)
		}
		t.Skipf("real catalogs are not here (CHANDLER_TESTDATA): %v", err)
	}
	t.Cleanup(func() { check(t, f.Close()) })
	const window = 1 << 28 // the archives were packed with --long=27
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(window), zstd.WithDecoderConcurrency(1))
	check(t, err)
	t.Cleanup(z.Close)
	return tar.NewReader(z)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files calls use with every regular file of the archive.
func files(t *testing.T, r *tar.Reader, use func(name string, body []byte)) {
	t.Helper()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		check(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(r)
		check(t, err)
		use(h.Name, body)
	}
}

// outcome counts what became of the bundles of a corpus.
type outcome struct {
	bundles, objects int
	refused          map[string]string
	called           int // bundles that the API server calls
}

// take packs, unpacks and renders one bundle.
func (o *outcome) take(t *testing.T, name string, raw [][]byte) {
	t.Helper()
	o.bundles++
	content, err := bundle.FromManifests(raw)
	if err != nil {
		o.refused[name] = "bundle: " + err.Error()
		return
	}
	canonical, want, err := content.Canonical()
	check(t, err)
	content, got, err := bundle.Unpack(bundle.Pack(canonical))
	check(t, err)
	if got != want {
		t.Errorf("%s: digest %s after packing, %s before", name, got, want)
	}
	csv, err := content.CSV()
	if err != nil {
		o.refused[name] = "csv: " + err.Error()
		return
	}
	if len(csv.Spec.Webhooks)+len(csv.Spec.APIServices.Owned) > 0 {
		o.called++
	}
	objects, err := render.Render(render.Input{Content: content, Namespace: "ops"})
	if err != nil {
		o.refused[name] = "render: " + err.Error()
		return
	}
	o.objects += len(objects)
	seen := map[string]bool{}
	for _, obj := range objects {
		if seen[obj.String()] {
			t.Errorf("%s: %s is rendered twice", name, obj)
		}
		seen[obj.String()] = true
		if _, err := obj.Digest(); err != nil {
			t.Errorf("%s: %s: %v", name, obj, err)
		}
	}
}

func (o *outcome) report(t *testing.T) {
	t.Helper()
	t.Logf("%d bundles, %d objects, %d refused, %d with webhooks or API services", o.bundles, o.objects, len(o.refused),
		o.called)
	names := make([]string, 0, len(o.refused))
	for n := range o.refused {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		// The one sickness of published bundles that no cluster can take.
		if !strings.Contains(o.refused[n], "apiextensions.k8s.io/v1beta1") {
			t.Errorf("refused %s: %s", n, o.refused[n])
		}
	}
}

// oneOf: one bundle of so many of the large archives is rendered, since all of them take a minute. Those of the install
// set are all rendered.
const oneOf = 8

// TestInlineCatalog renders bundles of a published catalog with bundle objects inline.
func TestInlineCatalog(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: the bundles of the install set stand for all")
	}
	o := outcome{refused: map[string]string{}}
	documents := 0
	files(t, sharedData(t, "certified-v4.14.fbc.tar.zst"), func(_ string, body []byte) {
		for doc := range strings.SplitSeq(string(body), "\n---\n") {
			documents++
			if documents%oneOf != 0 {
				continue
			}
			j, err := yaml.YAMLToJSON([]byte(doc))
			check(t, err)
			var blob struct {
				Schema     string `json:"schema"`
				Name       string `json:"name"`
				Properties []struct {
					Type  string          `json:"type"`
					Value json.RawMessage `json:"value"`
				} `json:"properties"`
			}
			check(t, json.Unmarshal(j, &blob))
			if blob.Schema != "olm.bundle" {
				continue
			}
			var raw [][]byte
			for _, p := range blob.Properties {
				if p.Type == "olm.bundle.object" {
					var v struct {
						Data []byte `json:"data"`
					}
					check(t, json.Unmarshal(p.Value, &v))
					raw = append(raw, v.Data)
				}
			}
			o.take(t, blob.Name, raw)
		}
	})
	o.report(t)
}

// TestBundleDirectories renders published bundles from their manifests directories.
func TestBundleDirectories(t *testing.T) {
	t.Parallel()
	for _, archive := range []string{"install-set.tar.zst", "certified-v4.20.bundles.tar.zst"} {
		t.Run(archive, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && archive != "install-set.tar.zst" {
				t.Skip("short: the large archive takes seconds")
			}
			o := outcome{refused: map[string]string{}}
			dirs := map[string][][]byte{}
			files(t, sharedData(t, archive), func(name string, body []byte) {
				if dir := path.Dir(name); path.Base(dir) == "manifests" {
					dirs[dir] = append(dirs[dir], body)
				}
			})
			for i, dir := range slices.Sorted(maps.Keys(dirs)) {
				if archive == "install-set.tar.zst" || i%oneOf == 0 {
					o.take(t, dir, dirs[dir])
				}
			}
			o.report(t)
		})
	}
}
