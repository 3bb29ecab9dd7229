package oci_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/internal/imagetest"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

func docker(name string, auths map[string]string) source.Secret {
	var entries []string
	for at, login := range auths {
		entries = append(entries, fmt.Sprintf(`%q:{"auth":%q}`, at, base64.StdEncoding.EncodeToString([]byte(login))))
	}
	return secret(source.DockerConfig, name, `{"auths":{`+strings.Join(entries, ",")+`}}`)
}

// guarded lets only one login into one repository; token turns the challenge from basic to bearer.
func guarded(login string, token func() string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		name, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && name+":"+password == login:
			_, _ = io.WriteString(w, `{"token":"granted"}`)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case token != nil && r.Header.Get("Authorization") == "Bearer granted", token == nil &&
			name+":"+password == login:
			return false
		case token != nil:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="hub"`, token()))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
		return true
	}
}

// TestCredentials proves that the credential of the longest path is shown, with basic and with bearer
// authentication, and what is said where there is none or a wrong one (R-DIS-4, R-DIS-5).
func TestCredentials(t *testing.T) {
	t.Parallel()
	for _, bearer := range []bool{false, true} {
		h := newHub(t)
		h.push(t, "ops/fleet:v1", fleet())
		var token func() string
		if bearer {
			token = func() string { return h.URL + "/token" }
		}
		h.set(guarded("me:open", token))
		for name, c := range map[string]struct {
			secrets []source.Secret
			kind    errs.Kind
			says    string
		}{
			"none": {
				nil, errs.Forbidden,
				"asks for a credential (status 401); store a docker configuration",
			},
			"for another": {
				[]source.Secret{docker("dock-pull", map[string]string{"other.test": "me:open"})},
				errs.Forbidden, "secret dock-pull has none for " + h.host + "/ops/fleet",
			},
			"wrong": {
				[]source.Secret{docker("dock-pull", map[string]string{h.host: "me:hunter2"})},
				errs.Forbidden, "refuses the credential of secret dock-pull",
			},
			"right": {[]source.Secret{docker("dock-pull", map[string]string{h.host: "me:open"})}, "", ""},
			"the longest path": {[]source.Secret{
				docker("a", map[string]string{h.host: "x:y", h.host + "/ops/fleets": "x:y"}),
				docker("b", map[string]string{"https://" + h.host + "/ops": "me:open"}),
			}, "", ""},
			"the first of both": {[]source.Secret{
				docker("a", map[string]string{h.host: "me:open"}),
				docker("b", map[string]string{h.host: "x:y"}),
			}, "", ""},
		} {
			s := h.source(t, "ops/fleet:v1")
			s.Credentials = credentials(t, c.secrets...)
			_, _, perr := oci.Probe(t.Context(), s)
			tree, err := oci.Open(t.Context(), s)
			if errs.KindOf(err) != c.kind || errs.KindOf(perr) != c.kind {
				t.Errorf("bearer %t, %s: %v, probe %v; want kind %q", bearer, name, err, perr, c.kind)
			}
			if err == nil {
				closing(t, tree)
			} else if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("bearer %t, %s: %v, want %q", bearer, name, err, c.says)
			}
		}
	}
}

// TestForeignToken proves that a registry cannot have its credential sent to another site.
func TestForeignToken(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "ops/fleet:v1", fleet())
	seen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"token":"granted"}`)
	}))
	t.Cleanup(thief.Close)
	elsewhere := strings.Replace(thief.URL, "127.0.0.1", "localhost", 1)
	h.set(guarded("me:open", func() string { return elsewhere }))
	s := h.source(t, "ops/fleet:v1")
	s.Credentials = credentials(t, docker("dock-pull", map[string]string{h.host: "me:open"}))
	_, err := oci.Open(t.Context(), s)
	if !errs.Is(err, errs.Forbidden) || !strings.Contains(err.Error(), "of another site") {
		t.Errorf("Open = %v", err)
	}
	select {
	case auth := <-seen:
		t.Errorf("the other site was asked with %q", auth)
	default:
	}
}

// TestRedirect proves that a registry may send on to its storage, and that the storage sees no credential.
func TestRedirect(t *testing.T) {
	t.Parallel()
	for _, bearer := range []bool{false, true} {
		h := newHub(t)
		h.push(t, "ops/fleet:v1", fleet())
		seen := make(chan string, 10)
		storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- r.Header.Get("Authorization")
			h.inner.ServeHTTP(w, r)
		}))
		t.Cleanup(storage.Close)
		var token func() string
		if bearer {
			token = func() string { return h.URL + "/token" }
		}
		guard := guarded("me:open", token)
		h.set(func(w http.ResponseWriter, r *http.Request) bool {
			if guard(w, r) {
				return true
			}
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, strings.Replace(storage.URL, "127.0.0.1", "localhost", 1)+r.URL.Path,
					http.StatusTemporaryRedirect)
				return true
			}
			return false
		})
		s := h.source(t, "ops/fleet:v1")
		s.Credentials = credentials(t, docker("dock-pull", map[string]string{h.host: "me:open"}))
		if diff := cmp.Diff(fleetFiles, read(t, open(t, s).FS())); diff != "" {
			t.Error(diff)
		}
		close(seen)
		n := 0
		for auth := range seen {
			n++
			if auth != "" {
				t.Errorf("the storage was shown %q", auth)
			}
		}
		if n != 3 { // two layers and the configuration
			t.Errorf("the storage was asked %d times", n)
		}
	}
}

// TestHostile proves what is said of registries and images that lie, stall or break rules.
func TestHostile(t *testing.T) {
	long := strings.Repeat("x", oci.MaxManifest+1)
	answer := func(part, body string, status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, part) || r.Method == http.MethodHead {
				return false
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	h := newHub(t)
	sum := h.push(t, "ops/fleet:v1", fleet())
	bomb := h.push(t, "ops/bomb:v1", imagetest.Image(
		nil, imagetest.Gzip(imagetest.Tar(imagetest.File("configs/x", strings.Repeat("x", 1<<20))))))
	empty := h.push(t, "ops/empty:v1", imagetest.Image(configs("/catalog"),
		imagetest.Tar(imagetest.File("configs/x", ""))))
	escaping := h.push(t, "ops/escape:v1", imagetest.Image(configs("/configs/../../etc"),
		imagetest.Tar(imagetest.File("etc/x", ""))))
	hostile := h.push(t, "ops/hostile:v1", imagetest.Image(
		nil, imagetest.Tar(imagetest.Link("configs/x", "/etc/passwd"))))
	big := h.push(t, "ops/big:v1", imagetest.Image(
		nil, imagetest.Tar(imagetest.File("configs/x", strings.Repeat("x", 3<<20)))))
	limits := archive.Standard()
	limits.Ratio, limits.RatioFree, limits.Compressed = 20, 1<<10, 2<<20
	for name, c := range map[string]struct {
		ref  string
		bend func(http.ResponseWriter, *http.Request) bool
		kind errs.Kind
		says string
	}{
		"no such tag": {":v2", nil, errs.NotFound, "does not have it"},
		"a manifest that lies": {
			"@" + sum, answer("/manifests/", `{}`, 200), errs.Invalid,
			"the manifest is not what it says",
		},
		"a blob that lies": {"@" + sum, flip(h), errs.Invalid, "a blob is not what it says"},
		"a blob without end": {
			"@" + sum, answer("/blobs/", strings.Repeat("x", 10_000), 200), errs.Invalid,
			"is larger than",
		},
		"a blob that ends": {"@" + sum, answer("/blobs/", "x", 200), errs.Unavailable, "ended after"},
		"no manifest": {
			":v1", answer("/manifests/", `{"x":1}`, 200), errs.Invalid,
			"no manifest of an image",
		},
		"no JSON":                    {":v1", answer("/manifests/", `x`, 200), errs.Invalid, "cannot be read"},
		"a huge manifest":            {":v1", answer("/manifests/", long, 200), errs.TooLarge, "more than"},
		"a fault of the server":      {":v1", answer("/manifests/", "", 500), errs.Unavailable, "status 500"},
		"too many requests":          {":v1", answer("/manifests/", "", 429), errs.Unavailable, "status 429"},
		"an answer of no sense":      {":v1", answer("/manifests/", "", 204), errs.Invalid, "status 204"},
		"a decompression bomb":       {"bomb@" + bomb, nil, errs.TooLarge, `layer 1 of the image: entry "configs/x"`},
		"no catalog in it":           {"empty@" + empty, nil, errs.Invalid, "no directory /catalog"},
		"a label that escapes":       {"escape@" + escaping, nil, errs.Invalid, "outside of the image"},
		"a link that leaves":         {"hostile@" + hostile, nil, errs.Invalid, `entry "x" is a link`},
		"layers too large":           {"big@" + big, nil, errs.TooLarge, "more than 2097152 bytes"},
		"a registry without TLS":     {"tls:v1", nil, errs.Invalid, "insecure"},
		"a registry that is not one": {":v1", answer("/v2/", "", 200), errs.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) { // serial: the hub is bent for each
			at := "ops/" + c.ref
			if !strings.ContainsAny(c.ref[:1], "bhet") {
				at = "ops/fleet" + c.ref
			}
			h.set(c.bend)
			s := h.source(t, at)
			s.Limits = limits
			s.Insecure = !strings.HasPrefix(c.ref, "tls")
			_, err := oci.Open(t.Context(), s)
			if errs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), s.Image) {
				t.Errorf("%v\nis %s, want %s with %q", err, errs.KindOf(err), c.kind, c.says)
			}
			if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// flip changes one bit of each blob.
func flip(h *hub) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		rec := httptest.NewRecorder()
		h.inner.ServeHTTP(rec, r)
		b := rec.Body.Bytes()
		b[len(b)/2] ^= 1
		_, _ = w.Write(b)
		return true
	}
}

// TestStall proves that a registry that falls silent, at once or in the midst, holds nobody longer than
// the bound, and that a look ends with its context.
func TestStall(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "ops/fleet:v1", fleet())
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	for name, part := range map[string]string{
		"at once": "/v2/", "at the manifest": "/manifests/",
		"within a blob": "/blobs/",
	} {
		h.set(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, part) {
				return false
			}
			if part == "/blobs/" {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-gone:
			case <-r.Context().Done():
			}
			return true
		})
		s := h.source(t, "ops/fleet:v1")
		s.Stall = 50 * time.Millisecond
		if _, err := oci.Open(t.Context(), s); !errs.Is(err, errs.Unavailable) ||
			!strings.Contains(err.Error(), "silent for 50ms") {
			t.Errorf("%s: %v", name, err)
		}
		s.Stall = time.Hour
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errs.New(errs.Unavailable, "enough"))
		_, err := oci.Open(ctx, s)
		cancel()
		if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "enough") {
			t.Errorf("%s: a look that ends gives %v", name, err)
		}
	}
}

// TestLayout proves that a layout on disk gives the same as a registry, by tag, digest and name, and what is
// said of layouts that are none.
func TestLayout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	img := fleet()
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	add := func(img v1.Image, ref string) {
		t.Helper()
		if err := path.AppendImage(img, layout.WithAnnotations(
			map[string]string{"org.opencontainers.image.ref.name": ref})); err != nil {
			t.Fatal(err)
		}
	}
	add(img, "v1")
	s := oci.Source{Layout: dir, Temp: t.TempDir(), Limits: archive.Standard()}
	for _, ref := range []string{"", "v1", sum.String()} {
		s.Reference = ref
		tree := open(t, s)
		if diff := cmp.Diff(fleetFiles, read(t, tree.FS())); diff != "" || tree.Digest != sum.String() ||
			tree.Resolved != sum.String() {
			t.Errorf("%q: %s, %s", ref, tree.Resolved, diff)
		}
		if got, _, err := oci.Probe(t.Context(), s); err != nil || got != sum.String() {
			t.Errorf("Probe = %s, %v", got, err)
		}
	}
	add(imagetest.Image(nil, imagetest.Tar(imagetest.File("configs/a", "2"))), "registry.dock.test/fleet:v2")
	for ref, want := range map[string]errs.Kind{
		"v2": "", "registry.dock.test/fleet:v2": "", "": errs.Invalid,
		"v3": errs.NotFound, "sha256:" + strings.Repeat("0", 64): errs.NotFound,
	} {
		s.Reference = ref
		tree, err := oci.Open(t.Context(), s)
		if errs.KindOf(err) != want {
			t.Errorf("%q: %v, want kind %q", ref, err, want)
		}
		if err == nil {
			closing(t, tree)
		}
	}
	s.Reference = "v1"
	blob := filepath.Join(dir, "blobs", "sha256", sum.Hex)
	if err := os.WriteFile(blob, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := oci.Open(t.Context(), s); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "lies or is damaged") {
		t.Errorf("a blob that was changed: %v", err)
	}
	for name, file := range map[string]string{
		"no layout": "", "an old one": `{"imageLayoutVersion":"0.9"}`,
		"no JSON": "x",
	} {
		s.Layout = t.TempDir()
		if file != "" {
			if err := os.WriteFile(filepath.Join(s.Layout, "oci-layout"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := oci.Open(t.Context(), s); err == nil || !strings.Contains(err.Error(), s.Layout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCache proves that blobs are fetched once, that one which rotted is fetched again, that another
// repository does not find them, and that the oldest go first.
func TestCache(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	sum := h.push(t, "ops/fleet:v1", fleet())
	h.push(t, "other/fleet:v1", fleet())
	dir := t.TempDir()
	clock := time.Unix(1_000_000, 0)
	cache := &oci.Cache{Dir: dir, Max: 1 << 20, Now: func() time.Time { clock = clock.Add(time.Second); return clock }}
	fetched := func(at string) int {
		t.Helper()
		h.set(nil)
		s := h.source(t, at)
		s.Cache = cache
		if diff := cmp.Diff(fleetFiles, read(t, open(t, s).FS())); diff != "" {
			t.Error(diff)
		}
		return len(h.asked("/blobs/"))
	}
	for i, want := range []int{3, 0} {
		if n := fetched("ops/fleet@" + sum); n != want {
			t.Errorf("look %d fetched %d blobs, want %d", i, n, want)
		}
	}
	if n := fetched("other/fleet:v1"); n != 3 {
		t.Errorf("another repository fetched %d blobs, want all 3", n)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(blobs) != 6 {
		t.Fatalf("%d blobs are kept (%v)", len(blobs), err)
	}
	for _, b := range blobs {
		info, err := os.Stat(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b, make([]byte, info.Size()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := h.source(t, "ops/fleet:v1")
	s.Cache = cache
	for range 3 { // each look finds one rotten blob
		if _, err := oci.Open(t.Context(), s); !errs.Is(err, errs.Invalid) {
			t.Errorf("a rotten blob: %v", err)
		}
	}
	if n := fetched("ops/fleet:v1"); n == 0 {
		t.Error("rotten blobs are still taken")
	}
	cache.Max = 1 // less than any blob: nothing is kept any more
	h.push(t, "new/fleet:v1", fleet())
	if n := fetched("new/fleet:v1"); n != 3 {
		t.Errorf("%d blobs fetched, want 3", n)
	}
}
