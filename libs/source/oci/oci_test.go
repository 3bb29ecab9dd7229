package oci_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/internal/imagetest"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

// hub is a real registry in this process, behind a handler that tests may bend.
type hub struct {
	*httptest.Server

	inner http.Handler
	host  string

	mu   sync.Mutex
	bend func(w http.ResponseWriter, r *http.Request) bool // true where it answered
	log  []string
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{inner: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	h.host = strings.TrimPrefix(h.URL, "http://")
	return h
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.log = append(h.log, r.Method+" "+r.URL.Path)
	bend := h.bend
	h.mu.Unlock()
	if bend == nil || !bend(w, r) {
		h.inner.ServeHTTP(w, r)
	}
}

func (h *hub) set(bend func(w http.ResponseWriter, r *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bend, h.log = bend, nil
}

// asked lists the requests for a kind of thing since set.
func (h *hub) asked(kind string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, l := range h.log {
		if strings.Contains(l, kind) {
			out = append(out, l)
		}
	}
	return out
}

// push stores an image or an index, and returns its digest.
func (h *hub) push(t *testing.T, at string, what remote.Taggable) string {
	t.Helper()
	ref, err := name.NewTag(h.host+"/"+at, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	switch w := what.(type) {
	case v1.Image:
		err = remote.Write(ref, w)
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, w)
	default:
		err = remote.Put(ref, w)
	}
	if err != nil {
		t.Fatal(err)
	}
	desc, err := remote.Head(ref)
	if err != nil {
		t.Fatal(err)
	}
	return desc.Digest.String()
}

func (h *hub) source(t *testing.T, at string) oci.Source {
	t.Helper()
	return oci.Source{Image: h.host + "/" + at, Insecure: true, Temp: t.TempDir(), Limits: archive.Standard()}
}

func open(t *testing.T, s oci.Source) *oci.Tree {
	t.Helper()
	tree, err := oci.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, tree)
}

func closing(t *testing.T, tree *oci.Tree) *oci.Tree {
	t.Helper()
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

func read(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(fsys, name)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func zst(b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

func configs(at string) map[string]string { return map[string]string{oci.LabelConfigs: at} }

// fleet is a plain catalog image.
func fleet() v1.Image {
	return imagetest.Image(configs("/configs"), imagetest.Gzip(imagetest.Tar(imagetest.File("bin/opm", "x"))),
		imagetest.Gzip(imagetest.Tar(imagetest.File("configs/p/catalog.yaml", "schema: x\n"))))
}

var fleetFiles = map[string]string{"p/catalog.yaml": "schema: x\n"}

// TestCatalog proves what of an image is the catalog: the directory of its label, /configs without one, a
// subdirectory that settings name; from all layers together, however they are compressed (R-CAT-60).
func TestCatalog(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	file := imagetest.File
	for i, c := range []struct {
		name  string
		image v1.Image
		sub   string
		want  map[string]string
	}{
		{"a label", fleet(), "", fleetFiles},
		{
			"no label", imagetest.Image(nil, imagetest.Tar(file("configs/a", "1"), file("other/b", "2"))), "",
			map[string]string{"a": "1"},
		},
		{"another place", imagetest.Image(configs("/opt/catalog/"),
			imagetest.Tar(file("opt/catalog/a", "1"), file("opt/catalogue/b", "2"))), "", map[string]string{"a": "1"}},
		{"a subdirectory", imagetest.Image(configs("/configs"),
			imagetest.Tar(file("configs/a", "1"), file("configs/b/c", "2"))), "configs/b", map[string]string{"c": "2"}},
		{"whiteouts", imagetest.Image(nil, imagetest.Tar(file("configs/a", "1"), file("configs/b", "2")),
			zst(imagetest.Tar(file("configs/.wh.a", ""), file("configs/b", "3")))), "", map[string]string{"b": "3"}},
		{"links", imagetest.Image(nil, imagetest.Tar(file("configs/a", "1"),
			imagetest.Link("configs/b", "/configs/a"))), "", map[string]string{"a": "1", "b": "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := fmt.Sprintf("ops/fleet%d", i)
			sum := h.push(t, at+":v1", c.image)
			for _, ref := range []string{at + ":v1", at + "@" + sum, at + ":v1@" + sum} {
				s := h.source(t, ref)
				s.Subdirectory = c.sub
				tree := open(t, s)
				if diff := cmp.Diff(c.want, read(t, tree.FS())); diff != "" {
					t.Errorf("%s: %s", ref, diff)
				}
				if tree.Digest != sum || tree.Resolved != h.host+"/"+at+"@"+sum {
					t.Errorf("%s: digest %s, resolved %s", ref, tree.Digest, tree.Resolved)
				}
			}
		})
	}
}

// TestPlatforms proves that of an index linux/amd64 is taken, else the first for linux, else the first,
// never an attestation; and that the digest is that of the index.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	one := func(text, system, arch string) mutate.IndexAddendum {
		a := mutate.IndexAddendum{Add: imagetest.Image(nil, imagetest.Tar(imagetest.File("configs/a", text)))}
		if system != "" {
			a.Platform = &v1.Platform{OS: system, Architecture: arch}
		}
		return a
	}
	for i, c := range []struct {
		list []mutate.IndexAddendum
		want string
	}{
		{[]mutate.IndexAddendum{one("1", "linux", "s390x"), one("2", "linux", "amd64")}, "2"},
		{
			[]mutate.IndexAddendum{
				one("1", "windows", "amd64"), one("2", "linux", "s390x"),
				one("3", "linux", "arm64"),
			},
			"2",
		},
		{[]mutate.IndexAddendum{one("1", "unknown", "unknown"), one("2", "windows", "amd64")}, "2"},
		{[]mutate.IndexAddendum{one("1", "", ""), one("2", "", "")}, "1"},
		{[]mutate.IndexAddendum{{Add: mutate.AppendManifests(empty.Index, one("nested", "linux", "amd64"))}}, "nested"},
	} {
		at := fmt.Sprintf("ops/multi%d:v1", i)
		sum := h.push(t, at, mutate.AppendManifests(empty.Index, c.list...))
		tree := open(t, h.source(t, at))
		if got := read(t, tree.FS())["a"]; got != c.want || tree.Digest != sum {
			t.Errorf("%d: image %q, digest %s; want %q, %s", i, got, tree.Digest, c.want, sum)
		}
	}
	for _, list := range [][]mutate.IndexAddendum{{one("1", "unknown", "unknown")}} {
		h.push(t, "ops/none:v1", mutate.AppendManifests(empty.Index, list...))
		if _, err := oci.Open(t.Context(), h.source(t, "ops/none:v1")); !errs.Is(err, errs.Invalid) {
			t.Errorf("an index without an image: %v", err)
		}
	}
}

// TestDatabase proves that the database of a legacy image is found (R-CAT-60, R-CAT-75).
func TestDatabase(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	file := imagetest.Tar(imagetest.File("database/index.db", "SQLite"))
	for at, c := range map[string]struct {
		label string
		fails bool
	}{
		"default": {"", false}, "said": {"/database/index.db", false}, "missing": {"/db/index.db", true},
		"escapes": {"../../x", true},
	} {
		h.push(t, "db/"+at+":v1", imagetest.Image(map[string]string{oci.LabelDatabase: c.label}, file))
		tree, err := oci.Open(t.Context(), h.source(t, "db/"+at+":v1"))
		if c.fails {
			if !errs.Is(err, errs.Invalid) {
				t.Errorf("%s: %v, want Invalid", at, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		closing(t, tree)
		if !strings.HasSuffix(tree.Database, "/index.db") || read(t, tree.FS())["index.db"] != "SQLite" {
			t.Errorf("%s: database %q", at, tree.Database)
		}
	}
}

// TestBundle proves that a bundle image gives manifests, metadata and labels, and nothing else (R-CAT-50, R-CAT-55).
func TestBundle(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	labels := map[string]string{
		oci.LabelManifests: "manifests/", oci.LabelMetadata: "metadata/",
		"operators.operatorframework.io.bundle.package.v1": "buoy",
	}
	sum := h.push(t, "ops/buoy:v1", imagetest.Image(labels,
		imagetest.Gzip(imagetest.Tar(imagetest.File("manifests/csv.yaml", "1"))),
		imagetest.Gzip(imagetest.Tar(imagetest.File("metadata/annotations.yaml", "2"),
			imagetest.File("tests/x", "3")))))
	tree, err := oci.Bundle(t.Context(), h.source(t, "ops/buoy@"+sum))
	if err != nil {
		t.Fatal(err)
	}
	closing(t, tree)
	if diff := cmp.Diff(map[string]string{"manifests/csv.yaml": "1", "metadata/annotations.yaml": "2"},
		read(t, tree.FS())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(labels, tree.Labels); diff != "" {
		t.Error(diff)
	}
	if _, err := oci.Open(t.Context(), h.source(t, "ops/buoy:v1")); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "one bundle") {
		t.Errorf("a bundle image as a catalog: %v", err)
	}
	h.push(t, "ops/fleet:v1", fleet())
	if _, err := oci.Bundle(t.Context(), h.source(t, "ops/fleet:v1")); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "/manifests") {
		t.Errorf("a catalog image as a bundle: %v", err)
	}
}

// TestProbe proves that looking costs one request and no blob, and none at all for a digest.
func TestProbe(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	sum := h.push(t, "ops/fleet:v1", fleet())
	s := h.source(t, "ops/fleet:v1")
	h.set(nil)
	got, resolved, err := oci.Probe(t.Context(), s)
	if err != nil || got != sum || resolved != h.host+"/ops/fleet@"+sum {
		t.Errorf("Probe = %s, %s, %v", got, resolved, err)
	}
	if diff := cmp.Diff([]string{"HEAD /v2/ops/fleet/manifests/v1"}, h.asked("/ops/")); diff != "" {
		t.Error(diff)
	}
	s.Image = h.host + "/ops/fleet@" + sum
	h.set(nil)
	if got, _, err := oci.Probe(t.Context(), s); err != nil || got != sum || len(h.asked("")) != 0 {
		t.Errorf("Probe of a digest = %s, %v after %v", got, err, h.asked(""))
	}
	// A registry that does not tell the digest is asked for the manifest.
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/manifests/") {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		return false
	})
	s.Image = h.host + "/ops/fleet:v1"
	if got, _, err := oci.Probe(t.Context(), s); err != nil || got != sum {
		t.Errorf("Probe without HEAD = %s, %v", got, err)
	}
}

// TestMirrors proves that mirrors are asked in order, that each cause is told, and that a mirror cannot
// pass off other content (issue: mirrors).
func TestMirrors(t *testing.T) {
	t.Parallel()
	own, near, far := newHub(t), newHub(t), newHub(t)
	sum := own.push(t, "ops/fleet:v1", fleet())
	far.push(t, "copy/fleet:v1", fleet())
	s := own.source(t, "ops/fleet@"+sum)
	s.Mirrors = [][]source.Mirror{
		{{Source: own.host + "/ops", Mirrors: []string{near.host + "/copy", far.host + "/copy"}}},
	}
	own.set(nil)
	tree := open(t, s)
	if diff := cmp.Diff(fleetFiles, read(t, tree.FS())); diff != "" || len(own.asked("")) != 0 ||
		len(near.asked("/manifests/")) != 1 {
		t.Errorf("the far mirror was not taken after the near one: %s %v", diff, own.asked(""))
	}
	if tree.Resolved != own.host+"/ops/fleet@"+sum {
		t.Errorf("resolved %s: the image's own name is wanted", tree.Resolved)
	}
	// A mirror that lies about a blob is passed over, wherever its lie shows first.
	for name, lie := range map[string]string{"other content": "x", "a longer blob": strings.Repeat("x", 10_000)} {
		far.set(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				_, _ = io.WriteString(w, lie)
				return true
			}
			return false
		})
		if diff := cmp.Diff(fleetFiles, read(t, open(t, s).FS())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	// Where the source may not be contacted, all causes are told.
	far.set(flip(far))
	s.Mirrors[0][0].Never = true
	_, err := oci.Open(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), near.host+"/copy/fleet@"+sum+": the registry does not have it") ||
		!strings.Contains(err.Error(), far.host+"/copy/fleet@"+sum+": ") {
		t.Errorf("causes: %v", err)
	}
	if !errors.Is(err, oci.ErrMismatch) {
		t.Errorf("the error does not tell that a mirror lied: %v", err)
	}
	if len(own.asked("/blobs/")) == 0 {
		t.Error("the own registry was not asked at last")
	}
}

func secret(kind source.SecretKind, name, value string) source.Secret {
	return source.Secret{Name: name, Kind: kind, Value: []byte(value)}
}

func credentials(t *testing.T, list ...source.Secret) *credential.Set {
	t.Helper()
	s, err := credential.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
