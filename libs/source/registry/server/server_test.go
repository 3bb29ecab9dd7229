package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
	"github.com/chandler-fleet/chandler/libs/source/internal/sourcetest"
	"github.com/chandler-fleet/chandler/libs/source/registry/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// document has a channel whose head skips one entry and replaces another, each kind of deprecation, and
// a document of a schema without a meaning.
const document = `
{schema: olm.package, name: tide, defaultChannel: stable, description: Of the package, icon: {base64data: PHN2Zy8+, mediatype: image/svg+xml}}
---
{schema: olm.channel, package: tide, name: stable, entries: [{name: tide.v1}, {name: tide.v2, replaces: tide.v1}, {name: tide.v3, replaces: tide.v1, skips: [tide.v2, tide.v0], skipRange: '<3.0.0'}]}
---
{schema: olm.channel, package: tide, name: old, entries: [{name: tide.v1}]}
---
{schema: olm.bundle, package: tide, name: tide.v1, image: 'registry.sea.test/tide:1', properties: [{type: olm.package, value: {packageName: tide, version: 1.0.0}}]}
---
{schema: olm.bundle, package: tide, name: tide.v2, image: 'registry.sea.test/tide:2', properties: [{type: olm.package, value: {packageName: tide, version: 2.0.0}}, {type: olm.gvk, value: {group: sea.test, version: v1, kind: Tide}}]}
---
schema: olm.bundle
package: tide
name: tide.v3
image: registry.sea.test/tide:3
relatedImages: [{name: pump, image: 'registry.sea.test/pump:3'}]
properties:
- {type: olm.package, value: {packageName: tide, version: 3.0.0}}
- {type: olm.gvk, value: {group: sea.test, version: v1, kind: Tide}}
- {type: olm.gvk.required, value: {group: sea.test, version: v1, kind: Moon}}
- {type: olm.package.required, value: {packageName: moon, versionRange: '>=1.0.0'}}
- {type: olm.csv.metadata, value: {annotations: {capabilities: Basic Install}, displayName: Tide, crdDescriptions: {owned: [{name: tides.sea.test, version: v1, kind: Tide}]}}}
---
{schema: olm.deprecations, package: tide, entries: [{reference: {schema: olm.package}, message: use moon}, {reference: {schema: olm.channel, name: old}, message: use stable}, {reference: {schema: olm.bundle, name: tide.v1}, message: use v3}]}
---
{schema: sea.test/chart, package: tide, name: bay, depth: 12}
---
{schema: sea.test/chart, name: nobody}
`

// start serves a catalog and returns a connection to it.
func start(t *testing.T, s *server.Server) *grpc.ClientConn {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return conn
}

func load(t *testing.T, text string) server.Catalog {
	t.Helper()
	c, store := sourcetest.Load(t, fstest.MapFS{"catalog.yaml": {Data: []byte(text)}})
	return server.Loaded(c, store.Content)
}

func served(t *testing.T) *grpc.ClientConn {
	t.Helper()
	s, err := server.New(t.Context(), load(t, document), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, s)
}

// all reads a stream to its end.
func all[A any](t *testing.T, s grpc.ServerStreamingClient[A], err error) ([]*A, error) {
	t.Helper()
	var out []*A
	for err == nil {
		var a *A
		if a, err = s.Recv(); err == nil {
			out = append(out, a)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return out, err
}

// TestPackage: R-CAT-70, R-CAT-13.
func TestPackage(t *testing.T) {
	t.Parallel()
	c := api.NewRegistryClient(served(t))
	s, err := c.ListPackages(t.Context(), &api.ListPackageRequest{})
	names, err := all(t, s, err)
	if err != nil || len(names) != 1 || names[0].GetName() != "tide" {
		t.Errorf("packages %v, %v", names, err)
	}
	p, err := c.GetPackage(t.Context(), &api.GetPackageRequest{Name: "tide"})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{p.GetDefaultChannelName(), p.GetDeprecation().GetMessage()}
	for _, ch := range p.GetChannels() {
		got = append(got, ch.GetName(), ch.GetCsvName(), ch.GetDeprecation().GetMessage())
	}
	if d := cmp.Diff([]string{"stable", "use moon", "old", "tide.v1", "use stable", "stable", "tide.v3", ""},
		got); d != "" {
		t.Error(d)
	}
	if _, err := c.GetPackage(t.Context(), &api.GetPackageRequest{Name: "moon"}); status.Code(err) != codes.NotFound {
		t.Errorf("a package that is not there: %v", err)
	}
}

// TestBundle: R-CAT-71. A CSV for display is made of olm.csv.metadata, with what the package shows.
func TestBundle(t *testing.T) {
	t.Parallel()
	c := api.NewRegistryClient(served(t))
	b, err := c.GetBundle(t.Context(), &api.GetBundleRequest{
		PkgName: "tide", ChannelName: "stable",
		CsvName: "tide.v3",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.GetObject(), []string{b.GetCsvJson()}) {
		t.Errorf("object[] is %v", b.GetObject())
	}
	var csv any
	if err := json.Unmarshal([]byte(b.GetCsvJson()), &csv); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"name": "tide.v3", "annotations": map[string]any{"capabilities": "Basic Install"}},
		"spec": map[string]any{
			"displayName": "Tide", "description": "Of the package", "version": "3.0.0",
			"icon":          []any{map[string]any{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}},
			"install":       map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": nil}},
			"relatedImages": []any{map[string]any{"name": "pump", "image": "registry.sea.test/pump:3"}},
			"customresourcedefinitions": map[string]any{
				"owned": []any{map[string]any{"name": "tides.sea.test", "version": "v1", "kind": "Tide"}},
			},
		},
	}
	if d := cmp.Diff(want, csv); d != "" {
		t.Errorf("csvJson (-want +got):\n%s", d)
	}
	facts := []string{
		b.GetCsvName(), b.GetPackageName(), b.GetChannelName(), b.GetBundlePath(), b.GetVersion(),
		b.GetSkipRange(), b.GetReplaces(), strings.Join(b.GetSkips(), " "),
	}
	for _, g := range b.GetProvidedApis() {
		facts = append(facts, "provides "+g.GetKind())
	}
	for _, g := range b.GetRequiredApis() {
		facts = append(facts, "requires "+g.GetKind())
	}
	for _, p := range b.GetProperties() {
		facts = append(facts, p.GetType())
	}
	for _, d := range b.GetDependencies() {
		facts = append(facts, d.GetType()+" "+sorted(t, d.GetValue()))
	}
	if d := cmp.Diff([]string{
		"tide.v3", "tide", "stable", "registry.sea.test/tide:3", "3.0.0", "<3.0.0", "tide.v1", "tide.v2 tide.v0",
		"provides Tide", "requires Moon", "olm.package", "olm.gvk", "olm.gvk.required", "olm.package.required",
		`olm.gvk {"group":"sea.test","kind":"Moon","version":"v1"}`,
		`olm.package {"packageName":"moon","version":"\u003e=1.0.0"}`,
	}, facts); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	//nolint:staticcheck // old clients call it
	head, err := c.GetBundleForChannel(t.Context(), &api.GetBundleInChannelRequest{PkgName: "tide", ChannelName: "old"})
	if err != nil || head.GetCsvName() != "tide.v1" || head.GetDeprecation().GetMessage() != "use v3" ||
		head.GetCsvJson() != "" {
		t.Errorf("head of channel old is %v, %v", head, err)
	}
	for _, q := range []*api.GetBundleRequest{
		{PkgName: "moon", ChannelName: "stable", CsvName: "tide.v3"},
		{PkgName: "tide", ChannelName: "x", CsvName: "tide.v3"},
		{PkgName: "tide", ChannelName: "old", CsvName: "tide.v3"},
	} {
		if _, err := c.GetBundle(t.Context(), q); status.Code(err) != codes.NotFound {
			t.Errorf("%v: %v", q, err)
		}
	}
}

// sorted writes JSON with its fields in order.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestListBundles: every entry of every channel, manifests only where no image holds them.
func TestListBundles(t *testing.T) {
	t.Parallel()
	s, err := api.NewRegistryClient(served(t)).ListBundles(t.Context(), &api.ListBundlesRequest{})
	list, err := all(t, s, err)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range list {
		got = append(got, b.GetChannelName()+" "+b.GetCsvName())
		if b.GetCsvJson() != "" || len(b.GetObject()) > 0 {
			t.Errorf("%s comes with manifests", b.GetCsvName())
		}
	}
	if d := cmp.Diff([]string{"old tide.v1", "stable tide.v1", "stable tide.v2", "stable tide.v3"}, got); d != "" {
		t.Error(d)
	}
}

// TestReplaces: R-CAT-72. The two entries that replace tide.v1 are both edges; the one that another
// skips is no replacement.
func TestReplaces(t *testing.T) {
	t.Parallel()
	c := api.NewRegistryClient(served(t))
	for name, want := range map[string]string{
		"tide.v0": "tide.v3", "tide.v1": "tide.v3", "tide.v2": "tide.v3",
		"tide.v3": "", "tide.v9": "", "": "",
	} {
		b, err := c.GetBundleThatReplaces(t.Context(), &api.GetReplacementRequest{
			CsvName: name, PkgName: "tide", ChannelName: "stable",
		})
		if b.GetCsvName() != want || want == "" && status.Code(err) != codes.NotFound {
			t.Errorf("%q is replaced by %q, %v; want %q", name, b.GetCsvName(), err, want)
		}
	}
	s, err := c.GetChannelEntriesThatReplace(t.Context(), &api.GetAllReplacementsRequest{CsvName: "tide.v1"})
	edges(t, s, err, "stable tide.v2<tide.v1", "stable tide.v3<tide.v1")
	s, err = c.GetChannelEntriesThatReplace(t.Context(), &api.GetAllReplacementsRequest{CsvName: "tide.v3"})
	if _, err := all(t, s, err); status.Code(err) != codes.NotFound {
		t.Errorf("nothing replaces the head: %v", err)
	}
}

func edges(t *testing.T, s grpc.ServerStreamingClient[api.ChannelEntry], err error, want ...string) {
	t.Helper()
	list, err := all(t, s, err)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.GetChannelName()+" "+e.GetBundleName()+"<"+e.GetReplaces())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestProvides: of all entries every skipped name counts, of heads only those of the channel.
func TestProvides(t *testing.T) {
	t.Parallel()
	c := api.NewRegistryClient(served(t))
	s, err := c.GetChannelEntriesThatProvide(t.Context(),
		&api.GetAllProvidersRequest{Group: "sea.test", Version: "v1", Kind: "Tide", Plural: "tides"})
	edges(t, s, err, "stable tide.v2<tide.v1", "stable tide.v3<tide.v1", "stable tide.v3<tide.v2",
		"stable tide.v3<tide.v0")
	s, err = c.GetLatestChannelEntriesThatProvide(t.Context(),
		&api.GetLatestProvidersRequest{Group: "sea.test", Version: "v1", Kind: "Tide"})
	edges(t, s, err, "stable tide.v3<tide.v1", "stable tide.v3<tide.v2")
	b, err := c.GetDefaultBundleThatProvides(t.Context(), &api.GetDefaultProviderRequest{
		Group: "sea.test", Version: "v1", Kind: "Tide",
	})
	if err != nil || b.GetCsvName() != "tide.v3" {
		t.Errorf("%v, %v", b.GetCsvName(), err)
	}
	if _, err := c.GetDefaultBundleThatProvides(t.Context(),
		&api.GetDefaultProviderRequest{Group: "sea.test", Version: "v1", Kind: "Moon"}); status.Code(
		err) != codes.NotFound {
		t.Errorf("nobody provides the moon: %v", err)
	}
}

// TestCustomSchemas: only those who acknowledge that the call may change are answered.
func TestCustomSchemas(t *testing.T) {
	t.Parallel()
	c := api.NewExperimentalRegistryClient(served(t))
	ask := func(ctx context.Context, schema, pkg string) ([]*structpb.Struct, error) {
		s, err := c.ExperimentalListPackageCustomSchemas(
			ctx, &api.ExperimentalListPackageCustomSchemasRequest{Schema: schema, PackageName: pkg})
		return all(t, s, err)
	}
	if list, err := ask(t.Context(), "sea.test/chart", "tide"); err != nil || len(list) > 0 {
		t.Errorf("without the header: %v, %v", list, err)
	}
	known := metadata.AppendToOutgoingContext(t.Context(), "x-acknowledge-experimental", "true")
	for pkg, want := range map[string]string{"tide": "bay", "": "nobody"} {
		list, err := ask(known, "sea.test/chart", pkg)
		if err != nil || len(list) != 1 || list[0].GetFields()["name"].GetStringValue() != want {
			t.Errorf("package %q: %v, %v; want %s", pkg, list, err, want)
		}
	}
	if _, err := ask(known, "", "tide"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a schema: %v", err)
	}
}

// TestHealth: R-CAT-70, R-CAT-91.
func TestHealth(t *testing.T) {
	t.Parallel()
	c := healthpb.NewHealthClient(served(t))
	for _, service := range []string{"", "api.Registry"} {
		r, err := c.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, r.GetStatus(), err)
		}
	}
}

// TestReflection: tools learn the calls from the server.
func TestReflection(t *testing.T) {
	t.Parallel()
	s, err := reflectionpb.NewServerReflectionClient(served(t)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, service := range r.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	if !slices.Contains(names, "api.Registry") {
		t.Errorf("services %v", names)
	}
	if err := s.CloseSend(); err != nil {
		t.Error(err)
	}
}

// broken fails where it is told to.
type broken struct {
	server.Catalog

	pkg     catalog.Package
	err     error
	content error
}

func (b broken) Packages(context.Context) ([]string, error) { return []string{b.pkg.Name}, b.err }
func (b broken) Package(context.Context, string) (catalog.Package, error) {
	return b.pkg, b.err
}

func (b broken) Content(context.Context, digest.Digest) ([]json.RawMessage, error) {
	return nil, b.content
}

// TestReplace: the revision before is served until the new one is complete (issue: storage and change).
func TestReplace(t *testing.T) {
	t.Parallel()
	s, err := server.New(t.Context(), load(t, document), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := api.NewRegistryClient(start(t, s))
	head := func() string {
		p, err := c.GetPackage(t.Context(), &api.GetPackageRequest{Name: "tide"})
		if err != nil {
			t.Fatal(err)
		}
		return p.GetChannels()[len(p.GetChannels())-1].GetCsvName()
	}
	if err := s.Replace(t.Context(), broken{err: errs.New(errs.Unavailable, "away")}); !errs.Is(
		err, errs.Unavailable) || head() != "tide.v3" {
		t.Errorf("a revision that cannot be read: %v, head %s", err, head())
	}
	if err := s.Replace(t.Context(), load(t, strings.ReplaceAll(document, "tide.v3", "tide.v4"))); err != nil ||
		head() != "tide.v4" {
		t.Errorf("%v, head %s", err, head())
	}
}

// TestErrors: what goes wrong behind the server reaches the caller with a code; content that is not at
// hand is none of it.
func TestErrors(t *testing.T) {
	t.Parallel()
	pkg := catalog.Package{
		Name: "tide", DefaultChannel: "stable",
		Channels: []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{{Name: "tide.v1"}}}},
		Bundles: []catalog.Bundle{{
			Name: "tide.v1", Version: "1.0.0", Content: "sha256:0",
			Metadata: json.RawMessage(`{"displayName":"Tide"}`),
		}},
	}
	for kind, want := range map[errs.Kind]codes.Code{
		errs.NotFound: codes.OK, errs.Unavailable: codes.Unavailable, errs.Internal: codes.Internal,
		errs.Forbidden: codes.PermissionDenied,
	} {
		s, err := server.New(t.Context(), broken{pkg: pkg, content: errs.New(kind, "content")},
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c := api.NewRegistryClient(start(t, s))
		b, err := c.GetBundle(t.Context(), &api.GetBundleRequest{
			PkgName: "tide", ChannelName: "stable",
			CsvName: "tide.v1",
		})
		if status.Code(err) != want || want == codes.OK && !strings.Contains(b.GetCsvJson(), "Tide") {
			t.Errorf("%s: %v, %v; want %s", kind, b, err, want)
		}
	}
}

// TestUnordered: R-GRA-15. A channel without one head is left out and told of, and so is a package that
// has no other default.
func TestUnordered(t *testing.T) {
	t.Parallel()
	two := []catalog.Entry{{Name: "tide.v1"}, {Name: "tide.v2"}}
	bundles := []catalog.Bundle{{Name: "tide.v1"}, {Name: "tide.v2"}}
	for name, want := range map[string]int{"stable": 1, "forked": 0} {
		var told lines
		s, err := server.New(t.Context(), broken{pkg: catalog.Package{
			Name: "tide", DefaultChannel: name, Bundles: bundles,
			Channels: []catalog.Channel{{Name: "stable", Entries: two[:1]}, {Name: "forked", Entries: two}},
		}}, slog.New(slog.NewTextHandler(&told, nil)))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := api.NewRegistryClient(start(t, s)).ListBundles(t.Context(), &api.ListBundlesRequest{})
		list, err := all(t, stream, err)
		if err != nil || len(list) != want {
			t.Errorf("default channel %s: %v, %v", name, list, err)
		}
		if !strings.Contains(told.String(), "channel=forked") {
			t.Errorf("nobody was told of the channel: %s", told.String())
		}
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
