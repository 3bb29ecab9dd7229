package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// registryOf is a registry on loopback that asks for a password and notes what is pulled.
type registryOf struct {
	t    *testing.T
	host string
	// name is what its images are called by; host where it has no other.
	name string

	mu     sync.Mutex
	pulled map[string]int // manifests asked for, by repository
}

// User and password of the registry.
const (
	registryUser     = "dock"
	registryPassword = "ebb-and-flow"
)

func newRegistry(t *testing.T) *registryOf {
	t.Helper()
	r := &registryOf{t: t, pulled: map[string]int{}}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if user != registryUser || password != registryPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="dock"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if repository, _, manifest := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v2/"), "/manifests/"); manifest &&
			req.Method == http.MethodGet {
			r.mu.Lock()
			r.pulled[repository]++
			r.mu.Unlock()
		}
		inner.ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	r.host = strings.TrimPrefix(s.URL, "http://")
	r.name = r.host
	return r
}

// repositories are those of which a manifest was pulled, sorted.
func (r *registryOf) repositories() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.pulled {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// push makes an image of files with labels and returns its reference by digest.
func (r *registryOf) push(repository, tag string, files map[string][]byte, labels map[string]string) string {
	r.t.Helper()
	raw := archive(r.t, files)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(raw)),
			nil
	})
	r.must(err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	r.must(err)
	image, err = mutate.Config(image, v1.Config{Labels: labels})
	r.must(err)
	ref, err := name.ParseReference(r.host + "/" + repository + ":" + tag)
	r.must(err)
	r.must(remote.Write(ref, image, remote.WithAuth(r)))
	d, err := image.Digest()
	r.must(err)
	return r.name + "/" + repository + "@" + d.String()
}

func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, path := range slices.Sorted(maps.Keys(files)) { // the same files are the same image
		text := files[path]
		if err := w.WriteHeader(&tar.Header{
			Name: path, Mode: 0o644, Size: int64(len(text)),
			Typeflag: tar.TypeReg,
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (r *registryOf) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// bundleImage makes an image of a bundle directory, with the labels of registry+v1 (R-CAT-50).
func (r *registryOf) bundleImage(dir, pkg, version string) string {
	r.t.Helper()
	return r.bundleImageAs("bundles/"+pkg, dir, pkg, version)
}

func (r *registryOf) bundleImageAs(repository, dir, pkg, tag string) string {
	r.t.Helper()
	files := map[string][]byte{}
	root := os.DirFS(dir)
	r.must(fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		files[path] = text
		return err
	}))
	return r.push(repository, tag, files, map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
		"operators.operatorframework.io.bundle.package.v1":   pkg,
	})
}

// catalogImage makes a catalog image of the example catalog, whose bundles are images; those of the packages in missing
// are named, but not pushed yet. It returns the reference by tag.
func (r *registryOf) catalogImage(dir, tag string, missing ...string) string {
	r.t.Helper()
	return r.catalogImageAs("catalogs/harbour", dir, tag, missing...)
}

func (r *registryOf) catalogImageAs(repository, dir, tag string, missing ...string) string {
	r.t.Helper()
	c, err := load.Load(os.DirFS(dir), load.Options{})
	r.must(err)
	files := map[string][]byte{}
	for _, p := range c.Packages {
		var out bytes.Buffer
		doc := func(v map[string]any) { r.must(json.NewEncoder(&out).Encode(v)) }
		doc(map[string]any{"schema": "olm.package", "name": p.Name, "defaultChannel": p.DefaultChannel})
		for _, ch := range p.Channels {
			doc(map[string]any{"schema": "olm.channel", "package": p.Name, "name": ch.Name, "entries": ch.Entries})
		}
		for _, b := range p.Bundles {
			image := r.name + "/bundles/" + p.Name + ":" + b.Version
			if !slices.Contains(missing, p.Name) {
				image = r.bundleImage(filepath.Join(dir, p.Name, b.Version), p.Name, b.Version)
			}
			doc(map[string]any{
				"schema": "olm.bundle", "package": p.Name, "name": b.Name, "image": image,
				"properties": b.Properties,
			})
		}
		files["configs/"+p.Name+"/catalog.json"] = out.Bytes()
	}
	r.push(repository, tag, files, map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"})
	return r.name + "/" + repository + ":" + tag
}

// Authorization implements authn.Authenticator.
func (r *registryOf) Authorization() (*authn.AuthConfig, error) {
	return &authn.AuthConfig{Username: registryUser, Password: registryPassword}, nil
}
