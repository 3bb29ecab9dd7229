package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// played is a server whose answers a test makes up.
type played struct {
	api.UnimplementedRegistryServer

	packages []*api.Package
	bundles  []*api.Bundle
	get      func(ctx context.Context, q *api.GetBundleRequest) (*api.Bundle, error)
	ended    error         // how ListBundles ends
	stall    chan struct{} // ListBundles waits for it before its end
	asked    int           // how often the heads were asked for
	moved    []*api.Package
}

func (p *played) ListPackages(_ *api.ListPackageRequest, s grpc.ServerStreamingServer[api.PackageName]) error {
	p.asked++
	if p.asked > 1 && p.moved != nil {
		p.packages = p.moved
	}
	for _, pkg := range p.packages {
		if err := s.Send(&api.PackageName{Name: pkg.GetName()}); err != nil {
			return err
		}
	}
	return nil
}

func (p *played) GetPackage(_ context.Context, q *api.GetPackageRequest) (*api.Package, error) {
	for _, pkg := range p.packages {
		if pkg.GetName() == q.GetName() {
			return pkg, nil
		}
	}
	return nil, status.Error(codes.NotFound, "no such package")
}

func (p *played) GetBundle(ctx context.Context, q *api.GetBundleRequest) (*api.Bundle, error) {
	return p.get(ctx, q)
}

func (p *played) ListBundles(_ *api.ListBundlesRequest, s grpc.ServerStreamingServer[api.Bundle]) error {
	for _, b := range p.bundles {
		if err := s.Send(b); err != nil {
			return err
		}
	}
	if p.stall != nil {
		select {
		case <-p.stall:
		case <-s.Context().Done():
		}
	}
	return p.ended
}

// tide is a catalog of one package with one bundle, whose manifests come with GetBundle.
func tide() *played {
	b := &api.Bundle{
		CsvName: "tide.v1", PackageName: "tide", ChannelName: "stable", BundlePath: "registry.sea.test/tide:1",
		Version: "1.0.0", ProvidedApis: []*api.GroupVersionKind{
			{Group: "sea.test", Version: "v1", Kind: "Tide", Plural: "tides"},
		},
		Dependencies: []*api.Dependency{
			{Type: "olm.gvk", Value: `{"group":"sea.test","version":"v1","kind":"Moon"}`},
			{Type: "olm.package", Value: `{"packageName":"moon","version":">=1.0.0"}`},
		},
	}
	return &played{
		packages: []*api.Package{{
			Name: "tide", DefaultChannelName: "stable",
			Channels: []*api.Channel{{Name: "stable", CsvName: "tide.v1"}},
		}},
		bundles: []*api.Bundle{b},
		get: func(context.Context, *api.GetBundleRequest) (*api.Bundle, error) {
			return &api.Bundle{
				CsvName: b.GetCsvName(), PackageName: b.GetPackageName(), BundlePath: b.GetBundlePath(),
				Version: b.GetVersion(), ProvidedApis: b.GetProvidedApis(), Dependencies: b.GetDependencies(),
				CsvJson: `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"tide.v1"},"spec":{"displayName":"Tide","description":"It rises","icon":[{"base64data":"PHN2Zy8+","mediatype":"image/svg+xml"}]}}`,
			}, nil
		},
	}
}

func play(t *testing.T, p *played, more ...grpc.ServerOption) Options {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(more...)
	api.RegisterRegistryServer(g, p)
	done := make(chan error, 1)
	go func() { done <- g.Serve(ln) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return Options{Address: ln.Addr().String(), Insecure: true, Dir: t.TempDir()}
}

// TestOldServer: one that knows no properties says the same in other fields; description and icon of
// the package are those of the head.
func TestOldServer(t *testing.T) {
	t.Parallel()
	tree, _, end, err := Open(t.Context(), play(t, tide()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := load.Load(tree, load.Options{})
	if err != nil || len(c.Findings) > 0 || len(c.Packages) != 1 {
		t.Fatalf("%v, %v", err, c.Findings)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	p := c.Packages[0]
	var types []string
	for _, property := range p.Bundles[0].Properties {
		types = append(types, property.Type)
	}
	if got := strings.Join(types, " "); got != "olm.package olm.gvk olm.gvk.required olm.package.required" {
		t.Errorf("properties are %s", got)
	}
	if p.Description != "It rises" || p.Icon == nil || string(p.Icon.Data) != "<svg/>" {
		t.Errorf("the package shows %q, %v", p.Description, p.Icon)
	}
}

// TestCSVAlone: where an image holds the manifests, a CSV without them is no content, real as it may be.
func TestCSVAlone(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]bool{"registry.sea.test/tide:1": false, "": true} {
		p := tide()
		p.bundles[0].BundlePath = image
		p.bundles[0].CsvJson = `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"tide.v1"},"spec":{"version":"1.0.0","displayName":"Tide","install":{"strategy":"deployment","spec":{"deployments":[{"name":"tide","spec":{}}]}}}}`
		tree, _, end, err := Open(t.Context(), play(t, p))
		if err != nil {
			t.Fatal(err)
		}
		c, err := load.Load(tree, load.Options{})
		if err != nil || len(c.Packages) != 1 {
			t.Fatalf("%v, %v", err, c.Findings)
		}
		b := c.Packages[0].Bundles[0]
		if has := b.Content != ""; has != want || !strings.Contains(string(b.Metadata), "Tide") {
			t.Errorf("image %q: content %q, metadata %s", image, b.Content, b.Metadata)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// TestRefused: what is half, stalls, lies or is too much is refused whole, with a kind that says what
// can be done (issue: hostile and broken input), and leaves nothing on disk.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*played, *Options)
		kind   errs.Kind
		says   string
	}{
		"half a stream": {
			func(p *played, _ *Options) { p.ended = status.Error(codes.Aborted, "restarting") },
			errs.Unavailable, "restarting",
		},
		"an early end": {func(p *played, _ *Options) { p.bundles = nil }, errs.Unavailable, "lists no bundle"},
		"a stall": {func(p *played, o *Options) {
			p.stall, o.Stall = make(chan struct{}),
				50*time.Millisecond
		}, errs.Unavailable, "sent nothing for 50ms"},
		"a stalled bundle": {
			func(p *played, o *Options) { p.get, o.Stall = waits, 50*time.Millisecond },
			errs.Unavailable, "sent nothing for 50ms",
		},
		"a repeated entry": {
			func(p *played, _ *Options) { p.bundles = append(p.bundles, p.bundles[0]) },
			errs.Unavailable, "twice",
		},
		"an unnamed package": {func(p *played, _ *Options) {
			p.bundles = append(p.bundles, &api.Bundle{CsvName: "x", PackageName: "moon"})
		}, errs.Unavailable, "did not name"},
		"another bundle": {func(p *played, _ *Options) {
			p.get = func(context.Context, *api.GetBundleRequest) (*api.Bundle, error) {
				return &api.Bundle{CsvName: "x"}, nil
			}
		}, errs.Unavailable, "when asked for"},
		"another package": {func(p *played, _ *Options) {
			p.packages = append(p.packages, &api.Package{Name: "moon"})
			p.moved = p.packages[:1]
		}, errs.Unavailable, "changed its catalog"},
		"a forbidden call": {
			func(p *played, _ *Options) { p.ended = status.Error(codes.PermissionDenied, "no") },
			errs.Forbidden, "no",
		},
		"no list of bundles": {func(p *played, _ *Options) {
			p.ended = status.Error(
				codes.Unimplemented, "unknown method")
		}, errs.Invalid, "before ListBundles"},
		"a huge answer": {func(_ *played, o *Options) {
			o.limits = limits{
				message: 100, packages: 9, entries: 9,
				bytes: 9999,
			}
		}, errs.TooLarge, "more than 100 bytes"},
		"many packages": {func(_ *played, o *Options) {
			o.limits = limits{
				message: 9999, packages: 0, entries: 9,
				bytes: 9999,
			}
		}, errs.TooLarge, "more than 0 packages"},
		"many entries": {func(_ *played, o *Options) {
			o.limits = limits{
				message: 9999, packages: 9, entries: 0,
				bytes: 9999,
			}
		}, errs.TooLarge, "more than 0 channel entries"},
		"many bytes": {func(_ *played, o *Options) {
			o.limits = limits{
				message: 9999, packages: 9, entries: 9,
				bytes: 300,
			}
		}, errs.TooLarge, "more than 300 bytes"},
		"a broken property": {func(p *played, _ *Options) {
			p.bundles[0].BundlePath, p.bundles[0].Properties = "", []*api.Property{{Type: "sea.test/x", Value: "{"}}
		}, errs.Invalid, "no JSON"},
		"a broken CSV": {func(p *played, _ *Options) { p.bundles[0].CsvJson = "[]" }, errs.Invalid, "csvJson"},
		"no port": {
			func(_ *played, o *Options) { o.Address = "catalog.sea.test" }, errs.Invalid,
			"host:port",
		},
		"a scheme": {
			func(_ *played, o *Options) { o.Address = "unix:///run/x.sock" }, errs.Invalid,
			"host:port",
		},
		"a token in the clear": {func(_ *played, o *Options) { o.Token = "x" }, errs.Invalid, "in the clear"},
		"a CA that is none": {
			func(_ *played, o *Options) { o.Insecure, o.CA = false, []byte("x") }, errs.Invalid,
			"PEM",
		},
		"nobody there": {
			func(_ *played, o *Options) { o.Address = "127.0.0.1:1" }, errs.Unavailable,
			"dialing: connect: connection refused",
		},
		"no TLS": {func(_ *played, o *Options) { o.Insecure = false }, errs.Invalid, "secret of kind ca"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tide()
			o := play(t, p)
			c.change(p, &o)
			_, _, _, err := Open(t.Context(), o)
			if errs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %s %v, want %s %q", errs.KindOf(err), err, c.kind, c.says)
			}
			if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
		})
	}
}

func waits(ctx context.Context, _ *api.GetBundleRequest) (*api.Bundle, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestEnd: the end of the caller is no fault of the server.
func TestEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := tide()
	p.get = func(inner context.Context, q *api.GetBundleRequest) (*api.Bundle, error) {
		cancel()
		return waits(inner, q)
	}
	if _, _, _, err := Open(ctx, play(t, p)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestFingerprint: a new edge behind an old head counts, the order of answers does not (R-CAT-65).
func TestFingerprint(t *testing.T) {
	t.Parallel()
	p := tide()
	p.bundles = append(p.bundles, &api.Bundle{
		CsvName: "tide.v0", PackageName: "tide", ChannelName: "stable",
		BundlePath: "registry.sea.test/tide:0",
	})
	o := play(t, p)
	probe := func() string {
		f, err := Probe(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := probe()
	p.bundles[0], p.bundles[1] = p.bundles[1], p.bundles[0]
	if probe() != first {
		t.Error("another order is another fingerprint")
	}
	p.bundles[0].Skips = []string{"tide.v00"}
	if probe() == first {
		t.Error("a new edge is the same fingerprint")
	}
}

// TestSecure: TLS with a certificate of the site's own authority, and a token (R-DIS-4).
func TestSecure(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	guard := func(ctx context.Context) error {
		md, _ := metadata.FromIncomingContext(ctx)
		if v := md.Get("authorization"); len(v) != 1 || v[0] != "Bearer pass" {
			return status.Error(codes.Unauthenticated, "who is there?")
		}
		return nil
	}
	o := play(t, tide(),
		grpc.Creds(credentials.NewServerTLSFromCert(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})),
		grpc.UnaryInterceptor(func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (
			any, error,
		) {
			if err := guard(ctx); err != nil {
				return nil, err
			}
			return next(ctx, q)
		}),
		grpc.StreamInterceptor(func(s any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
			next grpc.StreamHandler,
		) error {
			if err := guard(stream.Context()); err != nil {
				return err
			}
			return next(s, stream)
		}))
	o.Insecure, o.Token = false, "pass"
	if _, err := Probe(t.Context(), o); !errs.Is(err, errs.Invalid) {
		t.Errorf("an unknown authority: %v", err)
	}
	o.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if _, err := Probe(t.Context(), o); err != nil {
		t.Error(err)
	}
	o.Token = "wrong"
	if _, err := Probe(t.Context(), o); !errs.Is(err, errs.Forbidden) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong token: %v", err)
	}
}
