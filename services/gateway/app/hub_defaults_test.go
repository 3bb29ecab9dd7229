package app_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// manyDefaults are default catalogs d0, d1, ….
func manyDefaults(n int) string {
	var text strings.Builder
	text.WriteString("catalogs:\n")
	for i := range n {
		fmt.Fprintf(&text, "- {name: d%d, source: {type: directory, path: fleet/d%d}}\n", i, i)
	}
	return text.String()
}

// TestNothingSaidOfDefaultCatalogsIsLost proves R-CFG-10 for people who switch default catalogs at the same
// time, one by one and all at once: what the hub says and what the catalogs are agree in the end.
func TestNothingSaidOfDefaultCatalogsIsLost(t *testing.T) {
	t.Parallel()
	const catalogs, rounds = 3, 10
	b := setupWith(t, withDefaults(t, manyDefaults(catalogs)))
	var wg sync.WaitGroup
	for i := range catalogs {
		wg.Go(func() {
			for round := range rounds {
				path := fmt.Sprintf("/api/v1/catalogs/d%d", i)
				if a := b.do("PATCH", path, fmt.Sprintf(`{"disabled": %t}`, round%2 == 0)); a.status != http.StatusOK {
					t.Errorf("%d %s", a.status, a.body)
				}
				hub := must[model.OperatorHub](b, 200, b.do("GET", "/api/v1/operatorhub", nil))
				if got := hub.Status[i].Disabled; got != (round%2 == 0) {
					t.Errorf("catalog d%d, round %d: what was said is lost", i, round)
				}
			}
		})
	}
	wg.Wait()
	for range rounds {
		wg.Go(func() {
			b.do("PUT", "/api/v1/operatorhub",
				`{"sources": [{"name": "d0", "disabled": true}, {"name": "d1", "disabled": false}]}`)
		})
		wg.Go(func() { b.do("PATCH", "/api/v1/catalogs/d0", `{"disabled": false}`) })
		wg.Go(func() { b.do("PATCH", "/api/v1/catalogs/d1", `{"disabled": true}`) })
	}
	wg.Wait()
	hub := must[model.OperatorHub](b, 200, b.do("GET", "/api/v1/operatorhub", nil))
	for i := range catalogs {
		// A patch that says what is so already is no change, and its answer is what the log says.
		now := must[model.Catalog](b, 200, b.do("PATCH", fmt.Sprintf("/api/v1/catalogs/d%d", i), `{}`))
		if now.Disabled != hub.Status[i].Disabled {
			t.Errorf("d%d: disabled %t, and the hub says %t", i, now.Disabled, hub.Status[i].Disabled)
		}
	}
}

// TestDefaultCatalogsTakeNothingAway proves R-CAT-110 beside what tenants have: a catalog of one's own under the name
// of a default one stays, is no default one, and hinders nobody else; a tenant that comes later has its defaults.
func TestDefaultCatalogsTakeNothingAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := model.CatalogSource{Type: "directory", Path: "/mine"}
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", model.AddCatalog{Name: "certified", Source: own}))
	b.stop()
	b.settings = withDefaults(t, defaultCatalogs)
	b.url, b.stop = b.gateway(token)
	hub := must[model.OperatorHub](b, 200, b.do("GET", "/api/v1/operatorhub", nil))
	if s := hub.Status[0]; s.Name != "certified" || s.Status != "Error" ||
		!strings.Contains(s.Message, "of your own") || hub.Status[1].Status != "Success" {
		t.Errorf("got %+v", hub.Status)
	}
	must[model.OperatorHub](b, 200, b.do("PUT", "/api/v1/operatorhub", `{"disableAllDefaultSources": true}`))
	b.until(func() bool {
		return must[model.Catalog](b, 200, b.do("GET", "/api/v1/catalogs/certified", nil)).Name != "" &&
			b.do("GET", "/api/v1/catalogs/community", nil).status == 200
	})
	if c := must[model.Catalog](b, 200, b.do("GET", "/api/v1/catalogs/certified", nil)); c.Source.Path != "/mine" ||
		c.Disabled || c.Default {
		t.Errorf("a catalog of the tenant's own was taken: %+v", c)
	}
	if c := must[model.Catalog](b, 200, b.do("PATCH", "/api/v1/catalogs/certified",
		`{"priority": 4}`)); c.Priority != 4 || c.Default {
		t.Errorf("got %+v", c)
	}

	const other = "another-token-of-another-tenant"
	made := model.Token{
		ID: "token-other", Actor: "token-other", Kind: access.KindUser, Role: model.RoleAdmin, CreatedAt: time.Now(),
	}
	if err := store.NewTokens(b.pool("gateway")).Add(t.Context(), b.pool("gateway"), "other", made, other); err != nil {
		t.Fatal(err)
	}
	if p := must[problem](b, 409, b.as(other, "POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "certified", Source: own})); p.Kind != "already-exists" &&
		(len(p.Errors) == 0 || p.Errors[0].Rule != "default-catalog") {
		t.Errorf("got %v", p)
	}
	b.until(func() bool { return b.as(other, "GET", "/api/v1/catalogs/certified", nil).status == 200 })
	if c := must[model.Catalog](b, 200, b.as(other, "GET", "/api/v1/catalogs/certified", nil)); !c.Default {
		t.Errorf("got %+v", c)
	}

	// It makes way when its tenant lets it go.
	must[model.Removed](b, 200, b.do("DELETE", "/api/v1/catalogs/certified", nil))
	hub = must[model.OperatorHub](b, 200, b.do("PUT", "/api/v1/operatorhub", `{}`))
	if hub.Status[0].Status != "Success" {
		t.Errorf("got %+v", hub.Status)
	}
	must[problem](b, 409, b.do("DELETE", "/api/v1/catalogs/certified", nil))
}

// TestOneTenantsTroubleIsItsOwn: a tenant whose catalogs cannot be read keeps neither the gateway from its start
// nor other tenants from their default catalogs, and is told in the log.
func TestOneTenantsTroubleIsItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tenant := range []string{"aaa", "zzz"} { // before and behind the tenant of the tests
		made := model.Token{
			ID: "token-" + tenant, Actor: "token-" + tenant, Kind: access.KindUser,
			Role: model.RoleAdmin, CreatedAt: time.Now(),
		}
		if err := store.NewTokens(b.pool("gateway")).Add(t.Context(), b.pool("gateway"), tenant, made,
			"the-token-of-tenant-"+tenant); err != nil {
			t.Fatal(err)
		}
	}
	b.exec("gateway",
		`insert into gateway.operatorhub (tenant, disable_all, sources, updated) values ('aaa', false, '["not a map"]', now())`)
	b.stop()
	var said bytes.Buffer
	b.settings, b.said = withDefaults(t, defaultCatalogs), slog.NewTextHandler(&said, nil)
	b.url, b.stop = b.gateway(token)
	for _, who := range []string{token, "the-token-of-tenant-zzz"} {
		b.until(func() bool { return b.as(who, "GET", "/api/v1/catalogs/certified", nil).status == 200 })
	}
	b.stop()
	if !strings.Contains(said.String(), "tenant aaa") || strings.Contains(said.String(), "tenant zzz") {
		t.Errorf("said %s", said.String())
	}
}
