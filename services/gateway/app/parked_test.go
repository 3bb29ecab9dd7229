package app_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const parkedPath = "/api/v1/log/parked"

// TestParkedEventsAreShownAndSkipped: an event that a read model cannot take is shown to administrators with its bytes,
// tried again, and skipped with a reason that is kept (DESIGN D4). Nothing else of the read model waits for it.
func TestParkedEventsAreShownAndSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	// As a broken disk, or somebody with all rights: the bytes of an event that is still to be read.
	b.exec("admin", `create function public.spoil() returns trigger language plpgsql as
		$$ begin if new.subject = 'wreck' then new.body := convert_to('garbage', 'UTF8'); end if; return new; end $$`)
	b.exec("admin", `create trigger spoil before insert on eventlog.events for each row execute function public.spoil()`)
	if a := b.do("POST", "/api/v1/catalogs", map[string]any{
		"name": "wreck", "source": map[string]any{"type": "directory", "path": "/catalogs/wreck"},
	}); a.status >= 300 {
		t.Fatalf("add a catalog: %d %s", a.status, a.body)
	}
	list := func(path string) []model.SkippedEvent {
		t.Helper()
		return must[struct{ Items []model.SkippedEvent }](b, 200, b.do("GET", path, nil)).Items
	}
	const consumer = "projection/gateway.catalogs/"
	var p model.ParkedEvent
	b.until(func() bool {
		for _, e := range list(parkedPath) {
			if strings.HasPrefix(e.Consumer, consumer) {
				p = e.ParkedEvent
			}
		}
		return p.Stream != ""
	})
	if p.Attempts < 1 || !strings.Contains(p.Reason, "read its bytes") || p.Body != nil {
		t.Errorf("listed as %+v", p)
	}
	b.cluster("other") // read models of other streams go on

	q := url.Values{"consumer": {p.Consumer}, "stream": {p.Stream}, "version": {"1"}}.Encode()
	if e := must[model.ParkedEvent](b, 200, b.do("GET", parkedPath+"/event?"+q, nil)); string(e.Body) != "garbage" {
		t.Errorf("its bytes are shown as %q", e.Body)
	}
	viewer := b.give(model.AddToken{Name: "dashboard", Role: model.RoleViewer})
	if a := b.as(viewer.Secret, "GET", parkedPath+"/event?"+q, nil); a.status != 403 {
		t.Errorf("a viewer sees the bytes: %d", a.status)
	}
	retry := model.RetryParked{Consumer: p.Consumer}
	if a := b.as(viewer.Secret, "POST", parkedPath+"/retry", retry); a.status != 403 {
		t.Errorf("a viewer retries: %d", a.status)
	}
	skip := model.SkipParked{
		ParkedRef: model.ParkedRef{Consumer: p.Consumer, Stream: p.Stream, Version: 2}, Reason: "lost",
	}
	if a := b.do("POST", parkedPath+"/skip", skip); a.status != 409 {
		t.Errorf("skip of an event that is not parked: %d %s", a.status, a.body)
	}
	if a := b.do("POST", parkedPath+"/retry", model.RetryParked{Consumer: "nobody"}); a.status != 404 {
		t.Errorf("retry of nothing: %d %s", a.status, a.body)
	}
	if a := b.do("POST", parkedPath+"/retry", retry); a.status >= 300 {
		t.Errorf("retry: %d %s", a.status, a.body)
	}
	skip.Version = 1
	if a := b.do("POST", parkedPath+"/skip", skip); a.status >= 300 {
		t.Errorf("skip: %d %s", a.status, a.body)
	}
	gone := list("/api/v1/log/skipped?consumer=" + url.QueryEscape(p.Consumer))
	if len(gone) != 1 || gone[0].Why != "lost" || gone[0].SkippedBy == "" || gone[0].Version != 1 {
		t.Errorf("skipped: %+v", gone)
	}
	if n := b.count(`select count(*) from eventlog.skipped where tenant = '` + events.DefaultTenant + `'`); n != 1 {
		t.Errorf("%d rows are kept", n)
	}
}
