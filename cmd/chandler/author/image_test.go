package author_test

import (
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
	push(t, host+"/harbour/catalog:v1", "configs", documents, map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"})
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

// push makes an image of a directory below a path.
func push(t *testing.T, ref, below, dir string, labels map[string]string) {
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
	image, err := crane.Image(files)
	if err == nil {
		image, err = mutate.Config(image, v1.Config{Labels: labels})
	}
	if err == nil {
		err = crane.Push(image, ref, crane.Insecure)
	}
	if err != nil {
		t.Fatal(err)
	}
}
