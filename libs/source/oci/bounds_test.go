package oci_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

// TestManifestElsewhere proves that a manifest has its own small bound wherever the registry sends on to
// (R-CAT-60; issue: hostile input).
func TestManifestElsewhere(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "ops/fleet:v1", fleet())
	read := 0
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.Contains(r.URL.Path, "/manifests/"):
			http.Redirect(w, r, "/storage/x", http.StatusTemporaryRedirect)
		case r.URL.Path == "/storage/x" && r.Method == http.MethodGet:
			read++
			_, _ = w.Write([]byte(`{"padding":"` + strings.Repeat("x", oci.MaxManifest) + `"}`))
		default:
			return false
		}
		return true
	})
	tree, err := oci.Open(t.Context(), h.source(t, "ops/fleet:v1"))
	if !errs.Is(err, errs.TooLarge) || tree != nil || read == 0 {
		t.Errorf("%v, want too-large after the answer was asked for (%d times)", err, read)
	}
}

// TestTLSNearby proves that a registry with TLS on an address that is usually without is read, with
// insecure and without.
func TestTLSNearby(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	at := strings.TrimPrefix(s.URL, "https://") + "/ops/fleet:v1"
	ref, err := name.NewTag(at)
	if err != nil {
		t.Fatal(err)
	}
	client := s.Client()
	if err := remote.Write(ref, fleet(), remote.WithTransport(upgraded{client.Transport})); err != nil {
		t.Fatal(err)
	}
	client.CloseIdleConnections()
	value, err := json.Marshal(map[string]string{"certificates": string(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))})
	if err != nil {
		t.Fatal(err)
	}
	set, err := credential.Parse([]source.Secret{{Name: "dock-ca", Kind: source.CA, Value: value}})
	if err != nil {
		t.Fatal(err)
	}
	for _, insecure := range []bool{false, true} {
		tree := open(t, oci.Source{
			Image: at, Credentials: set, Insecure: insecure, Temp: t.TempDir(),
			Limits: archive.Standard(),
		})
		if tree.Empty() {
			t.Errorf("insecure %t: nothing was read", insecure)
		}
	}
}

// upgraded asks with TLS whatever the library takes an address for.
type upgraded struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u upgraded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "https"
	return u.inner.RoundTrip(r)
}

// TestNamedByContent proves that an image that a catalog names is asked without TLS only at hosts of the
// settings, and not at all at addresses of this machine that the catalog itself did not come from.
func TestNamedByContent(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "ops/fleet:v1", fleet())
	for name, c := range map[string]struct {
		named *oci.Named
		says  string
	}{
		"by an administrator":        {nil, ""},
		"the registry of the source": {&oci.Named{Hosts: []string{"127.0.0.1"}, Origin: "127.0.0.1"}, ""},
		"a mirror": {&oci.Named{
			Hosts:  []string{"catalog.dock.test", "127.0.0.1"},
			Origin: "catalog.dock.test",
		}, ""},
		"a catalog of this machine": {&oci.Named{}, ""},
		"another host beside it": {
			&oci.Named{Hosts: []string{"127.0.0.2"}, Origin: "127.0.0.2"},
			"for its own host and its mirrors alone",
		},
		"from far away": {
			&oci.Named{Hosts: []string{"203.0.113.7"}, Origin: "203.0.113.7"},
			"add a mirror for the image",
		},
	} {
		s := h.source(t, "ops/fleet:v1")
		s.Named = c.named
		tree, err := oci.Open(t.Context(), s)
		if tree != nil {
			closing(t, tree)
		}
		if (err == nil) != (c.says == "") || err != nil &&
			(!strings.Contains(err.Error(), c.says) || !errs.Is(err, errs.Invalid)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
