package archive_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/credential"
)

func secrets(t *testing.T, list ...source.Secret) *credential.Set {
	t.Helper()
	s, err := credential.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func opened(t *testing.T, s archive.Source) *archive.Tree {
	t.Helper()
	tree, err := archive.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// TestFile proves that an archive on disk is unpacked, and that its fingerprint moves with it.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fleet")
	s := archive.Source{Path: path, Subdirectory: "fleet/", Temp: t.TempDir(), Limits: archive.Standard()}
	if _, err := archive.Probe(t.Context(), s); !errs.Is(err, errs.NotFound) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, pack(t, file("fleet/a", "1")), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := archive.Probe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	tree := opened(t, s)
	if diff := cmp.Diff(map[string]string{"a": "1"}, read(t, tree.FS())); diff != "" || tree.Fingerprint != before ||
		!strings.HasPrefix(tree.Digest, "sha256:") {
		t.Errorf("fingerprint %s of %s, digest %s; %s", tree.Fingerprint, before, tree.Digest, diff)
	}
	if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if after, err := archive.Probe(t.Context(), s); err != nil || after == before {
		t.Errorf("a file of another time has the same fingerprint (%v)", err)
	}
	s.Subdirectory = "none"
	if _, err := archive.Open(t.Context(), s); !errs.Is(err, errs.NotFound) ||
		!strings.Contains(err.Error(), `"none"`) {
		t.Errorf("a subdirectory that is not there: %v", err)
	}
	s.Path = t.TempDir()
	if _, err := archive.Open(t.Context(), s); !errs.Is(err, errs.Invalid) {
		t.Errorf("a directory: %v", err)
	}
}

// TestURL proves fetching with a validator, without one, with credentials, and what each refusal says.
func TestURL(t *testing.T) {
	t.Parallel()
	content := gz(t, pack(t, file("a", "1")))
	mux := http.NewServeMux()
	mux.HandleFunc("/etag", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1"`)
		_, _ = w.Write(content)
	})
	mux.HandleFunc("/modified", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x", time.Unix(1, 0), strings.NewReader(string(content)))
	})
	mux.HandleFunc("/bare", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	mux.HandleFunc("GET /getonly", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			http.Error(w, "", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("ETag", `"2"`)
		_, _ = w.Write(content)
	})
	mux.HandleFunc("/private", func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name+password != "meopen" &&
			r.Header.Get("Authorization") != "Bearer open" {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(content)
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(content[:20])
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code := 0
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		http.Error(w, "", code)
	})
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(
			w, r, "/circle", http.StatusFound)
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	ca := caSecret(server)
	basic := source.Secret{Name: "me", Kind: source.Basic, Value: []byte(`{"username":"me","password":"open"}`)}
	wrong := source.Secret{Name: "me", Kind: source.Basic, Value: []byte(`{"username":"me","password":"hunter2"}`)}
	token := source.Secret{Name: "t", Kind: source.Token, Value: []byte(`{"token":"open"}`)}
	for _, c := range []struct {
		path    string
		secrets []source.Secret
		probed  bool
		kind    errs.Kind
		says    string
	}{
		{"/etag", nil, true, "", ""},
		{"/modified", nil, true, "", ""},
		{"/bare", nil, false, "", ""},
		{"/getonly", nil, true, "", ""},
		{"/private", []source.Secret{basic}, false, "", ""},
		{"/private", []source.Secret{token}, false, "", ""},
		{"/private", nil, false, errs.Forbidden, "asks for a credential"},
		{"/private", []source.Secret{wrong}, false, errs.Forbidden, "refuses the credential"},
		{"/cut", nil, false, errs.Unavailable, "broke off"},
		{"/status/404", nil, false, errs.NotFound, "status 404"},
		{"/status/503", nil, false, errs.Unavailable, "status 503"},
		{"/status/429", nil, false, errs.Unavailable, "status 429"},
		{"/status/400", nil, false, errs.Invalid, "status 400"},
		{"/circle", nil, false, errs.Invalid, "more than 5 times"},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			s := archive.Source{
				URL: server.URL + c.path + "?signature=hidden", Temp: t.TempDir(),
				Limits: archive.Standard(), Credentials: secrets(t, append(c.secrets, ca)...),
			}
			probe, perr := archive.Probe(t.Context(), s)
			tree, err := archive.Open(t.Context(), s)
			if errs.KindOf(err) != c.kind || err != nil &&
				(!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") ||
					strings.Contains(err.Error(), "hunter2")) {
				t.Fatalf("Open: %v, want kind %q and %q", err, c.kind, c.says)
			}
			if c.kind != "" {
				return
			}
			defer func() { _ = tree.Close() }()
			if perr != nil || (probe != "") != c.probed || c.probed && probe != tree.Fingerprint || !c.probed &&
				tree.Fingerprint != tree.Digest {
				t.Errorf("probe %q (%v), fingerprint %q, digest %q", probe, perr, tree.Fingerprint, tree.Digest)
			}
			if diff := cmp.Diff(map[string]string{"a": "1"}, read(t, tree.FS())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func caSecret(server *httptest.Server) source.Secret {
	return source.Secret{Name: "ca", Kind: source.CA, Value: fmt.Appendf(
		nil, `{"certificates":%q}`, pemOf(server.Certificate().Raw))}
}
