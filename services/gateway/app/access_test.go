package app_test

import (
	"net/http"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestAccessLog: an administrator reads who asked for what and from where, guesses of strangers included; a viewer does
// not. What was asked a moment before the end of the gateway is written as well.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(c *app.Config) { c.TrustedProxies = "127.0.0.0/8, ::1/128" })
	viewer := must[model.NewToken](b, 201, b.do("POST", "/api/v1/tokens",
		model.AddToken{Name: "portal", Role: model.RoleViewer}))
	b.as(viewer.Secret, "GET", "/api/v1/clusters", nil)
	if a := b.as(viewer.Secret, "GET", "/api/v1/access", nil); a.status != http.StatusForbidden {
		t.Errorf("a viewer reads the access log: %d", a.status)
	}
	for range 3 {
		b.as("a-token-that-nobody-has", "GET", "/api/v1/clusters", nil)
	}
	type page struct{ Items []model.AccessEntry }
	list := func(query string) []model.AccessEntry {
		return must[page](b, 200, b.do("GET", "/api/v1/access?"+query, nil)).Items
	}
	b.until(func() bool { return len(list("token="+viewer.ID)) == 2 })
	got := list("token=" + viewer.ID)
	if e := got[1]; e.Actor != viewer.Actor || e.Role != model.RoleViewer || e.Route != "/api/v1/clusters" ||
		e.Status != 200 || e.Method != http.MethodGet || e.Address == "" || e.Request == "" {
		t.Errorf("got %+v", e)
	}
	refused := int64(0)
	b.until(func() bool {
		refused = 0
		for _, e := range list("minStatus=401") {
			if e.Token == "" && e.Status == http.StatusUnauthorized {
				refused += e.Count
			}
		}
		return refused == 3
	})
	for _, query := range []string{"from=yesterday", "until=1", "cursor=x"} {
		must[problem](b, 400, b.do("GET", "/api/v1/access?"+query, nil))
	}
	b.as(viewer.Secret, "GET", "/api/v1/subscriptions", nil)
	b.stop()
	if n := b.count(`select count(*) from gateway.access_log where route = '/api/v1/subscriptions'`); n != 1 {
		t.Errorf("%d rows of the last request", n)
	}
}

// TestTrustedProxiesAreNetworks: a setting that is none stops the gateway with a sentence.
func TestTrustedProxiesAreNetworks(t *testing.T) {
	t.Parallel()
	if _, err := app.New(t.Context(), app.Config{TrustedProxies: "10.0.0.1"}, quiet()); err == nil {
		t.Error("an address was taken for a network")
	}
}
