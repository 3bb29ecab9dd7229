package fetch_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
	"github.com/chandler-fleet/chandler/libs/source/internal/imagetest"
	"github.com/chandler-fleet/chandler/libs/source/internal/sourcetest"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/libs/source/registry/server"
)

// examples are the catalogs of the repository.
const examples = "../../../examples/catalog"

func revision(t *testing.T, fsys fs.FS) (string, map[string]digest.Digest) {
	t.Helper()
	c, err := load.Load(fsys, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Findings.Err(); err != nil {
		t.Fatal(err)
	}
	d, err := c.Revision(c.Digests())
	if err != nil {
		t.Fatal(err)
	}
	return string(d), c.Digests()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is a directory that everything lies in, with servers beside.
type site struct {
	*fetch.Fetcher

	root     string
	registry string // host of a registry without TLS
	files    *httptest.Server
	asked    atomic.Int32 // manifests and blobs
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{root: t.TempDir()}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			s.asked.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(hub.Close)
	s.registry = strings.TrimPrefix(hub.URL, "http://")
	s.files = httptest.NewUnstartedServer(http.FileServer(http.Dir(s.root)))
	s.files.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	s.files.StartTLS()
	t.Cleanup(s.files.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.files.Certificate().Raw}))
	s.Fetcher = &fetch.Fetcher{
		Root: s.root, Cache: t.TempDir(),
		Secrets: func(_ context.Context, name string) (source.Secret, error) {
			if name != "dock-ca" {
				return source.Secret{}, errs.New(errs.NotFound, "there is no such secret")
			}
			return source.Secret{Name: name, Kind: source.CA, Value: fmt.Appendf(nil, `{"certificates":%q}`, ca)}, nil
		},
	}
	return s
}

func (s *site) write(t *testing.T, name string, b []byte) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(s.root, name), b, 0o600))
}

func (s *site) push(t *testing.T, at string, img v1.Image) string {
	t.Helper()
	ref, err := name.NewTag(s.registry+"/"+at, name.Insecure)
	must(t, err)
	must(t, remote.Write(ref, img))
	sum, err := img.Digest()
	must(t, err)
	return sum.String()
}

func zst(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	must(t, err)
	return w.EncodeAll(b, nil)
}

// commit puts the examples into a repository below the site.
func (s *site) commit(t *testing.T, at string) {
	t.Helper()
	dir := filepath.Join(s.root, at)
	must(t, os.CopyFS(filepath.Join(dir, "catalog"), os.DirFS(examples)))
	repo, err := gogit.PlainInit(dir, false)
	must(t, err)
	w, err := repo.Worktree()
	must(t, err)
	must(t, w.AddWithOptions(&gogit.AddOptions{All: true}))
	_, err = w.Commit("catalog", &gogit.CommitOptions{
		Author: &object.Signature{Name: "x", Email: "x@dock.test", When: time.Unix(1, 0)},
	})
	must(t, err)
}

// TestSameContent proves that a catalog is the same whichever way it comes (issue: Sources): the same
// revision, the same digest of every package; and that a probe returns the fingerprint that opening finds.
func TestSameContent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tree := os.DirFS(examples)
	must(t, os.CopyFS(filepath.Join(s.root, "dir"), tree))
	plain := imagetest.Tar(imagetest.Tree(tree, "fleet/catalog")...)
	s.write(t, "fleet.tar", plain)
	s.write(t, "fleet.tar.gz", imagetest.Gzip(plain))
	s.write(t, "fleet.tar.zst", zst(t, plain))
	s.commit(t, "repo")
	img := imagetest.Image(map[string]string{oci.LabelConfigs: "/configs"},
		imagetest.Gzip(imagetest.Tar(imagetest.Tree(tree, "configs")...)))
	sum := s.push(t, "ops/fleet:v1", img)
	path, err := layout.Write(filepath.Join(s.root, "layout"), empty.Index)
	must(t, err)
	must(t, path.AppendImage(img))
	want, packages := revision(t, tree)
	for name, c := range map[string]struct {
		typ source.Type
		set source.Settings
	}{
		"directory": {source.Directory, source.Settings{Path: "dir"}},
		"tar": {
			source.Archive,
			source.Settings{Path: "fleet.tar", Subdirectory: "fleet/catalog"},
		},
		"tar.gz":  {source.Archive, source.Settings{Path: "fleet.tar.gz"}},
		"tar.zst": {source.Archive, source.Settings{Path: "fleet.tar.zst"}},
		"tar.gz from a URL": {
			source.Archive,
			source.Settings{URL: s.files.URL + "/fleet.tar.gz", Secrets: []string{"dock-ca"}},
		},
		"git": {
			source.Git,
			source.Settings{URL: "file://" + s.root + "/repo", Subdirectory: "catalog"},
		},
		"image by tag": {
			source.Image,
			source.Settings{Image: s.registry + "/ops/fleet:v1", Insecure: true},
		},
		"image by digest": {
			source.Image,
			source.Settings{Image: s.registry + "/ops/fleet@" + sum, Insecure: true},
		},
		"image by template without variables": {
			source.Image,
			source.Settings{Template: s.registry + "/ops/fleet:v1", Insecure: true},
		},
		"image of a mirror": {source.Image, source.Settings{
			Image: "registry.dock.test/fleet@" + sum, Insecure: true,
			Mirrors: []source.Mirror{{
				Source: "registry.dock.test", Mirrors: []string{s.registry + "/ops"},
				Never: true,
			}},
		}},
		"image in a layout": {source.Image, source.Settings{Path: "layout"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe, err := s.Probe(t.Context(), c.typ, c.set)
			must(t, err)
			tree, err := s.Open(t.Context(), c.typ, c.set)
			must(t, err)
			defer func() { must(t, tree.Close()) }()
			got, found := revision(t, tree.FS)
			if got != want {
				t.Errorf("revision %s, want %s", got, want)
			}
			for name, d := range packages {
				if found[name] != d {
					t.Errorf("package %s has digest %s, want %s", name, found[name], d)
				}
			}
			if probe.Fingerprint == "" || probe.Fingerprint != tree.Fingerprint || probe.Resolved != "" &&
				probe.Resolved != tree.Resolved {
				t.Errorf("probe %+v, tree %s, %s", probe, tree.Fingerprint, tree.Resolved)
			}
			must(t, tree.Settled(t.Context()))
		})
	}
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		c, contents := sourcetest.Load(t, tree)
		srv, err := server.New(t.Context(), server.Loaded(c, contents.Content), slog.New(slog.DiscardHandler))
		must(t, err)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx, ln) }()
		defer func() {
			cancel()
			must(t, <-done)
		}()
		set := source.Settings{Address: ln.Addr().String(), Insecure: true}
		probe, err := s.Probe(t.Context(), source.GRPC, set)
		must(t, err)
		tree, err := s.Open(t.Context(), source.GRPC, set)
		must(t, err)
		defer func() { must(t, tree.Close()) }()
		// What the protocol does not carry is proven in libs/source/registry; here the dispatch by type.
		if _, found := revision(t, tree.FS); len(found) != len(packages) || probe.Fingerprint != tree.Fingerprint {
			t.Errorf("%d packages of %d; probe %+v, fingerprint %s", len(found), len(packages), probe, tree.Fingerprint)
		}
	})
}

// TestSignaturePolicyOfSettings: the policy of a catalog holds for its image and for the bundle images that it
// names, and what is signed is kept for the hub (ADR 0034).
func TestSignaturePolicyOfSettings(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	set := source.Settings{Image: s.registry + "/ops/fleet:v1", Insecure: true, Signatures: &source.SignaturePolicy{
		Keys: []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))},
	}}
	files := imagetest.Gzip(imagetest.Tar(imagetest.Tree(os.DirFS(examples+"/buoy/0.9.1"), ".")...))
	s.push(t, "ops/fleet:v1", imagetest.Image(map[string]string{oci.LabelConfigs: "/"}, files))
	sum := s.push(t, "ops/buoy:v1", imagetest.Image(
		map[string]string{oci.LabelManifests: "manifests/", oci.LabelMetadata: "metadata/"}, files))
	if _, err := s.Open(t.Context(), source.Image, set); !errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("the catalog image: %v", err)
	}
	bundle := s.registry + "/ops/buoy@" + sum
	if _, err := s.Bundle(t.Context(), bundle, set); !errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("a bundle image: %v", err)
	}
	payload := fmt.Appendf(nil, `{"critical":{"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"}}`, sum)
	hash := sha256.Sum256(payload)
	made, err := key.Sign(rand.Reader, hash[:], nil)
	must(t, err)
	signature, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer: static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{
			"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(made),
		},
	})
	must(t, err)
	s.push(t, "ops/buoy:"+strings.Replace(sum, ":", "-", 1)+".sig", signature)
	tree, err := s.Bundle(t.Context(), bundle, set)
	must(t, err)
	must(t, tree.Close())
	if tree.Evidence == nil {
		t.Error("of a signed bundle nothing is kept for the hub")
	}
	set.Signatures = nil
	tree, err = s.Bundle(t.Context(), bundle, set)
	must(t, err)
	must(t, tree.Close())
	if tree.Evidence != nil {
		t.Error("without a policy the image is kept")
	}
}

// TestBundle proves that a bundle image is read with labels, from a registry and from the layout that its
// catalog came from, and that a second read costs no blob.
func TestBundle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	labels := map[string]string{oci.LabelManifests: "manifests/", oci.LabelMetadata: "metadata/"}
	img := imagetest.Image(labels, imagetest.Gzip(
		imagetest.Tar(imagetest.Tree(os.DirFS(examples+"/buoy/0.9.1"), ".")...)))
	sum := s.push(t, "ops/buoy:v1", img)
	path, err := layout.Write(filepath.Join(s.root, "layout"), empty.Index)
	must(t, err)
	must(t, path.AppendImage(img))
	read := func(image string, set source.Settings) {
		t.Helper()
		tree, err := s.Bundle(t.Context(), image, set)
		must(t, err)
		defer func() { must(t, tree.Close()) }()
		if _, err := fs.Stat(tree.FS, "metadata/annotations.yaml"); err != nil ||
			tree.Labels[oci.LabelManifests] != "manifests/" || tree.Fingerprint != sum {
			t.Errorf("%s: %v, labels %v, %s", image, err, tree.Labels, tree.Fingerprint)
		}
		left, err := fs.Glob(tree.FS, "manifests/*")
		if err != nil || len(left) != 2 {
			t.Errorf("%s: manifests %v, %v", image, left, err)
		}
	}
	inRegistry := source.Settings{Image: s.registry + "/ops/fleet:v1", Insecure: true}
	read(s.registry+"/ops/buoy@"+sum, inRegistry)
	asked := s.asked.Load()
	read(s.registry+"/ops/buoy@"+sum, inRegistry)
	if n := s.asked.Load(); asked == 0 || n != asked {
		t.Errorf("the second read fetched %d blobs", n-asked)
	}
	read("registry.none.test/ops/buoy@"+sum, source.Settings{Path: "layout"}) // no network at all
	far := source.Settings{URL: "https://203.0.113.7/fleet.git", Insecure: true}
	if _, err := s.Bundle(t.Context(), s.registry+"/ops/buoy@"+sum, far); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "add a mirror") {
		t.Errorf("a catalog from far away leads to this machine: %v", err)
	}
	far.Mirrors = []source.Mirror{{
		Source: "registry.dock.test/ops", Mirrors: []string{s.registry + "/ops"},
		Never: true,
	}}
	read("registry.dock.test/ops/buoy@"+sum, far)
	for _, near := range []source.Settings{
		{URL: "https://127.0.0.1/fleet.tar"},
		{URL: "git@127.0.0.1:fleet"},
		{Address: "127.0.0.1:50051"},
		{Template: "127.0.0.1/fleet:v1"},
		{Path: "catalog"},
		{URL: "file:///fleet"},
	} {
		near.Insecure = true
		read(s.registry+"/ops/buoy@"+sum, near)
	}
	for _, set := range []source.Settings{{ConfigMap: &source.ConfigMapRef{}}, {URL: "https://%/"}} {
		set.Insecure = true
		if _, err := s.Bundle(t.Context(), s.registry+"/ops/buoy@"+sum, set); !errs.Is(err, errs.Invalid) {
			t.Errorf("%+v leads to this machine: %v", set, err)
		}
	}
	for image, want := range map[string]errs.Kind{
		s.registry + "/ops/none@" + sum:                            errs.NotFound,
		s.registry + "/ops/buoy@sha256:" + strings.Repeat("0", 64): errs.NotFound,
		"buoy:v1": errs.Invalid,
	} {
		if _, err := s.Bundle(t.Context(), image, inRegistry); !errs.Is(err, want) ||
			!strings.Contains(err.Error(), image) {
			t.Errorf("%s: %v, want %s", image, err, want)
		}
	}
}

// TestRefusals proves kind and sentence of what cannot be opened.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(t, "file", []byte(strings.Repeat("x", 1000)))
	s.push(t, "ops/db:v1", imagetest.Image(map[string]string{oci.LabelDatabase: "/database/index.db"},
		imagetest.Tar(imagetest.File("database/index.db", "no database"))))
	for name, c := range map[string]struct {
		typ  source.Type
		set  source.Settings
		kind errs.Kind
		says string
	}{
		"settings that break a rule": {source.Directory, source.Settings{}, errs.Invalid, "/path must not be empty"},
		"an unknown type":            {"ftp", source.Settings{}, errs.Invalid, "unknown"},
		"outside of the root":        {source.Directory, source.Settings{Path: "/etc"}, errs.Forbidden, "outside"},
		"an archive outside":         {source.Archive, source.Settings{Path: "/etc/x"}, errs.Forbidden, "outside"},
		"a repository outside":       {source.Git, source.Settings{URL: "file:///etc"}, errs.Forbidden, "outside"},
		"a directory that is a file": {
			source.Directory,
			source.Settings{Path: "file"},
			errs.NotFound,
			"cannot be opened",
		},
		"an archive that is none": {source.Archive, source.Settings{Path: "file"}, errs.Invalid, "neither a tar"},
		"a layout that is none":   {source.Image, source.Settings{Path: "."}, errs.NotFound, "no OCI layout"},
		"a database that is none": {
			source.SQLite,
			source.Settings{Path: "file"},
			errs.Invalid,
			"no SQLite database",
		},
		"an image's database": {
			source.Image,
			source.Settings{Image: s.registry + "/ops/db:v1", Insecure: true},
			errs.Invalid, "no SQLite database",
		},
		"a secret that is not there": {
			source.Directory,
			source.Settings{Path: ".", Secrets: []string{"none"}},
			errs.NotFound, `secret "none"`,
		},
		"a config map without secret": {
			source.ConfigMap,
			source.Settings{ConfigMap: &source.ConfigMapRef{Namespace: "a", Name: "b"}},
			errs.Invalid, "kubeconfig",
		},
		"an unresolved template": {
			source.Image,
			source.Settings{Template: "r.test/f:v{kube_major_version}"},
			errs.Invalid, "not resolved",
		},
		"a server that is not there": {
			source.GRPC,
			source.Settings{Address: "127.0.0.1:1", Insecure: true},
			errs.Unavailable, "127.0.0.1:1",
		},
		"a registry without an image": {source.Image, source.Settings{
			Image:    s.registry + "/ops/none:v1",
			Insecure: true,
		}, errs.NotFound, "/ops/none:v1"},
		"a file that is not there": {source.Archive, source.Settings{
			URL: s.files.URL + "/none", Secrets: []string{"dock-ca"},
		}, errs.NotFound, "status 404"},
		"an unknown authority": {
			source.Archive,
			source.Settings{URL: s.files.URL + "/file"},
			errs.Invalid,
			"secret of kind ca",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := s.Open(t.Context(), c.typ, c.set)
			if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || tree != nil {
				t.Errorf("Open = %v (%s), want %s with %q", err, errs.KindOf(err), c.kind, c.says)
			}
			if _, err := s.Probe(t.Context(), c.typ, c.set); err == nil && c.says != "neither a tar" &&
				c.typ != source.Archive && c.typ != source.Image {
				t.Error("the probe finds nothing wrong")
			}
		})
	}
	if _, err := (&fetch.Fetcher{}).Open(t.Context(), source.Directory,
		source.Settings{Path: s.root, Secrets: []string{"x"}}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a fetcher without secrets: %v", err)
	}
}

// TestTimeout proves that a read ends after the timeout of its settings, and says so.
func TestTimeout(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(gone) })
	s := newSite(t)
	set := source.Settings{
		Image: strings.TrimPrefix(silent.URL, "http://") + "/ops/fleet:v1", Insecure: true,
		Timeout: "50ms",
	}
	_, err := s.Probe(t.Context(), source.Image, set)
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "did not end within 50ms") ||
		!strings.Contains(err.Error(), set.Image) {
		t.Errorf("Probe = %v", err)
	}
	for typ, signed := range map[source.Type]string{
		source.Archive: silent.URL + "/x.tar?signature=hunter2", source.Git: silent.URL + "/x.git?signature=hunter2",
	} {
		_, err := s.Probe(t.Context(), typ, source.Settings{URL: signed, Insecure: true, Timeout: "50ms"})
		if short := silent.URL + "/x."; !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), short) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want it to name %s and no signature", typ, err, short)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Open(ctx, source.Image, set); !errs.Is(err, errs.Unavailable) {
		t.Errorf("Open of a caller that went away = %v", err)
	}
}

// TestSettled proves that a directory which changes while it is read is noticed.
func TestSettled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(t, "a", []byte("1"))
	tree, err := s.Open(t.Context(), source.Directory, source.Settings{Path: "."})
	must(t, err)
	defer func() { must(t, tree.Close()) }()
	must(t, tree.Settled(t.Context()))
	s.write(t, "a", []byte("12"))
	if err := tree.Settled(t.Context()); !errs.Is(err, errs.Unavailable) {
		t.Errorf("Settled = %v", err)
	}
}

// TestSweep proves that nothing stays on disk: neither after Close, nor after a process that ended in the midst.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(t, "fleet.tar", imagetest.Tar(imagetest.File("a", "1")))
	set := source.Settings{Path: "fleet.tar"}
	work := filepath.Join(s.Cache, "work")
	tree, err := s.Open(t.Context(), source.Archive, set)
	must(t, err)
	if left, err := os.ReadDir(work); err != nil || len(left) != 1 {
		t.Errorf("while it is open: %v, %v", left, err)
	}
	must(t, tree.Close())
	must(t, tree.Close()) // a second time does nothing
	if left, err := os.ReadDir(work); err != nil || len(left) != 0 {
		t.Errorf("after Close: %v, %v", left, err)
	}
	_, err = s.Open(t.Context(), source.Archive, set) // never closed
	must(t, err)
	must(t, s.Sweep())
	if left, err := filepath.Glob(work + "/*"); err != nil || len(left) != 0 {
		t.Errorf("after Sweep: %v, %v", left, err)
	}
	must(t, (&fetch.Fetcher{}).Sweep())
}
