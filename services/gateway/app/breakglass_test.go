package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	breakGlassPath = "/api/v1/breakglass"
	breakGlassOpen = breakGlassPath + "/sessions"
)

// TestBreakGlass: while the provider is away, the break-glass token lets in for a reason and for an hour. Reads, too,
// are refused before that; whoever asks is told of the use, and the log, the services' log and the gauge tell of it.
func TestBreakGlass(t *testing.T) {
	t.Parallel()
	h := setupHouse(t, nil)
	made := must[model.NewBreakGlass](h.bench, 201, h.do("POST", breakGlassPath, nil))
	used := func() int { return h.eventsWith(`access.break-glass-used.v1`) }
	told := func(bearer string) *model.BreakGlassUse {
		return must[model.WhoAmI](h.bench, 200, h.as(bearer, "GET", "/api/v1/whoami", nil)).BreakGlass
	}
	if u := told(token); u != nil || used() != 0 {
		t.Errorf("before its use: %+v, %d events", u, used())
	}
	held := func() (state string) {
		list := must[struct{ Items []model.Holder }](h.bench, 200,
			h.do("GET", "/api/v1/access/who-can?verb=stop&resource=effects", nil)).Items
		for _, x := range list {
			if x.Token == made.ID && x.Role == "admin" {
				state += x.BreakGlass
			}
		}
		return state
	}
	if got := held(); got != "sealed" {
		t.Errorf("before its use who-can names it as %q", got)
	}
	h.away.Store(true)
	for _, path := range []string{"/api/v1/whoami", "/api/v1/clusters", "/api/v1/openapi.json", breakGlassPath} {
		p := must[problem](h.bench, 403, h.as(made.Secret, "GET", path, nil))
		if !strings.Contains(p.Detail, "break-glass open") {
			t.Errorf("%s outside of a session: %s", path, p.Detail)
		}
	}
	must[problem](h.bench, 409, h.do("POST", breakGlassOpen, model.OpenBreakGlass{Reason: "with another token"}))
	must[problem](h.bench, 400, h.as(made.Secret, "POST", breakGlassOpen, model.OpenBreakGlass{}))
	if n := used(); n != 0 {
		t.Errorf("%d uses before one was opened", n)
	}
	const reason = "INC-4711: nobody can sign in"
	open := must[model.BreakGlassUse](h.bench, 201,
		h.as(made.Secret, "POST", breakGlassOpen, model.OpenBreakGlass{Reason: reason}))
	if !open.Open || open.Until.Sub(open.Since) != time.Hour {
		t.Errorf("opened %+v", open)
	}
	if got := held(); got != "open" {
		t.Errorf("in a session who-can names it as %q", got)
	}
	h.until(func() bool { return used() == 1 })
	if n := h.eventsWith(`INC-4711`); n != 0 {
		t.Error("an event has the reason")
	}
	must[model.NewToken](h.bench, 201, h.as(made.Secret, "POST", tokensPath,
		model.AddToken{Name: "a", Role: model.RoleAdmin}))
	sum := must[model.FleetSummary](h.bench, 200, h.as(made.Secret, "GET", "/api/v1/summary", nil))
	if u := told(token); u == nil || !u.Open || !u.Since.Equal(open.Since) || sum.BreakGlass == nil {
		t.Errorf("others are told %+v, %+v", u, sum.BreakGlass)
	}
	shown := must[model.BreakGlass](h.bench, 200, h.do("GET", breakGlassPath, nil))
	if !shown.Good || shown.ID != made.ID || shown.Reason != reason || shown.Use == nil {
		t.Errorf("shown as %+v", shown)
	}
	h.until(func() bool { return h.eventsWith(`"authid":"`+made.ID+`"`) == 2 }) // its use, and the token that it made

	// A stream ends with the session, and so does everything else.
	s := h.streamAs(made.Secret, "", "")
	h.exec("gateway", `update gateway.break_glass set ends = now()`)
	if _, _, ok := s.next(); ok {
		t.Error("the stream goes on after the session")
	}
	s.close()
	must[problem](h.bench, 403, h.as(made.Secret, "GET", "/api/v1/clusters", nil))
	if u := told(token); u == nil || u.Open {
		t.Errorf("after its use everybody is told %+v", u)
	}
	again := must[model.BreakGlassUse](h.bench, 201,
		h.as(made.Secret, "POST", breakGlassOpen, model.OpenBreakGlass{Reason: "again"}))
	if again.Since.Before(open.Since) {
		t.Errorf("another use is since %s", again.Since)
	}
	h.until(func() bool { return used() == 2 })

	// Another one takes its place; a revoked one is refused, in a session, too.
	next := must[model.NewBreakGlass](h.bench, 201, h.as(made.Secret, "POST", breakGlassPath, nil))
	if next.ID == made.ID || next.Secret == made.Secret {
		t.Error("another token is the same one")
	}
	must[problem](h.bench, 401, h.as(made.Secret, "GET", "/api/v1/clusters", nil))
	must[problem](h.bench, 403, h.as(next.Secret, "GET", "/api/v1/clusters", nil))
	must[model.BreakGlassUse](h.bench, 201,
		h.as(next.Secret, "POST", breakGlassOpen, model.OpenBreakGlass{Reason: "a"}))
	if a := h.do("DELETE", breakGlassPath, nil); a.status != 204 {
		t.Errorf("revoke: %d %s", a.status, a.body)
	}
	must[problem](h.bench, 401, h.as(next.Secret, "GET", "/api/v1/clusters", nil))
	must[problem](h.bench, 404, h.do("DELETE", breakGlassPath, nil))
	viewer := h.give(model.AddToken{Name: "v", Role: model.RoleViewer})
	must[problem](h.bench, 403, h.as(viewer.Secret, "POST", breakGlassPath, nil))
}
