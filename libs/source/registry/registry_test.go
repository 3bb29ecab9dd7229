package registry_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/source/internal/sourcetest"
	"github.com/chandler-fleet/chandler/libs/source/registry"
	"github.com/chandler-fleet/chandler/libs/source/registry/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a catalog until the test ends and returns its address.
func serve(t *testing.T, c server.Catalog) string {
	t.Helper()
	s, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, func(g *grpc.Server) { s.Register(g) })
}

func listen(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	register(g)
	done := make(chan error, 1)
	go func() { done <- g.Serve(ln) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// read opens a server and loads what it holds.
func read(t *testing.T, o registry.Options) (*load.Catalog, string) {
	t.Helper()
	o.Insecure, o.Dir = true, t.TempDir()
	tree, fingerprint, end, err := registry.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := sourcetest.Load(t, tree)
	if err := end(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(o.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("closing leaves %v, %v", left, err)
	}
	return c, fingerprint
}

// TestRoundTrip: R-CAT-70, R-CAT-71. What the server was loaded from comes out of the client, but for
// what doc.go says.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	t.Run("examples", func(t *testing.T) {
		t.Parallel()
		roundTrip(t, "../../../examples/catalog", uncarried)
	})
	t.Run(catalogtest.Okderators, func(t *testing.T) {
		t.Parallel()
		roundTrip(t, catalogtest.Unpack(t, catalogtest.Okderators, nil), uncarried)
	})
}

// TestRoundTripReal: the same of larger catalogs.
func TestRoundTripReal(t *testing.T) {
	t.Parallel()
	t.Run(catalogtest.CertifiedFBC420, func(t *testing.T) {
		t.Parallel()
		roundTrip(t, catalogtest.Unpack(t, catalogtest.CertifiedFBC420, nil), uncarried)
	})
	t.Run(catalogtest.CertifiedFBC414, func(t *testing.T) {
		t.Parallel()
		// A part of the one with manifests inside: the rest shows nothing more.
		some := func(path string) bool { return strings.Contains(path, "/n") }
		// Its publisher lists more images than the CSVs do, and fixed some.
		roundTrip(t, catalogtest.Unpack(t, catalogtest.CertifiedFBC414, some), uncarried, noImages)
	})
}

// roundTrip serves a catalog and reads it: the same packages come out, but for the changes.
func roundTrip(t *testing.T, dir string, changes ...func(*catalog.Package)) {
	t.Helper()
	want, store := sourcetest.LoadAny(t, os.DirFS(dir))
	address := serve(t, server.Loaded(want, store.Content))
	got, fingerprint := read(t, registry.Options{Address: address})
	sourcetest.Same(t, got, want, changes...)
	again, err := registry.Probe(context.Background(), registry.Options{Address: address, Insecure: true})
	if err != nil || again != fingerprint {
		t.Errorf("probe returns %s, %v; opening returned %s", again, err, fingerprint)
	}
}

// uncarried takes out what the API does not carry.
func uncarried(p *catalog.Package) {
	p.Description, p.Icon, p.Properties, p.Other = "", nil, nil, nil
	for i := range p.Channels {
		p.Channels[i].Properties = nil
	}
	for i, b := range p.Bundles {
		p.Bundles[i].RelatedImages = slices.DeleteFunc(b.RelatedImages,
			func(r catalog.RelatedImage) bool { return r.Image == "" })
	}
}

func noImages(p *catalog.Package) {
	for i := range p.Bundles {
		p.Bundles[i].RelatedImages = nil
	}
}
