package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const defaultCatalogs = `catalogs:
- name: certified
  priority: 5
  display: {name: Certified operators, publisher: Dock}
  source: {type: image, image: "registry.example.test/certified:v1", poll: 30m}
- name: community
  source: {type: directory, path: /catalogs/community}
`

func withDefaults(tb testing.TB, text string) func(*app.Config) {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "defaults.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return func(c *app.Config) { c.DefaultCatalogs = file }
}

// TestDefaultCatalogs proves R-CFG-10, R-CFG-11 and R-CAT-110: default catalogs are there from the start, can be
// switched and not edited, and what was said of them outlives a restart.
func TestDefaultCatalogs(t *testing.T) {
	t.Parallel()
	b := setupWith(t, withDefaults(t, defaultCatalogs))
	list := func() map[string]model.Catalog {
		t.Helper()
		out := map[string]model.Catalog{}
		b.until(func() bool {
			for _, c := range must[struct{ Items []model.Catalog }](
				b, 200, b.do("GET", "/api/v1/catalogs", nil)).Items {
				out[c.Name] = c
			}
			return len(out) == 2
		})
		return out
	}
	all := list()
	if c := all["certified"]; !c.Default || c.Disabled || c.Priority != 5 || c.Source.Poll != "30m" ||
		c.Display.Publisher != "Dock" {
		t.Errorf("got %+v", c)
	}

	for _, a := range []answer{
		b.do("DELETE", "/api/v1/catalogs/certified", nil),
		b.do("PATCH", "/api/v1/catalogs/certified", `{"priority": 9}`),
		b.do("PUT", "/api/v1/catalogs/certified", `{"source": {"type": "directory", "path": "/mine"}}`),
	} {
		if p := must[problem](b, 409, a); p.Errors[0].Rule != "default-catalog" ||
			!strings.Contains(p.Detail, `"certified"`) || !strings.Contains(p.Detail, "disable it") {
			t.Errorf("got %v", p)
		}
	}
	off := must[model.Catalog](b, 200, b.do("PATCH", "/api/v1/catalogs/certified", `{"disabled": true}`))
	hub := must[model.OperatorHub](b, 200, b.do("GET", "/api/v1/operatorhub", nil))
	if !off.Disabled || hub.DisableAllDefaultSources || len(hub.Sources) != 1 || !hub.Sources[0].Disabled {
		t.Errorf("got %+v", hub)
	}

	// A word on one goes before the word on all; an unknown name is kept and told.
	hub = must[model.OperatorHub](b, 200, b.do("PUT", "/api/v1/operatorhub",
		`{"disableAllDefaultSources": true, "sources": [{"name": "certified", "disabled": false}, {"name": "nobodys", "disabled": true}]}`))
	if len(hub.Status) != 3 || hub.Status[0].Disabled || !hub.Status[1].Disabled || hub.Status[2].Status != "Error" {
		t.Errorf("got %+v", hub)
	}
	must[problem](b, 400, b.do("PUT", "/api/v1/operatorhub",
		`{"sources": [{"name": "a", "disabled": false}, {"name": "a", "disabled": true}]}`))

	b.stop()
	b.settings = withDefaults(t, strings.Replace(defaultCatalogs, "certified:v1", "certified:v2", 1))
	b.url, b.stop = b.gateway(token)
	b.until(func() bool { return list()["certified"].Source.Image == "registry.example.test/certified:v2" })
	if all := list(); all["certified"].Disabled || !all["community"].Disabled {
		t.Errorf("after a restart: %+v", all)
	}
	if n := b.count(`select count(*) from eventlog.events where type = 'catalog.added.v1'`); n != 2 {
		t.Errorf("%d catalogs were added, want 2 once", n)
	}
}

// TestExampleOfDefaultCatalogs: the file that people copy is taken.
func TestExampleOfDefaultCatalogs(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(c *app.Config) { c.DefaultCatalogs = "../../../examples/olm/default-catalogs.yaml" })
	b.until(func() bool {
		return len(must[struct{ Items []model.Catalog }](b, 200, b.do("GET", "/api/v1/catalogs", nil)).Items) == 2
	})
}

// TestDefaultCatalogsAreChecked: a wrong file stops the start with the place of what is wrong.
func TestDefaultCatalogsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"no YAML", "catalogs: [", "default-catalogs"},
		{"an unknown field", "catalogs: [{name: a, sauce: b}]", "sauce"},
		{"a bad source", "catalogs: [{name: a, source: {type: directory}}]", "catalogs[0]"},
		{
			"twice",
			"catalogs: [{name: a, source: {type: directory, path: /a}}, {name: a, source: {type: directory, path: /a}}]", "twice",
		},
		{
			"of a cluster", "catalogs: [{name: a, cluster: c, namespace: n, source: {type: directory, path: /a}}]",
			"whole fleet",
		},
		{"disabled", "catalogs: [{name: a, disabled: true, source: {type: directory, path: /a}}]", "operatorhub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := app.Config{
				CredentialsRecipient: "age1lggyhqrw2nlhcxprm67z43rta597azn8gknawjehu9d9dl0jq3yqqvfafg",
				Bodies:               bodiestest.Secrets(),
			}
			withDefaults(t, c.text)(&cfg)
			_, err := app.New(t.Context(), cfg, &telemetry.Telemetry{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestCatalogHealth proves the setting of R-CAT-99: for the hub and for the catalogs of one namespace.
func TestCatalogHealth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const own = "/api/v1/cataloghealth?cluster=spoke&namespace=olm"
	if h := must[model.CatalogHealth](b, 200, b.do("GET", "/api/v1/cataloghealth", nil)); h.Mode != "Independent" {
		t.Errorf("got %+v", h)
	}
	must[model.CatalogHealth](b, 200, b.do("PUT", own, model.SetCatalogHealth{Mode: "Strict"}))
	must[model.CatalogHealth](b, 200, b.do("PUT", own, model.SetCatalogHealth{Mode: "Strict"}))
	if h := must[model.CatalogHealth](b, 200, b.do("GET", own, nil)); h.Mode != "Strict" || h.Cluster != "spoke" {
		t.Errorf("got %+v", h)
	}
	if h := must[model.CatalogHealth](b, 200, b.do("GET", "/api/v1/cataloghealth", nil)); h.Mode != "Independent" {
		t.Errorf("the hub's changed with a namespace's: %+v", h)
	}
	e := must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?type=policy.catalog-health-set.v1",
		nil)).Items
	if len(e) != 1 || e[0].Subject != "catalog-health/spoke/olm" {
		t.Errorf("got %+v", e)
	}
	must[problem](b, 400, b.do("PUT", "/api/v1/cataloghealth?cluster=spoke", model.SetCatalogHealth{Mode: "Strict"}))
	must[problem](b, 400, b.do("PUT", "/api/v1/cataloghealth", model.SetCatalogHealth{Mode: "Lax"}))
	if a := b.do("PUT", "/api/v1/cataloghealth?cluster=none&namespace=olm",
		model.SetCatalogHealth{Mode: "Strict"}); a.status != http.StatusNotFound {
		t.Errorf("got %d", a.status)
	}
}
