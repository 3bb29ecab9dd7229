package configmap

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/sourcetest"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dataOf writes a catalog of bundles with manifests in the form of a config map.
func dataOf(t *testing.T, c *load.Catalog, store *sourcetest.Store) map[string]string {
	t.Helper()
	crds, csvs := map[string]any{}, []any{}
	packages := []any{}
	for _, p := range c.Packages {
		channels := []any{}
		for _, ch := range p.Channels {
			channels = append(channels, map[string]any{"name": ch.Name, "currentCSV": catalog.Heads(ch)[0]})
		}
		packages = append(packages, map[string]any{
			"packageName": p.Name, "channels": channels,
			"defaultChannel": p.DefaultChannel,
		})
		for _, b := range p.Bundles {
			raw, err := store.Content(b.Content)
			if err != nil {
				t.Fatal(err)
			}
			var content bundle.Content
			if err := json.Unmarshal(raw, &content); err != nil {
				t.Fatal(err)
			}
			objects, err := content.Objects()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				var v any
				if err := json.Unmarshal(o.Raw, &v); err != nil {
					t.Fatal(err)
				}
				switch o.Kind {
				case bundle.KindCSV:
					csvs = append(csvs, v)
				case bundle.KindCRD:
					crds[o.Name] = v
				}
			}
		}
	}
	text := func(v any) string {
		raw, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	return map[string]string{
		keyCRDs: text(slices.Collect(maps.Values(crds))), keyCSVs: text(csvs),
		keyPackages: text(packages),
	}
}

// TestConvert: the config map holds the same catalog as the documents that it was made from, as far as a
// config map holds it: one CRD for all versions, and no dependencies.yaml.
func TestConvert(t *testing.T) {
	t.Parallel()
	want, store := sourcetest.Load(t, os.DirFS("../../../examples/catalog"))
	s, err := spool.New(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := convert(dataOf(t, want, store), s); err != nil {
		t.Fatal(err)
	}
	got, _ := sourcetest.Load(t, s.FS())
	sourcetest.Same(t, got, want, func(p *catalog.Package) {
		p.Description, p.Icon, p.Deprecations = "", nil, nil
		for i := range p.Channels {
			p.Channels[i].Entries = nil // compared below: an author's edges may differ from those of the CSVs
		}
		for i := range p.Bundles {
			p.Bundles[i].Content = ""
			p.Bundles[i].Properties = slices.DeleteFunc(p.Bundles[i].Properties, func(q catalog.Property) bool {
				return strings.HasSuffix(q.Type, ".required") || q.Type == catalog.TypeConstraint
			})
		}
	})
	for i, p := range got.Packages {
		if p.Bundles[0].Content == "" || p.Description == "" {
			t.Errorf("package %s has no content or no description", p.Name)
		}
		for j, ch := range p.Channels {
			if g, w := catalog.Heads(ch), catalog.Heads(want.Packages[i].Channels[j]); !slices.Equal(g, w) {
				t.Errorf("channel %s of %s has heads %v, want %v", ch.Name, p.Name, g, w)
			}
		}
	}
}

const (
	csv1 = `{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: tide.v1}, spec: {version: 1.0.0, install: {strategy: deployment, spec: {deployments: []}}}}`
	csv2 = `{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: tide.v2}, spec: {version: 2.0.0, replaces: tide.v1, skips: [tide.v1-bad], install: {strategy: deployment, spec: {deployments: []}}}}`
)

func small() map[string]string {
	return map[string]string{
		keyCRDs: "[]", keyCSVs: "[" + csv1 + "," + csv2 + "]",
		keyPackages: "[{packageName: tide, channels: [{name: stable, currentCSV: tide.v2}]}]",
	}
}

// TestRefused: what is wrong with a config map is said by key and name.
func TestRefused(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10),
			","))
	}
	for name, c := range map[string]struct{ key, value, says string }{
		"no list":       {keyCRDs, "a: b", "key customResourceDefinitions"},
		"an alias bomb": {keyCSVs, bomb.String(), "key clusterServiceVersions"},
		"no name":       {keyCSVs, "[{kind: ClusterServiceVersion}]", "object 1 of key clusterServiceVersions"},
		"twice":         {keyCSVs, "[" + csv1 + "," + csv1 + "]", `holds "tide.v1" twice`},
		"a broken CSV":  {keyCSVs, "[{metadata: {name: tide.v2}, spec: []}]", `CSV "tide.v2"`},
		"no such CSV": {
			keyPackages, "[{packageName: tide, channels: [{name: stable, currentCSV: tide.v9}]}]",
			`"tide.v9"`,
		},
		"a package twice": {keyPackages, "[{packageName: tide}, {packageName: tide}]", `"tide" twice`},
		"no bundle":       {keyCSVs, "[{apiVersion: v1, kind: ConfigMap, metadata: {name: tide.v2}}]", `CSV "tide.v2"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := small()
			data[c.key] = c.value
			fails(t, data, c.says)
		})
	}
	for key := range small() {
		data := small()
		delete(data, key)
		fails(t, data, "has no key "+key)
	}
}

func fails(t *testing.T, data map[string]string, says string) {
	t.Helper()
	s, err := spool.New(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := convert(data, s); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q", err, says)
	}
}

// TestRing: CSVs that replace each other end, and the catalog says what is wrong (R-GRA-15).
func TestRing(t *testing.T) {
	t.Parallel()
	data := small()
	data[keyCSVs] = "[" + strings.Replace(csv1, "version: 1.0.0", "version: 1.0.0, replaces: tide.v2", 1) + "," + csv2 +
		"]"
	s, err := spool.New(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := convert(data, s); err != nil {
		t.Fatal(err)
	}
	c, err := load.Load(s.FS(), load.Options{})
	if err != nil || c.Findings.Err() == nil || !strings.Contains(c.Findings.Err().Error(), "R-CAT-35") {
		t.Errorf("%v, %v", c.Findings, err)
	}
}

// kubeconfig names a server with a token, and whatever else a test adds to its user.
func kubeconfigFor(server *httptest.Server, user string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Appendf(
		nil, `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: %q, certificate-authority-data: %q}}], users: [{name: x, user: {%s}}]}`, server.URL, base64Of(ca), user)
}

func base64Of(b []byte) string {
	raw, err := json.Marshal(b)
	if err != nil {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}

// TestGet: the one call, its credential, and every way in which it may fail.
func TestGet(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { t.Error("another server was asked") }))
	t.Cleanup(other.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer pass" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/api/v1/namespaces/catalogs/configmaps/fleet":
			if err := json.NewEncoder(w).Encode(map[string]any{"kind": "ConfigMap", "data": small()}); err != nil {
				t.Error(err)
			}
		case "/api/v1/namespaces/catalogs/configmaps/huge":
			if _, err := w.Write([]byte(`{"data":{"x":"` + strings.Repeat("x", MaxBytes) + `"}}`)); err != nil {
				return // the client has had enough
			}
		case "/api/v1/namespaces/catalogs/configmaps/moved":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/api/v1/namespaces/catalogs/configmaps/broken":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	const token = "token: pass"
	for name, c := range map[string]struct {
		name, user string
		kind       errs.Kind
	}{
		"there":           {"fleet", token, ""},
		"not there":       {"none", token, errs.NotFound},
		"a wrong token":   {"fleet", "token: other", errs.Forbidden},
		"too large":       {"huge", token, errs.TooLarge},
		"led away":        {"moved", token, errs.Unavailable},
		"a broken server": {"broken", token, errs.Unavailable},
		"a path":          {"../secrets/x", token, errs.Invalid},
		"a program": {
			"fleet",
			"exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}", errs.Forbidden,
		},
		"a file":            {"fleet", "tokenFile: /etc/hostname", errs.Forbidden},
		"a plugin":          {"fleet", "auth-provider: {name: oidc}", errs.Forbidden},
		"a broken key":      {"fleet", "client-certificate-data: eA==, client-key-data: eA==", errs.Invalid},
		"a key but no text": {"fleet", "[]", errs.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{
				Kubeconfig: kubeconfigFor(server, c.user), Namespace: "catalogs", Name: c.name, Dir: t.TempDir(),
			}
			tree, sum, end, err := Open(t.Context(), o)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("got %v, want %s", err, c.kind)
			}
			if err != nil {
				return
			}
			got, _ := sourcetest.Load(t, tree)
			if len(got.Packages) != 1 || got.Packages[0].DefaultChannel != "stable" ||
				len(got.Packages[0].Bundles) != 2 {
				t.Errorf("got %+v", got.Packages)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
			if again, err := Probe(t.Context(), o); err != nil || again != sum {
				t.Errorf("probe returns %s, %v; opening returned %s", again, err, sum)
			}
		})
	}
}

// TestOpenKubeconfig: what would show the credential to somebody in between is refused by its name (R-DIS-4).
func TestOpenKubeconfig(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	serve := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Store(true)
		w.WriteHeader(http.StatusNotFound)
	})
	secure, plain := httptest.NewTLSServer(serve), httptest.NewServer(serve)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	for cluster, says := range map[string]string{
		fmt.Sprintf("server: %q, insecure-skip-tls-verify: true",
			secure.URL): "insecure-skip-tls-verify",
		fmt.Sprintf("server: %q, proxy-url: %q", secure.URL, plain.URL):                         "proxy-url",
		fmt.Sprintf("server: %q", plain.URL):                                                    "https://",
		fmt.Sprintf("server: %q", strings.TrimPrefix(plain.URL, "http://")):                     "https://HOST",
		fmt.Sprintf("server: %q, insecure-skip-tls-verify: true, proxy-url: %q", plain.URL, ""): "https://",
	} {
		config := fmt.Appendf(
			nil,
			`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {%s}}], users: [{name: x, user: {token: pass}}]}`, cluster)
		_, err := Probe(t.Context(), Options{Kubeconfig: config, Namespace: "catalogs", Name: "fleet"})
		kind := errs.Forbidden
		if says == "https://HOST" { // no address at all
			kind = errs.Invalid
		}
		if !errs.Is(err, kind) || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: %v, want %q", cluster, err, says)
		}
	}
	if asked.Load() {
		t.Error("a server was asked all the same")
	}
}
