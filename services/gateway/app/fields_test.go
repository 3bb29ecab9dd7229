package app_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestFieldsOfAnswers: lists, objects and watches answer with the fields that are asked for, also page by page, with
// HEAD and with entity tags; a field that is not there is refused with those that are near (the section 3).
func TestFieldsOfAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watchedFleet("first", "second")
	is := func(path, want string) answer {
		t.Helper()
		a := b.do("GET", path, nil)
		if got := strings.TrimSpace(string(a.body)); a.status != 200 || got != want {
			t.Errorf("%s: %d %s, want %s", path, a.status, got, want)
		}
		return a
	}
	b.showWrites()
	one := is(subscriptions+"/first?fields=name,spec.package", `{"name":"first","spec":{"package":"first"}}`)
	whole := b.do("GET", subscriptions+"/first", nil)
	if len(whole.body) <= 3*len(one.body) || whole.header.Get("ETag") == one.header.Get("ETag") {
		t.Errorf("all fields are %d bytes with tag %s, two %d with %s", len(whole.body), whole.header.Get("ETag"),
			len(one.body), one.header.Get("ETag"))
	}
	is("/api/v1/subscriptions?fields=name", `{"items":[{"name":"first"},{"name":"second"}]}`)
	page := must[struct {
		Items []map[string]any
		Next  string
	}](b, 200, b.do("GET", "/api/v1/subscriptions?limit=1&fields=name", nil))
	if len(page.Items) != 1 || page.Next == "" {
		t.Errorf("a page is %+v", page)
	}
	is("/api/v1/subscriptions?limit=1&fields=name&cursor="+page.Next, `{"items":[{"name":"second"}]}`)
	is("/api/v1/summary?by=cluster&fields=items.subscriptions", `{"items":[{"subscriptions":2}]}`)
	is("/api/v1/clusters/spoke?fields=labels.site", `{}`)

	same := b.ask("GET", subscriptions+"/first?fields=name,spec.package", nil, "If-None-Match", one.header.Get("ETag"))
	if same.status != 304 {
		t.Errorf("with the tag of the same fields: %d", same.status)
	}
	other := b.ask("GET", subscriptions+"/first?fields=name", nil, "If-None-Match", one.header.Get("ETag"))
	if other.status != 200 {
		t.Errorf("with the tag of other fields: %d", other.status)
	}
	head := b.do("HEAD", subscriptions+"/first?fields=name,spec.package", nil)
	if head.status != 200 || len(head.body) > 0 || head.header.Get("ETag") != one.header.Get("ETag") {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	// A replacement may be decided on some of the fields: the tag begins with the version.
	change := subscribe("first", "first")
	change.Channel = "steady"
	must[model.Subscription](b, 200, b.ask("PUT", subscriptions+"/first", change.SubscriptionSpec, "If-Match",
		one.header.Get("ETag")))

	p := must[problem](b, 400, b.do("GET", "/api/v1/subscriptions?fields=name,spec.chanel", nil))
	if len(p.Errors) != 1 || p.Errors[0].Location != "query.fields" ||
		!strings.Contains(p.Detail, "did you mean channel") {
		t.Errorf("an unknown field: %+v", p)
	}
	must[problem](b, 400, b.do("GET", "/api/v1/subscriptions?fields=", nil))
	must[problem](b, 400, b.do("GET", subscriptions+"/first/badge?fields=name", nil))

	// A watch tells of what was asked for, and not of what else changes.
	w := b.watch(token, "/api/v1/subscriptions?fields=name,spec.channel", "")
	w.told()
	change.Labels = map[string]string{"team": "harbour"}
	must[model.Subscription](b, 200, b.ask("PUT", subscriptions+"/first", map[string]any{
		"package": "first", "catalog": "fleet", "channel": "steady", "labels": change.Labels,
	}, "If-Match", "*"))
	must[model.Subscription](b, 200, b.ask("PATCH", subscriptions+"/second", map[string]any{"channel": "swift"}))
	if m := w.want("MODIFIED", "second"); m.of.Spec.Channel != "swift" || m.of.Cluster != "" {
		t.Errorf("a watch of two fields tells %+v", m.of)
	}
}
