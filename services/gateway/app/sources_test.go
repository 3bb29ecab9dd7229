package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestSourcesOfEveryType proves R-CAT-84 for the REST interface: each type with its fields is taken, kept as
// the indexer reads it, and answered as it was given.
func TestSourcesOfEveryType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, in := range []model.AddCatalog{
		{Name: "directory", Source: model.CatalogSource{Type: source.Directory, Path: "/catalogs/a", Poll: "1m"}},
		{Name: "archive", Source: model.CatalogSource{
			Type: source.Archive, URL: "https://files.example.test/a.tar.gz",
			Subdirectory: "configs",
		}},
		{Name: "git", Source: model.CatalogSource{
			Type: source.Git, URL: "https://git.example.test/a.git",
			Reference: "main", Mode: "lenient",
		}},
		{
			Name: "image", Priority: 20, Disabled: true,
			Display: &model.CatalogDisplay{
				Name: "Fleet", Publisher: "Dock", Description: "all",
				Icon: &model.CatalogIcon{Data: []byte("<svg/>"), MediaType: "image/svg+xml"},
			},
			Source: model.CatalogSource{
				Type: source.Image, Image: "registry.example.test/a:v1", Secrets: []string{"dock-pull"}, Prefetch: true,
				Timeout: "5m", Mirrors: []model.CatalogMirror{
					{Source: "registry.example.test", Mirrors: []string{"mirror.example.test"}, Never: true},
				},
			},
		},
		{Name: "template", Source: model.CatalogSource{
			Type:     source.Image,
			Template: "registry.example.test/a:v{kube_major_version}.{kube_minor_version}",
		}},
		{Name: "grpc", Source: model.CatalogSource{
			Type: source.GRPC, Address: "catalog.example.test:50051",
			Insecure: true,
		}},
		{Name: "configmap", Source: model.CatalogSource{
			Type:      source.ConfigMap,
			ConfigMap: &model.CatalogConfigMap{Namespace: "olm", Name: "a"},
		}},
		{Name: "sqlite", Source: model.CatalogSource{Type: source.SQLite, Path: "/catalogs/index.db"}},
	} {
		c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", in))
		got := must[model.Catalog](b, 200, b.do("GET", "/api/v1/catalogs/"+in.Name+"?minPosition="+c.Position, nil))
		if asJSON(t, got.Source) != asJSON(t, in.Source) || asJSON(t, got.Display) != asJSON(t, in.Display) ||
			got.Disabled != in.Disabled || got.Priority != in.Priority {
			t.Errorf("%s: got %s %s", in.Name, asJSON(t, got.Source), asJSON(t, got.Display))
		}
		e := must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?subject="+in.Name, nil)).Items[0]
		var added events.CatalogAdded
		if err := json.Unmarshal(e.Data, &added); err != nil || added.Templated != (in.Name == "template") ||
			added.Disabled != in.Disabled {
			t.Errorf("%s: event %s %v", in.Name, e.Data, err)
		}
		body, err := bodiestest.Keys(t).Read(t.Context(), b.pool("gateway"), bodies.View, events.DefaultTenant,
			added.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := source.Decode(body); err != nil ||
			asJSON(t, kept) != asJSON(t, in.Source.Settings(in.Display)) {
			t.Errorf("%s: kept %s %v", in.Name, body, err)
		}
	}
	// The credential that the image names is not there, and that is said.
	c := must[model.Catalog](b, 200, b.do("GET", "/api/v1/catalogs/image", nil))
	if len(c.Conditions) != 1 || c.Conditions[0].Type != "SecretsMissing" ||
		!strings.Contains(c.Conditions[0].Message, "dock-pull") {
		t.Errorf("conditions %+v", c.Conditions)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSourcesAreChecked: what settings break is said with place and rule, all of it at once.
func TestSourcesAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ name, body, location, rule string }{
		{"no path", `{"name": "a", "source": {"type": "directory"}}`, "body.source.path", "required"},
		{
			"another type's field", `{"name": "a", "source": {"type": "directory", "path": "/a", "image": "a/b"}}`,
			"body.source.image", "not-for-this-type",
		},
		{
			"both of two",
			`{"name": "a", "source": {"type": "archive", "path": "/a", "url": "https://a.example.test/b"}}`,
			"body.source", "exactly-one",
		},
		{
			"a path with ..", `{"name": "a", "source": {"type": "sqlite", "path": "../a.db"}}`, "body.source.path",
			"path",
		},
		{
			"a bad display",
			`{"name": "a", "source": {"type": "directory", "path": "/a"}, "display": {"icon": {"base64data": "YQ==", "mediatype": "text/html"}}}`, "body.display.icon.mediatype", "icon",
		},
		{
			"a second error", `{"name": "a", "source": {"type": "directory", "timeout": "never"}}`,
			"body.source.timeout", "duration",
		},
	} {
		p := must[problem](b, 400, b.do("POST", "/api/v1/catalogs", c.body))
		found := false
		for _, e := range p.Errors {
			found = found || e.Location == c.location && e.Rule == c.rule && e.Message != ""
		}
		if !found {
			t.Errorf("%s: got %v, want %s %s", c.name, p, c.location, c.rule)
		}
	}
	// A relative path starts in the indexer's directory; two ways to write it are one.
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		`{"name": "relative", "source": {"type": "directory", "path": "fleet/./a/"}}`))
	if c := must[model.Catalog](b, 200, b.do("PATCH", "/api/v1/catalogs/relative",
		`{"source": {"path": "fleet/a"}}`)); c.Version != 1 {
		t.Errorf("the same path is a change: %+v", c)
	}
}

// TestPatchCatalog: a merge patch changes what it names, null takes away, and the rules are those of PUT.
func TestPatchCatalog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", model.AddCatalog{
		Name: "a", Priority: 3, Source: model.CatalogSource{
			Type: source.Git, URL: "https://git.example.test/a.git",
			Reference: "main",
		},
		Display: &model.CatalogDisplay{Name: "A"},
	}))
	patch := func(body string) answer { return b.do("PATCH", "/api/v1/catalogs/a", body) }
	got := must[model.Catalog](b, 200,
		patch(`{"priority": 7, "source": {"reference": null, "poll": "1h"}, "disabled": true}`))
	if got.Priority != 7 || got.Source.Reference != "" || got.Source.Poll != "1h" || got.Source.URL == "" ||
		got.Display.Name != "A" || !got.Disabled {
		t.Errorf("got %+v", got)
	}
	if same := must[model.Catalog](b, 200, patch(`{"priority": 7}`)); same.Version != got.Version {
		t.Errorf("the same again is no event: %d, %d", same.Version, got.Version)
	}
	if p := must[problem](b, 400, patch(`{"source": {"type": "image"}}`)); p.Errors[0].Location != "body.source.url" {
		t.Errorf("got %v", p)
	}
	if p := must[problem](b, 400, patch(`{"sauce": 1}`)); p.Errors[0].Rule != "unknown-field" {
		t.Errorf("got %v", p)
	}
	must[problem](b, 404, b.do("PATCH", "/api/v1/catalogs/none", `{"priority": 1}`))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, b.url+"/api/v1/catalogs/a",
		strings.NewReader(`{"priority": 8}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/merge-patch+json"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Errorf("the media type of merge patches: %d", res.StatusCode)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	// A disabled catalog is not looked at.
	if p := must[problem](b, 409, b.do("POST", "/api/v1/catalogs/a/refresh", nil)); !strings.Contains(
		p.Detail, "disabled") {
		t.Errorf("got %v", p)
	}
}

// TestCatalogSecrets proves R-DIS-4 as far as the gateway goes: a credential is checked, encrypted to the
// indexer, never answered, and erased when it is deleted.
func TestCatalogSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path = "/api/v1/catalogsecrets/git-bot"
	s := must[model.CatalogSecret](b, 200, b.do("PUT", path,
		`{"kind": "basic", "value": {"username": "bot", "password": "s3cr3t-of-the-bot"}}`))
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		`{"name": "a", "source": {"type": "git", "url": "https://git.example.test/a.git", "secrets": ["git-bot"]}}`))
	a := b.do("GET", "/api/v1/catalogsecrets?minPosition="+s.Position, nil)
	l := must[struct{ Items []model.CatalogSecret }](b, 200, a)
	if len(l.Items) != 1 || l.Items[0].Kind != source.Basic || l.Items[0].Commitment != s.Commitment ||
		bytes.Contains(a.body, []byte("s3cr3t")) {
		t.Errorf("got %s", a.body)
	}
	if got := opened(t, b, "git-bot"); got != `{"username": "bot", "password": "s3cr3t-of-the-bot"}` {
		t.Errorf("the indexer opens %q", got)
	}
	if a := b.do("GET", "/api/v1/events?type=catalogsecret.set.v1", nil); !bytes.Contains(
		a.body, []byte(s.Commitment)) || bytes.Contains(a.body, []byte("s3cr3t")) {
		t.Errorf("the event: %s", a.body)
	}

	// Known secrets are compared with the source, unknown ones only when that is asked for.
	if p := must[problem](b, 422, b.do("POST", "/api/v1/catalogs",
		`{"name": "b", "source": {"type": "image", "image": "registry.example.test/b:1", "secrets": ["git-bot"]}}`)); p.Errors[0].Rule != "secret-kind" {
		t.Errorf("got %v", p)
	}
	const unknown = `{"name": "b", "source": {"type": "git", "url": "https://git.example.test/b.git", "secrets": ["other"]}}`
	if p := must[problem](b, 422, b.do("POST", "/api/v1/catalogs?validate=strict",
		unknown)); p.Errors[0].Rule != "secret-known" || !strings.Contains(p.Detail, "git-bot") {
		t.Errorf("got %v", p)
	}
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", unknown))

	// A value of another form is refused and never repeated.
	for _, body := range []string{
		`{"kind": "token", "value": {"username": "s3cr3t"}}`, `{"kind": "token", "value": "s3cr3t"}`,
		`{"kind": "ca", "value": {"certificates": "s3cr3t"}}`,
		`{"kind": "dockerconfigjson", "value": {"auths": {"registry.example.test": {"auth": "s3cr3t!"}}}}`,
		`{"kind": "other", "value": {}}`,
		`{"kind": "dockerconfigjson", "value": {"credsStore": "s3cr3t", "auths": {}}}`,
		`{"kind": "ssh", "value": {"privateKey": "s3cr3t", "knownHosts": "a"}}`,
	} {
		if a := b.do("PUT", path, body); a.status != http.StatusBadRequest || bytes.Contains(a.body, []byte("s3cr3t")) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	must[model.Removed](b, 200, b.do("DELETE", path, nil))
	must[problem](b, 404, b.do("DELETE", path, nil))
	if n := b.count(`select count(*) from gateway.catalog_secrets`); n != 0 {
		t.Errorf("%d secrets are left", n)
	}
	again := must[model.CatalogSecret](b, 200, b.do("PUT", path, `{"kind": "token", "value": {"token": "t"}}`))
	if again.Kind != source.Token || again.Commitment == s.Commitment {
		t.Errorf("got %+v", again)
	}
}

// opened reads a credential as the indexer does.
func opened(t *testing.T, b *bench, name string) string {
	t.Helper()
	var sealed []byte
	err := b.pool("catalog-indexer").QueryRow(t.Context(),
		`select ciphertext from gateway_api.catalog_secrets where tenant = 'default' and name = $1`, name).Scan(&sealed)
	if err != nil {
		t.Fatal(err)
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), b.identity)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// TestSecretsNeedARecipient: without the indexer's public key nothing is taken that could not be protected.
func TestSecretsNeedARecipient(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(c *app.Config) { c.CatalogCredentialsRecipient, c.HookKey = "", "" })
	if p := must[problem](b, 422, b.do("PUT", "/api/v1/catalogsecrets/a",
		`{"kind": "token", "value": {"token": "t"}}`)); !strings.Contains(p.Detail, "catalog-credentials-recipient") {
		t.Errorf("got %v", p)
	}
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		`{"name": "a", "source": {"type": "directory", "path": "/a"}}`))
	if p := must[problem](b, 422, b.do("POST", "/api/v1/catalogs/a/hook", nil)); !strings.Contains(
		p.Detail, "hook-key") {
		t.Errorf("got %v", p)
	}
	if n := b.count(`select count(*) from gateway.catalog_hooks`); n != 0 {
		t.Error("a hook that can prove nothing")
	}
}
