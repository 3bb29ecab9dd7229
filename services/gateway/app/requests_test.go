package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// TestBadInput: each way to get a request wrong, with the place and the rule of the answer.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const groups = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups"
	cases := []struct {
		name, method, path, body string
		status                   int
		location, rule           string
	}{
		{"no JSON", "POST", "/api/v1/clusters", `{`, 400, "", ""},
		{"no body", "POST", "/api/v1/clusters", ``, 400, "", ""},
		{"no object", "POST", "/api/v1/clusters", `[]`, 400, "body", "type"},
		{"unknown field", "POST", groups, `{"name": "a", "targets": []}`, 400, "body.targets", "unknown-field"},
		{"missing field", "POST", groups, `{}`, 400, "body", "required"},
		{"wrong type", "POST", groups, `{"name": 5}`, 400, "body.name", "type"},
		{"bad name", "POST", groups, `{"name": "A_b"}`, 400, "body.name", "dns-1123-subdomain"},
		{"long name", "POST", groups, `{"name": "` + strings.Repeat("a", 254) + `"}`, 400, "body.name", "max-length"},
		{
			"bad target", "POST", groups, `{"name": "a", "targetNamespaces": ["ok", "Not"]}`, 400,
			"body.targetNamespaces[1]", "dns-1123-label",
		},
		{"too many targets", "POST", groups, `{"name": "a", "targetNamespaces": [` + strings.Repeat(`"a",`, 100) +
			`"a"]}`, 400, "body.targetNamespaces", "max-items"},
		{"bad word", "POST", groups, `{"name": "a", "upgradeStrategy": "Hope"}`, 400, "body.upgradeStrategy", "one-of"},
		{
			"bad namespace in the path", "GET", "/api/v1/clusters/spoke/namespaces/A_b/operatorgroups", ``, 400,
			"path.namespace", "dns-1123-label",
		},
		{"bad cluster in the path", "DELETE", "/api/v1/clusters/a..b", ``, 400, "path.cluster", "dns-1123-label"},
		{"plan that there is not", "GET", "/api/v1/installplans/1", ``, 404, "path.id", "plan-name"},
		{"bad plan name", "GET", "/api/v1/installplans/A_b", ``, 400, "path.id", "type"},
		{"unknown parameter", "GET", "/api/v1/clusters?colour=red", ``, 400, "query.colour", "unknown-parameter"},
		{"limit too large", "GET", "/api/v1/clusters?limit=501", ``, 400, "query.limit", "maximum"},
		{"limit that is no number", "GET", "/api/v1/clusters?limit=x", ``, 400, "query.limit", "type"},
		{"foreign cursor", "GET", "/api/v1/clusters?cursor=WyJhIiwiYiJd", ``, 400, "query.cursor", "cursor"},
		{"no cursor at all", "GET", "/api/v1/installplans?cursor=%21", ``, 400, "query.cursor", "cursor"},
		{"no position", "GET", "/api/v1/clusters?minPosition=x", ``, 400, "query.minPosition", "position"},
		{
			"position beyond the record", "GET", "/api/v1/clusters?minPosition=1-99999", ``, 409, "query.minPosition",
			"position-in-record",
		},
		{"unknown event type", "GET", "/api/v1/events?type=cluster.exploded.v1", ``, 400, "query.type", "event-type"},
		{"bad event position", "GET", "/api/v1/events?after=7", ``, 400, "query.after", "position"},
		{"bad event stream", "GET", "/api/v1/events?stream=7", ``, 400, "query.stream", "stream"},
		{"bad position of a stream", "GET", "/api/v1/events/stream?after=7", ``, 400, "query.after", "position"},
		{"label of a cluster", "POST", "/api/v1/clusters", `{"name": "a", "labels": {"a b": ""}, "kubeconfig": ` +
			quoted(kubeconfig) + `}`, 400, "body.labels.a b", "kubernetes-label-key"},
		{
			"kubeconfig with a plugin", "POST", "/api/v1/clusters", `{"name": "a", "kubeconfig": ` +
				quoted(strings.Replace(kubeconfig, "{token: s3cr3t-token}", "{exec: {command: s3cr3t}}", 1)) + `}`, 400,
			"body.kubeconfig", "kubeconfig-no-exec",
		},
		{
			"directory with ..", "POST", "/api/v1/catalogs",
			`{"name": "a", "source": {"type": "directory", "path": "/x/../y"}}`, 400, "body.source.path", "path",
		},
		{
			"unknown source", "POST", "/api/v1/catalogs", `{"name": "a", "source": {"type": "ftp"}}`, 400,
			"body.source.type", "one-of",
		},
		{
			"approval without a digest", "POST", "/api/v1/installplans/00000000-0000-0000-0000-000000000000/approve",
			`{}`, 400, "body", "required",
		},
		{"body over the limit", "POST", groups, `{"name": "` + strings.Repeat("a", 700<<10) + `"}`, 413, "", ""},
		{"body far over the limit", "POST", "/api/v1/clusters", strings.Repeat("a", 2<<20), 413, "", ""},
		{"unknown path", "GET", "/api/v1/nothing", ``, 404, "", ""},
		{"unknown method", "PATCH", "/api/v1/clusters", ``, 405, "", ""},
	}
	for _, c := range cases {
		var body any
		if c.body != "" {
			body = c.body
		}
		a := b.do(c.method, c.path, body)
		if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
			t.Errorf("%s: content type %q", c.name, ct)
		}
		p := must[problem](b, c.status, a)
		if p.Status != c.status || p.Title == "" || p.Detail == "" {
			t.Errorf("%s: %s", c.name, a.body)
		}
		if strings.Contains(string(a.body), "s3cr3t") {
			t.Errorf("%s: the answer repeats a secret", c.name)
		}
		if c.rule != "" && (len(p.Errors) == 0 || p.Errors[0].Location != c.location || p.Errors[0].Rule != c.rule) {
			t.Errorf("%s: %s", c.name, a.body)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+groups, strings.NewReader("name: a"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "text/yaml")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("YAML: %d, %v", res.StatusCode, err)
	}
	if n := b.count(`select count(*) from eventlog.streams where kind <> 'access'`); n != 1 {
		t.Errorf("bad input made %d streams", n-1)
	}
}

func quoted(s string) string {
	return `"` + strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(s) + `"`
}

// TestDryRunsNeverWrite: a dry run that cannot be read as one is refused, with nothing written, and a filter that
// cannot be read lists nothing.
func TestDryRunsNeverWrite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const groups = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups"
	for _, query := range []string{
		"dryRun=true%", "dryRun=", "dryRun=%zz", "dryRun=false&dryRun=true", "dryRun=true;x",
		"dryRun=true+", "dryRun=%ff", "dryRun=yes", "dryrun=true", "dryRun",
	} {
		must[problem](b, 400, b.do("POST", groups+"?"+query, model.CreateOperatorGroup{Name: "g"}))
		must[problem](b, 400, b.do("DELETE", "/api/v1/clusters/spoke/namespaces/ops/operators/a?"+query, nil))
	}
	for _, path := range []string{"subscriptions", "installplans", "operators", "operatorgroups"} {
		must[problem](b, 400, b.do("GET", "/api/v1/"+path+"?cluster=west%", nil))
	}
	if n := b.count(`select count(*) from eventlog.streams where kind <> 'access'`); n != 1 {
		t.Errorf("refused dry runs made %d streams", n-1)
	}
}

// TestEveryRouteWantsAToken walks the OpenAPI document: without a token, or with a wrong one, nothing answers but where
// to sign in, and a viewer may only read.
func TestEveryRouteWantsAToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("gateway",
		`insert into gateway.tokens (tenant, id, hash, role) values ('default', 'token-viewer', sha256('viewer-token-0123456789'), 'viewer'),
		('default', 'token-old', sha256('old-token-0123456789'), 'admin')`)
	b.exec("gateway", `update gateway.tokens set expires = now() - interval '1 second' where id = 'token-old'`)
	doc := must[struct{ Paths map[string]map[string]any }](b, 200, b.do("GET", "/api/v1/openapi.json", nil))
	fill := strings.NewReplacer("/bodies/{id}", "/bodies/c1:"+strings.Repeat("0", 64),
		"{cluster}", "a", "{gate}", "a", "{namespace}", "a", "{name}", "a", "{catalog}",
		"a", "{package}", "a", "{tenant}", "a",
		"{subscription}", "a", "{number}", "1", "{id}", "00000000-0000-0000-0000-000000000000")
	routes, limited := 0, 0
	for path, methods := range doc.Paths {
		for method := range methods {
			routes++
			method, path := strings.ToUpper(method), "/api/v1"+fill.Replace(path)
			if path == "/api/v1/auth/config" {
				continue
			}
			for _, bearer := range []string{"", "wrong", "old-token-0123456789"} {
				a := b.as(bearer, method, path, nil)
				if a.status == http.StatusTooManyRequests && bearer != "" {
					limited++ // who guesses tokens is slowed down; other routes come before that in other runs
					continue
				}
				if a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s %s with token %q: %d", method, path, bearer, a.status)
				}
			}
			if method == http.MethodGet || path == "/api/v1/shadow" || path == "/api/v1/streams/tickets" ||
				path == "/api/v1/hooks/catalogs/a" || path == breakGlassOpen { // the last two have no roles
				continue
			}
			if a := b.as("viewer-token-0123456789", method, path,
				validBody(method, path)); a.status != http.StatusForbidden {
				t.Errorf("%s %s as a viewer: %d %s", method, path, a.status, a.body)
			}
		}
	}
	if limited > 2*routes-40 {
		t.Errorf("%d of %d guesses were only slowed down: too few were refused by what they asked for", limited, 2*routes)
	}
	if routes < 35 {
		t.Errorf("the document has only %d routes", routes)
	}
	for _, path := range []string{"/api/v1/openapi.json", "/api/v1/openapi.yaml", "/api/v1/nothing"} {
		if a := b.as("", "GET", path, nil); a.status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, a.status)
		}
	}
	if a := b.as("viewer-token-0123456789", "GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("a viewer reads: %d", a.status)
	}
	if n := b.count(
		`select count(*) from gateway.tokens where position(convert_to('token-0123', 'UTF8') in hash) > 0`); n != 0 {
		t.Error("a token is stored in the clear")
	}
}

// validBody is a body that passes the form of a route, so that the answer is about rights.
func validBody(method, path string) any {
	switch {
	case method == http.MethodGet, method == http.MethodDelete, strings.HasSuffix(path, "/refresh"),
		strings.HasSuffix(path, "/hook"), strings.HasPrefix(path, "/api/v1/previews/"):
		return nil
	case strings.HasSuffix(path, "/rollback") && strings.HasPrefix(path, "/api/v1/fleet/"):
		return fleetmodel.RollBackRollout{Reason: "a"}
	case strings.HasPrefix(path, "/api/v1/fleet/subscriptions/"):
		return wantedEverywhere()
	case strings.HasSuffix(path, "/gates/a/pass"):
		return fleetmodel.PassGate{Reason: "a"}
	case strings.HasSuffix(path, "/clusters/a/skip"):
		return fleetmodel.SkipCluster{Reason: "a"}
	case path == "/api/v1/clusters":
		return model.RegisterCluster{Name: "a", Kubeconfig: kubeconfig}
	case strings.HasSuffix(path, "/agent-config"):
		return model.AgentConfigRequest{Recipient: "age1"}
	case strings.HasSuffix(path, "/join-tokens"):
		return model.IssueJoinToken{Key: "U" + strings.Repeat("A", 55)}
	case strings.HasSuffix(path, "/clusters/a/agent"):
		return model.DecideAgent{Action: cluster.RevokeAgent}
	case strings.HasSuffix(path, "/credentials"):
		return model.ReplaceCredentials{Kubeconfig: kubeconfig}
	case path == "/api/v1/catalogs":
		return model.AddCatalog{Name: "a", Source: model.CatalogSource{Type: "directory", Path: "/a"}}
	case strings.HasPrefix(path, "/api/v1/catalogsecrets/"):
		return model.SetCatalogSecret{Kind: "token", Value: json.RawMessage(`{"token": "t"}`)}
	case path == "/api/v1/cataloghealth":
		return model.SetCatalogHealth{Mode: "Strict"}
	case strings.Contains(path, "/catalogs/"):
		return model.ChangeCatalog{Source: model.CatalogSource{Type: "directory", Path: "/a"}}
	case strings.HasSuffix(path, "/operatorgroups"):
		return model.CreateOperatorGroup{Name: "a"}
	case strings.HasSuffix(path, "/subscriptions"):
		return subscribe("a", "a")
	case strings.HasSuffix(path, "/overrides"):
		return overrides
	case strings.HasSuffix(path, "/rollback"):
		return model.RollBack{}
	case strings.Contains(path, "/subscriptions/"):
		return subscribe("a", "a").SubscriptionSpec
	case strings.HasSuffix(path, "/approve"):
		return model.ApprovePlan{Digest: "a"}
	case strings.HasSuffix(path, "/comments"):
		return model.CommentPlan{Text: "a"}
	case path == "/api/v1/previews":
		return model.PreviewRequest{Changes: []model.PreviewChange{{}}}
	case strings.HasPrefix(path, "/api/v1/roles/"):
		return model.RoleSpec{Rules: []model.AccessRule{{Verbs: []string{"get"}, Resources: []string{"clusters"}}}}
	case strings.HasPrefix(path, "/api/v1/rolebindings/"):
		return model.RoleBindingSpec{Role: "admin", Subjects: []model.AccessSubject{{Kind: "User", Name: "a"}}}
	case path == breakGlassOpen:
		return model.OpenBreakGlass{Reason: "a"}
	case path == "/api/v1/tokens":
		return model.AddToken{Name: "a", Role: model.RoleViewer}
	case path == "/api/v1/log/parked/retry":
		return model.RetryParked{Consumer: "a"}
	case path == "/api/v1/log/parked/skip":
		ref := model.ParkedRef{Consumer: "a", Stream: "a", Version: 1}
		return model.SkipParked{ParkedRef: ref, Reason: "a"}
	case strings.HasPrefix(path, "/api/v1/quotas/"):
		return model.SetQuota{}
	case path == "/api/v1/fleet/budget":
		return fleetmodel.SetFleetBudget{}
	case path == "/api/v1/fleet/budget/allow":
		return fleetmodel.AllowFleetBudget{Changed: 1, Reason: "a"}
	case path == "/api/v1/replicas/drain":
		return model.DrainReplica{Replica: "a"}
	case strings.HasSuffix(path, "/replay"):
		return model.ReplayWebhook{After: "1-0"}
	case path == "/api/v1/effects":
		return model.EffectsRequest{Action: "stop"}
	default:
		return map[string]any{}
	}
}

// TestTenantsDoNotSeeEachOther: rows of another tenant are not there (DESIGN D10).
func TestTenantsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("gateway",
		`insert into gateway.tokens (tenant, id, hash, role) values ('other', 'token-other', sha256('other-token-0123456789'), 'admin')`)
	b.cluster("spoke")
	must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/spoke"), nil))
	as := func(method, path string, body any) answer { return b.as("other-token-0123456789", method, path, body) }
	must[problem](b, 404, as("GET", "/api/v1/clusters/spoke", nil))
	if l := must[struct{ Items []model.Cluster }](b, 200, as("GET", "/api/v1/clusters", nil)); len(l.Items) != 0 {
		t.Errorf("got %+v", l)
	}
	if l := must[struct{ Items []model.Event }](b, 200, as("GET", "/api/v1/events", nil)); len(l.Items) != 0 {
		t.Errorf("got %+v", l)
	}
	must[problem](b, 404, as("POST", subscriptions, subscribe("a", "a")))
	must[model.Cluster](b, 201, as("POST", "/api/v1/clusters",
		model.RegisterCluster{Name: "spoke", Kubeconfig: kubeconfig}))
}

// TestMinPosition: a read waits for what a write answered, in both forms, and says so when it cannot.
func TestMinPosition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"a", "b", "c"} {
		c := must[model.Cluster](b, 201, b.do("POST", "/api/v1/clusters",
			model.RegisterCluster{Name: name, Kubeconfig: kubeconfig}))
		must[model.Cluster](b, 200, b.do("GET", "/api/v1/clusters/"+name+"?minPosition="+c.Position, nil))
		must[model.Cluster](b, 200, b.do("GET", "/api/v1/clusters/"+name+"?minPosition="+
			model.StreamVersion(mustStream(t, c.Stream), c.Version), nil))
	}
	// A version that does not exist has no position: the wait is bounded.
	id := events.StreamID{
		Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster, "a"),
		Incarnation: 1,
	}
	p := must[problem](b, http.StatusGatewayTimeout,
		b.do("GET", "/api/v1/clusters/a?minPosition="+model.StreamVersion(id, 99), nil))
	if p.Kind != "unavailable" {
		t.Errorf("got %v", p)
	}
}

func mustStream(t *testing.T, s string) events.StreamID {
	t.Helper()
	id, err := events.ParseStreamID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
