package author_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"sigs.k8s.io/yaml"
)

// registryOf starts a registry that has the examples: the catalog as an image of documents, and every
// bundle as an image, named harbour/<package>:<version>. It returns the registry's host.
func registryOf(t *testing.T, catalog, documents string) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	push(t, host+"/harbour/catalog:v1", "configs", documents,
		map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"})
	bundles, err := filepath.Glob(filepath.Join(catalog, "*", "*", "metadata", "annotations.yaml"))
	if err != nil || len(bundles) == 0 {
		t.Fatalf("no bundles in %s: %v", catalog, err)
	}
	for _, file := range bundles {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Annotations map[string]string `json:"annotations"`
		}
		if err := yaml.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(filepath.Dir(file))
		push(t, host+"/harbour/"+filepath.Base(filepath.Dir(dir))+":v"+filepath.Base(dir), "", dir, body.Annotations)
	}
	return host
}

// push puts an image of a directory, below a path, into a registry.
func push(t *testing.T, ref, below, dir string, labels map[string]string) {
	t.Helper()
	if err := crane.Push(image(t, below, dir, labels), ref, crane.Insecure); err != nil {
		t.Fatal(err)
	}
}

// layout writes an image of a directory as an OCI layout.
func layout(t *testing.T, dir, to string) string {
	t.Helper()
	if err := crane.SaveOCI(image(t, "configs", dir, map[string]string{
		"operators.operatorframework.io.index.configs.v1": "/configs",
	}), to); err != nil {
		t.Fatal(err)
	}
	return to
}

// archive packs a directory.
func archive(t *testing.T, dir, to string) string {
	t.Helper()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	err = w.AddFS(os.DirFS(dir))
	if err = errors.Join(err, w.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return to
}

// image makes an image of a directory below a path.
func image(t *testing.T, below, dir string, labels map[string]string) v1.Image {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		files[path.Join(below, name)] = raw
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := crane.Image(files)
	if err == nil {
		out, err = mutate.Config(out, v1.Config{Labels: labels})
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
