package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// watched is a list that a test watches.
type watched struct {
	b     *bench
	lines *bufio.Scanner
	res   *http.Response
	close func()
	last  string // id of the last bookmark
}

// named is what tests look at in an object.
type named struct {
	ID, Cluster, Namespace, Name string
	Labels                       map[string]string
	State                        string
	Spec                         struct{ Channel string }
}

// message is one message of a watch.
type message struct {
	change string
	of     named
}

func (b *bench) watch(bearer, path, last string) *watched {
	b.t.Helper()
	w, status := b.tryWatch(bearer, path, last)
	if status != http.StatusOK || w.res.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("watch %s: %d %v", path, status, w.res.Header)
	}
	return w
}

func (b *bench) tryWatch(bearer, path, last string) (w *watched, status int) {
	b.t.Helper()
	b.showWrites()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*patience)
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path+sign+"watch=true", http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	w = &watched{b: b, lines: bufio.NewScanner(res.Body), res: res, last: last}
	w.lines.Buffer(nil, 1<<20)
	w.close = func() {
		cancel()
		_ = res.Body.Close() // cut off by the line above
	}
	b.t.Cleanup(w.close)
	return w, res.StatusCode
}

// next returns the next message, false at the end of the stream. Only a bookmark has an id.
func (w *watched) next() (m message, ok bool) {
	w.b.t.Helper()
	id := ""
	for w.lines.Scan() {
		line := w.lines.Text()
		switch {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "event: "):
			m.change = line[7:]
		case strings.HasPrefix(line, "data: "):
			if err := json.Unmarshal([]byte(line[6:]), &m.of); err != nil {
				w.b.t.Fatalf("%v: %s", err, line)
			}
			for _, field := range timesOf("", []byte(line[6:])) {
				w.b.t.Errorf("a time that is not in whole seconds of UTC, %s: %s", field, line)
			}
		case line == "" && m.change != "":
			if (m.change == "BOOKMARK") != (id != "") {
				w.b.t.Fatalf("%s has the id %q", m.change, id)
			}
			if id != "" {
				w.last = id
			}
			return m, true
		}
	}
	return m, false
}

// told returns what is told up to the next bookmark, as "CHANGE name".
func (w *watched) told() string {
	w.b.t.Helper()
	var all []string
	for {
		m, ok := w.next()
		if !ok {
			w.b.t.Fatalf("the stream ended after %v: %v", all, w.lines.Err())
		}
		if m.change == "BOOKMARK" {
			return strings.Join(all, ", ")
		}
		all = append(all, strings.TrimSpace(m.change+" "+m.of.Name))
	}
}

// change returns the next change, whatever bookmarks come before it.
func (w *watched) change() message {
	w.b.t.Helper()
	for {
		m, ok := w.next()
		if !ok {
			w.b.t.Fatalf("the stream ended: %v", w.lines.Err())
		}
		if m.change != "BOOKMARK" {
			return m
		}
	}
}

func (w *watched) want(change, name string) message {
	w.b.t.Helper()
	m := w.change()
	if m.change != change || m.of.Name != name {
		w.b.t.Fatalf("got %s %+v, want %s %s", m.change, m.of, change, name)
	}
	return m
}

// watchedFleet is a cluster with a catalog, an operator group and subscriptions.
func (b *bench) watchedFleet(names ...string) {
	b.t.Helper()
	b.cluster("spoke")
	b.loading("fleet")
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/ops/operatorgroups",
		model.CreateOperatorGroup{Name: "g"}))
	for _, n := range names {
		b.subscribed(n)
	}
}

// loading adds a catalog whose content nobody knows yet.
func (b *bench) loading(name string) {
	b.t.Helper()
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: name, Source: model.CatalogSource{Type: "directory", Path: "/catalogs/" + name}}))
}

func (b *bench) subscribed(name string) model.Subscription {
	b.t.Helper()
	return must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe(name, name)))
}

// TestListsAreWatched: what is in a list comes first, then what changes, in it alone; a row that a filter no longer
// chooses is told as deleted, and who comes again is told everything anew, after a restart of the gateway, too.
func TestListsAreWatched(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watchedFleet("first", "second")
	all := b.watch(token, "/api/v1/subscriptions", "")
	if got := all.told(); got != "ADDED first, ADDED second" {
		t.Fatalf("at the beginning: %s", got)
	}
	some := b.watch(token, subscriptions+"?fieldSelector=spec.channel%3Dsteady", "")
	before := some.told()
	b.subscribed("third")
	all.want("ADDED", "third")
	change := subscribe("first", "first")
	change.Channel = "steady"
	must[model.Subscription](b, 200, b.ask("PUT", subscriptions+"/first", change.SubscriptionSpec, "If-Match", "*"))
	if m := all.want("MODIFIED", "first"); m.of.Spec.Channel != "steady" {
		t.Errorf("modified to %+v", m.of)
	}
	if before != "" {
		t.Fatalf("the channel steady had %s before", before)
	}
	some.want("ADDED", "first")
	change.Channel = "swift"
	must[model.Subscription](b, 200, b.ask("PUT", subscriptions+"/first", change.SubscriptionSpec, "If-Match", "*"))
	all.want("MODIFIED", "first")
	if m := some.want("DELETED", "first"); m.of.Cluster != "spoke" || m.of.Namespace != "ops" ||
		m.of.Spec.Channel != "" {
		t.Errorf("deleted: %+v, want the name alone", m.of)
	}
	if got := some.told(); got != "" {
		t.Errorf("then %s", got)
	}
	b.resumes(all)
}

// resumes has a client come again: it is told everything, whatever its position.
func (b *bench) resumes(w *watched) {
	b.t.Helper()
	if got := w.told(); got != "" { // up to the bookmark behind what was told
		b.t.Fatalf("then %s", got)
	}
	w.close()
	b.stop()
	b.url, b.stop = b.gateway(token)
	path := "/api/v1/subscriptions"
	again := b.watch(token, path, w.last)
	if got := again.told(); got != "RESET, ADDED first, ADDED second, ADDED third" {
		b.t.Errorf("after a restart: %s", got)
	}
	again.close()
	must[model.Removed](b, 200, b.do("DELETE", subscriptions+"/second", nil))
	again = b.watch(token, path, again.last)
	if got := again.told(); got != "RESET, ADDED first, ADDED third" {
		b.t.Errorf("after a deletion: %s", got)
	}
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/other/operatorgroups",
		model.CreateOperatorGroup{Name: "g"}))
	last := again.last
	must[model.Subscription](b, 201, b.do("POST", strings.Replace(subscriptions, "/ops/", "/other/", 1),
		subscribe("fourth", "fourth")))
	again.want("ADDED", "fourth")
	only := b.watch(token, path+"?namespace=other", last)
	if got := only.told(); got != "RESET, ADDED fourth" {
		b.t.Errorf("one namespace: %s", got)
	}
	for _, unknown := range []string{"1-999999", "9-1"} {
		late := b.watch(token, path, unknown)
		if got := late.told(); got != "RESET, ADDED first, ADDED third, ADDED fourth" {
			b.t.Errorf("behind %s: %s", unknown, got)
		}
	}
}

// TestWatchesShowWhatOneMaySee: nothing of another namespace arrives, and a right that is taken away takes what was
// seen, or the stream.
func TestWatchesShowWhatOneMaySee(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watchedFleet("seen")
	hidden := strings.Replace(subscriptions, "/ops/", "/hidden/", 1)
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/hidden/operatorgroups",
		model.CreateOperatorGroup{Name: "g"}))
	must[model.Subscription](b, 201, b.do("POST", hidden, subscribe("one", "one")))
	ann := b.give(model.AddToken{Name: "Ann", Role: "none"})
	b.bind("ann", "viewer", ann.Actor, model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"ops"}})
	b.bind("ann-catalogs", "viewer", ann.Actor, model.AccessScope{Namespaces: []string{"elsewhere"}})
	w := b.watch(ann.Secret, "/api/v1/subscriptions", "")
	if got := w.told(); got != "ADDED seen" {
		t.Fatalf("at the beginning: %s", got)
	}
	must[model.Subscription](b, 201, b.do("POST", hidden, subscribe("two", "two")))
	b.subscribed("also")
	w.want("ADDED", "also") // and not two, which came before
	must[model.Removed](b, 200, b.do("DELETE", "/api/v1/rolebindings/ann", nil))
	gone := map[string]bool{}
	for len(gone) < 2 {
		m := w.change()
		if m.change != "DELETED" {
			t.Fatalf("got %s %s", m.change, m.of.Name)
		}
		gone[m.of.Name] = true
	}
	b.subscribed("late")
	must[model.Removed](b, 200, b.do("DELETE", "/api/v1/rolebindings/ann-catalogs", nil))
	for {
		m, ok := w.next()
		if !ok {
			break // who may list nothing at all gets the end
		}
		if m.change != "BOOKMARK" {
			t.Errorf("after the right is gone: %s %s", m.change, m.of.Name)
		}
	}
	if _, status := b.tryWatch(ann.Secret, "/api/v1/subscriptions", w.last); status != http.StatusForbidden {
		t.Errorf("who comes again without a right is answered %d", status)
	}
	revoked := b.give(model.AddToken{Name: "Bo", Role: "viewer"})
	w = b.watch(revoked.Secret, "/api/v1/clusters", "")
	w.told()
	if a := b.do("DELETE", "/api/v1/tokens/"+revoked.ID, nil); a.status != 204 {
		t.Fatalf("revoke: %d", a.status)
	}
	for ok := true; ok; _, ok = w.next() { //nolint:revive // until the end
	}
}

// TestEveryCollectionIsWatched: each list tells of what changes in it, and only with the parameters of a watch.
func TestEveryCollectionIsWatched(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watchedFleet("tidegauge")
	lists := map[string]*watched{}
	for _, path := range []string{"clusters", "catalogs", "operators", "operatorgroups", "installplans"} {
		lists[path] = b.watch(token, "/api/v1/"+path, "")
	}
	for path, want := range map[string]string{
		"clusters": "ADDED spoke", "catalogs": "ADDED fleet", "operators": "", "operatorgroups": "ADDED g",
		"installplans": "",
	} {
		if got := lists[path].told(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	// As many terms as a field selector may have.
	full := strings.TrimPrefix(strings.Repeat(",metadata.name!=spoke", 32), ",")
	others := b.watch(token, "/api/v1/clusters?fieldSelector="+url.QueryEscape(full), "")
	if got := others.told(); got != "" {
		t.Errorf("other clusters: %s", got)
	}
	b.cluster("other")
	others.want("ADDED", "other")
	lists["clusters"].want("ADDED", "other")
	b.fact(events.Installer, events.KindCluster, "other", "other", events.ClusterObserved{State: "Connected"})
	if m := lists["clusters"].want("MODIFIED", "other"); m.of.State != "Connected" {
		t.Errorf("got %+v", m.of)
	}
	others.want("MODIFIED", "other")
	b.loading("second")
	lists["catalogs"].want("ADDED", "second")
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/more/operatorgroups",
		model.CreateOperatorGroup{Name: "h"}))
	lists["operatorgroups"].want("ADDED", "h")
	b.installed()
	lists["operators"].want("ADDED", gauge)
	for _, bad := range []string{
		"/api/v1/clusters?watch=true&limit=5", "/api/v1/clusters?watch=true&sort=name", "/api/v1/clusters?since=1-1",
		"/api/v1/clusters?watch=perhaps", "/api/v1/clusters?watch=true&since=yesterday",
		"/api/v1/clusters?watch=true&fieldSelector=nothing%3Dx",
	} {
		must[problem](b, 400, b.do("GET", bad, nil))
	}
	if a := b.ask("GET", "/api/v1/clusters?watch=true", nil, "Accept", "application/json"); a.status != 406 {
		t.Errorf("a stream for who wants JSON: %d", a.status)
	}
	if a := b.ask("GET", "/api/v1/clusters", nil, "Accept", "text/event-stream"); a.status != 406 {
		t.Errorf("a list for who wants a stream: %d", a.status)
	}
	b.watchedByTicket()
}

// watchedByTicket: a ticket opens a watch, and no list.
func (b *bench) watchedByTicket() {
	b.t.Helper()
	const list = "/api/v1/clusters?state=Connected"
	must[problem](b, 400, b.do("POST", "/api/v1/streams/tickets", model.AskTicket{URL: list}))
	made := must[model.StreamTicket](b, 201,
		b.do("POST", "/api/v1/streams/tickets", model.AskTicket{URL: list + "&watch=true"}))
	res, err := http.Get(b.url + made.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	w := &watched{b: b, lines: bufio.NewScanner(res.Body), res: res}
	if got := w.told(); res.StatusCode != http.StatusOK || got != "ADDED other" {
		b.t.Errorf("with a ticket: %d, %s", res.StatusCode, got)
	}
	if err := res.Body.Close(); err != nil {
		b.t.Error(err)
	}
}

// TestListsOfTheFleetAreWatched: what belongs to no cluster is told as it comes, changes and goes, and to those alone
// who may list it (the section 2: watch on every collection).
func TestListsOfTheFleetAreWatched(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watchedFleet("tidegauge")
	watch := func(path string) *watched {
		w := b.watch(token, "/api/v1/"+path, "")
		w.told()
		return w
	}
	policies, hooks, tokens := watch("approvalpolicies"), watch("webhooks"), watch("tokens")
	roles, bindings := watch("roles"), watch("rolebindings")
	secrets, leftovers := watch("catalogsecrets"), watch("leftovers?namespace=ops")

	const policy = "/api/v1/approvalpolicies/production"
	must[model.ApprovalPolicy](b, 200, b.write("PUT", policy, productionPolicy()))
	policies.want("ADDED", "production")
	changed := productionPolicy()
	changed.Approvers = 3
	must[model.ApprovalPolicy](b, 200, b.ask("PUT", policy, changed, "If-Match", "*"))
	policies.want("MODIFIED", "production")
	must[model.Removed](b, 200, b.do("DELETE", policy, nil))
	policies.want("DELETED", "production")

	must[model.Webhook](b, 200, b.write("PUT", "/api/v1/webhooks/portal",
		model.WebhookSpec{URL: "https://portal.example.com/hook", Types: []string{"cluster.*"}}))
	hooks.want("ADDED", "portal")
	must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/looker", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"list"}, Resources: []string{"clusters"}},
	}}))
	roles.want("ADDED", "looker")
	ann := b.give(model.AddToken{Name: "Ann", Role: "none"})
	if m := tokens.want("ADDED", "Ann"); m.of.ID != ann.ID {
		t.Errorf("the token is told as %+v, want %s", m.of, ann.ID)
	}
	b.bind("ann", "looker", ann.Actor, model.AccessScope{})
	bindings.want("ADDED", "ann")
	for _, path := range []string{"approvalpolicies", "webhooks", "tokens", "identities", "roles", "catalogsecrets"} {
		if _, status := b.tryWatch(ann.Secret, "/api/v1/"+path, ""); status != http.StatusForbidden {
			t.Errorf("who may not list %s and watches them is answered %d", path, status)
		}
	}
	must[model.Removed](b, 200, b.do("DELETE", bindingsPath+"ann", nil))
	bindings.want("DELETED", "ann")

	must[model.CatalogSecret](b, 200, b.do("PUT", "/api/v1/catalogsecrets/pull",
		`{"kind": "token", "value": {"token": "t"}}`))
	secrets.want("ADDED", "pull")
	b.installed()
	b.exec("installer",
		`insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ('default', 'spoke', '11111111-1111-5111-8111-111111111111', '', '')`)
	b.exec("installer",
		`insert into installer.leftovers (tenant, cluster_id, namespace, csv, package, removal, objects, more, removed)
		values ('default', '11111111-1111-5111-8111-111111111111', 'ops', 'tidegauge.v0', 'tidegauge', 'r', '[]', 0, now())`)
	b.fact(events.Installer, events.KindCSV, "spoke/ops/"+gauge, "spoke/ops/"+gauge,
		events.CSVRemoved{Reason: "Uninstalled"})
	leftovers.want("ADDED", "tidegauge.v0")
}

// TestEveryListIsWatchedOrSaysWhyNot: docs/api.md names each list that has no watch, and why.
func TestEveryListIsWatchedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, reasons, ok := strings.Cut(string(raw), "Lists without a watch")
	if !ok {
		t.Fatal("docs/api.md has no table of lists without a watch")
	}
	excuses := map[string]bool{}
	for _, row := range strings.Split(reasons, "\n")[4:] {
		lists, _, more := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !more {
			break // the end of the table
		}
		for path := range strings.SplitSeq(lists, ", ") {
			excuses[strings.Trim(path, "`")] = true
		}
	}
	doc := api.New(api.Deps{}).Document()
	for path, item := range doc.Paths {
		op := item.Get
		if op == nil || op.Responses["200"] == nil {
			continue
		}
		answer := op.Responses["200"].Content["application/json"]
		if answer == nil {
			continue
		}
		s := answer.Schema
		if s.Ref != "" {
			s = doc.Components.Schemas.SchemaFromRef(s.Ref)
		}
		if s == nil || s.Properties["items"] == nil || s.Properties["next"] == nil {
			continue
		}
		watchable := slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == "watch" })
		if watchable == excuses[path] {
			t.Errorf("the list %s: a watch: %v, a reason in docs/api.md for having none: %v", path, watchable,
				excuses[path])
		}
		delete(excuses, path)
	}
	if len(excuses) > 0 {
		t.Errorf("docs/api.md excuses what is no list: %v", excuses)
	}
}
