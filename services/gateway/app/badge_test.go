package app_test

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/badge"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestBadges: a badge shows the state that tables show and no name of anything, to who may read the subscription; an
// answer that is known is 304; a label stays a text.
func TestBadges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	b.position = must[model.Subscription](b, 201,
		b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge"))).Position
	const path = subscriptions + "/tidegauge/badge"
	shows := func(path, want string) answer {
		t.Helper()
		a := b.do("GET", path, nil)
		var p struct {
			Name  string `xml:"aria-label,attr"`
			Title string `xml:"title"`
		}
		if err := xml.Unmarshal(a.body, &p); err != nil {
			t.Fatalf("%d %s: %v", a.status, a.body, err)
		}
		if a.status != http.StatusOK || a.header.Get("Content-Type") != "image/svg+xml" || p.Name != want ||
			p.Title != want {
			t.Errorf("%d %v %s, want %q", a.status, a.header, a.body, want)
		}
		return a
	}
	first := shows(b.seen(path), "operator: <none>")
	if h := first.header; h.Get("Cache-Control") != "private, max-age=60" || h.Get("ETag") == "" ||
		h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("headers %v", h)
	}

	const subject = "spoke/ops/tidegauge"
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable", Explanation: "sha256:why"})
	failed := shows(b.seen(path), "operator: ResolutionFailed")
	listed := must[struct{ Items []model.Subscription }](b, 200, b.do("GET", b.seen(subscriptions), nil))
	if len(listed.Items) != 1 || listed.Items[0].ShownState() != "ResolutionFailed" {
		t.Errorf("a table shows %+v", listed)
	}
	for _, name := range []string{"spoke", "ops", "tidegauge", "fleet", "stable"} {
		if strings.Contains(string(failed.body), name) {
			t.Errorf("the badge names %s: %s", name, failed.body)
		}
	}

	tag := failed.header.Get("ETag")
	if a := b.ask("GET", b.seen(path), nil, "If-None-Match", tag); a.status != http.StatusNotModified ||
		len(a.body) != 0 || a.header.Get("ETag") != tag {
		t.Errorf("a known badge: %d %v", a.status, a.header)
	}
	if a := b.ask("GET", b.seen(path), nil, "If-None-Match", first.header.Get("ETag")); a.status != http.StatusOK {
		t.Errorf("the badge of another state: %d", a.status)
	}

	const hostile = `"/></svg><script>x</script>`
	for _, label := range []string{hostile, strings.Repeat("潮", badge.MaxLabel)} {
		shows(path+"?label="+url.QueryEscape(label), label+": ResolutionFailed")
	}
	for label, want := range map[string]string{
		strings.Repeat("潮", badge.MaxLabel+1): "max-length", "\u202efailed": "text", " ": "required", "": "has-value",
	} {
		p := must[problem](b, 400, b.do("GET", path+"?label="+url.QueryEscape(label), nil))
		if len(p.Errors) != 1 || p.Errors[0].Location != "query.label" || p.Errors[0].Rule != want {
			t.Errorf("label %q: %+v, want the rule %s", label, p, want)
		}
	}

	must[problem](b, 404, b.do("GET", b.seen(subscriptions+"/none/badge"), nil))
	must[problem](b, 401, b.send(b.url, "", "GET", path, nil))
}
