package e2e

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// realOperators are five operators of the certified v4.14 catalog, with the namespace that each is installed in.
// They were chosen for what they bring: many CRDs, conversion-free webhooks, own-namespace and all-namespaces modes.
var realOperators = []struct{ pkg, namespace string }{
	{"minio-object-store-operator", "minio"},
	{"stackable-commons-operator", "stackable"},
	{"tigera-operator", "tigera"},
	{"cpd-platform-operator", "cpd"},
	{"hulft", "hulft"},
}

// TestRealCatalog indexes a whole published catalog with its manifests inline and brings five of its operators to
// Succeeded on a real API server. R-CAT-1, R-CAT-18, R-CSV-20.
func TestRealCatalog(t *testing.T) {
	dir := unpack(t, "certified-v4.14.fbc.tar.zst")
	w := newWorld(t)
	begin := time.Now()
	w.addCatalog("certified", dir)
	t.Logf("indexed in %s", time.Since(begin).Round(time.Millisecond))
	for _, o := range realOperators {
		w.group(o.namespace)
		w.subscribe(o.namespace, subscription{Name: o.pkg, Package: o.pkg, Catalog: "certified"})
	}
	for _, o := range realOperators {
		w.eventually(o.pkg+" is Succeeded", func() (string, bool) {
			var seen string
			for _, op := range w.operators(o.namespace) {
				if op.Package == o.pkg && op.Phase == "Succeeded" {
					return "", true
				}
				seen += op.Name + " " + op.Phase + " " + op.Reason + " " + op.Message + "; "
			}
			return seen, false
		})
		t.Logf("%s Succeeded %s after the catalog was added", o.pkg, time.Since(begin).Round(time.Millisecond))
	}
}

// testdata finds a file of the shared test data. It skips on a machine without them, and fails in CI.
func testdata(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("CHANDLER_TESTDATA")
	if root == "" {
		root = filepath.Join(repository(t), "..", "shared")
	}
	path := filepath.Join(root, "data", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("test data: %v; CHANDLER_TESTDATA must name the folder that holds data/", err)
		}
		t.Skipf("test data: %v; CHANDLER_TESTDATA may name the folder that holds data/", err)
	}
	return path
}

// unpack unpacks an archive of the test data into a folder of the test's.
func unpack(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(testdata(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	z, err := zstd.NewReader(file, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	archive := tar.NewReader(z)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := extract(filepath.Join(dir, filepath.FromSlash(header.Name)), header, archive); err != nil {
			t.Fatal(err)
		}
	}
}

func extract(path string, header *tar.Header, content io.Reader) error {
	if strings.Contains(header.Name, "..") || header.Typeflag == tar.TypeDir {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
