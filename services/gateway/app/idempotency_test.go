package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// keyed sends a POST with an Idempotency-Key; an error is one of the connection.
func (b *bench) keyed(bearer, key, path string, body any) (answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path, bytes.NewReader(raw))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }() // all of it was read
	out, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, out}, err
}

func (b *bench) mustKeyed(key, path string, body any) answer {
	b.t.Helper()
	a, err := b.keyed(token, key, path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// TestOneIntentForEachKey: a repetition gets the answer of the first request, other requests with its key are refused,
// and what was refused may be sent again.
func TestOneIntentForEachKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cluster := map[string]any{"name": "spoke", "kubeconfig": kubeconfig}
	first := b.mustKeyed("k1", "/api/v1/clusters", cluster)
	again := b.mustKeyed("k1", "/api/v1/clusters", cluster)
	if first.status != 201 || again.status != 201 || !bytes.Equal(first.body, again.body) ||
		again.header.Get("Location") != first.header.Get("Location") ||
		again.header.Get("Chandler-Position") != first.header.Get("Chandler-Position") ||
		first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("first %d %s %v, again %d %s %v", first.status, first.body, first.header, again.status, again.body,
			again.header)
	}
	b.positionsAreUnderstood(first.header.Get("Chandler-Position"))
	p := must[problem](b, 422, b.mustKeyed("k1", "/api/v1/clusters", map[string]any{"name": "other"}))
	if !strings.HasSuffix(p.Type, "/key-reused.md") {
		t.Errorf("another body: %s", p.Type)
	}
	must[problem](b, 422, b.mustKeyed("k1", "/api/v1/catalogs", cluster))
	if n := b.count(`select count(*) from gateway.idempotency_keys`); n != 1 {
		t.Errorf("%d answers are kept", n)
	}
	must[problem](b, 400, b.mustKeyed("k 1", "/api/v1/clusters", cluster))
	const groups = "/api/v1/clusters/late/namespaces/ops/operatorgroups"
	must[problem](b, 404, b.mustKeyed("k2", groups, model.CreateOperatorGroup{Name: "g"}))
	b.cluster("late")
	if a := b.mustKeyed("k2", groups, model.CreateOperatorGroup{Name: "g"}); a.status != 201 {
		t.Errorf("what was refused, again: %d %s", a.status, a.body)
	}
	b.triedAreTakenBack()
}

// positionsAreUnderstood: what a POST with a key answers as its position is one that reads, lists of events and streams
// begin from.
func (b *bench) positionsAreUnderstood(position string) {
	b.t.Helper()
	if !strings.Contains(position, "@") {
		b.t.Errorf("a write with a key has the position %q", position)
	}
	after := url.QueryEscape(position)
	b.cluster("behind")
	var page struct{ Items []model.Event }
	b.until(func() bool {
		page = must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?after="+after, nil))
		return len(page.Items) > 0
	})
	if len(page.Items) != 1 || page.Items[0].Subject != "behind" {
		b.t.Errorf("behind %s: %+v", position, page.Items)
	}
	must[json.RawMessage](b, 200, b.do("GET", "/api/v1/clusters?minPosition="+after, nil))
	for _, s := range []sse{b.stream("after="+after, ""), b.stream("", position)} {
		if id, _, ok := s.next(); !ok || id != page.Items[0].Sequence {
			b.t.Errorf("a stream behind %s begins with %q", position, id)
		}
		s.close()
	}
	for _, bad := range []string{"cluster@1", "cluster:x@0", "@", "1@"} {
		p := must[problem](b, 400, b.do("GET", "/api/v1/events?after="+url.QueryEscape(bad), nil))
		if len(p.Errors) != 1 || p.Errors[0].Location != "query.after" || p.Errors[0].Rule != "position" {
			b.t.Errorf("after=%s: %+v", bad, p)
		}
	}
}

// triedAreTakenBack: a dry run is answered what the write would be answered, refusals included, and leaves no event, no
// row and no position, with a key and without one (ADR 0053).
func (b *bench) triedAreTakenBack() {
	b.t.Helper()
	const keys = `select count(*) from gateway.idempotency_keys`
	const events = `select count(*) from eventlog.events where type like 'access.%' or type like 'catalog%'
		or type in ('cluster.removed.v1', 'cluster.configured.v1')`
	before, kept := b.count(events), b.count(keys)
	role := model.RoleSpec{Rules: []model.AccessRule{{Resources: []string{"clusters"}, Verbs: []string{"get"}}}}
	catalog := model.AddCatalog{Name: "tried", Source: model.CatalogSource{Type: "image", Image: "registry.test/c:1"}}
	secret := model.SetCatalogSecret{Kind: "token", Value: []byte(`{"token": "x"}`)}
	position := regexp.MustCompile(`"position":"[^"]`)
	for _, c := range []struct {
		method, path string
		body         any
		want         int
	}{
		{"PATCH", "/api/v1/clusters/late", model.ConfigureCluster{CopiedCSVs: "on"}, 200},
		{"PATCH", "/api/v1/clusters/late", model.ConfigureCluster{CopiedCSVs: "maybe"}, 400},
		{"PATCH", "/api/v1/clusters/none", model.ConfigureCluster{CopiedCSVs: "on"}, 404},
		{"DELETE", "/api/v1/clusters/late", nil, 200},
		{"DELETE", "/api/v1/clusters/none", nil, 404},
		{"PUT", "/api/v1/roles/tried", role, 200},
		{"DELETE", "/api/v1/roles/tried", nil, 404},
		{"PUT", "/api/v1/rolebindings/tried", model.RoleBindingSpec{
			Role: "tried", Subjects: []model.AccessSubject{{Kind: "User", Name: "x"}},
		}, 422},
		{"POST", "/api/v1/catalogs", catalog, 201},
		{"PUT", "/api/v1/catalogsecrets/tried", secret, 200},
		{"PUT", "/api/v1/operatorhub", model.SetOperatorHub{DisableAllDefaultSources: true}, 200},
	} {
		a := b.do(c.method, c.path+"?dryRun=true", c.body)
		if a.status != c.want || a.header.Get("Chandler-Position") != "" || a.header.Get("Location") != "" ||
			a.header.Get("ETag") != "" || position.Match(a.body) {
			b.t.Errorf("%s %s: %d %v %s, want %d", c.method, c.path, a.status, a.header, a.body, c.want)
		}
	}
	if a := b.mustKeyed("k3", "/api/v1/catalogs?dryRun=true", catalog); a.status != 201 {
		b.t.Errorf("with a key: %d %s", a.status, a.body)
	}
	if n, k := b.count(events), b.count(keys); n != before || k != kept {
		b.t.Errorf("%d events and %d keys, before the dry runs %d and %d", n, k, before, kept)
	}
	if hub := must[model.OperatorHub](b, 200, b.do("GET", "/api/v1/operatorhub", nil)); hub.DisableAllDefaultSources {
		b.t.Error("a dry run switched the default catalogs off")
	}
}

// TestSecretsOfKeptAnswers: who reads the table reads no new token, and its maker reads it again.
func TestSecretsOfKeptAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := model.AddToken{Name: "portal", Role: model.RoleAdmin}
	first := must[model.NewToken](b, 201, b.mustKeyed("k", "/api/v1/tokens", in))
	again := must[model.NewToken](b, 201, b.mustKeyed("k", "/api/v1/tokens", in))
	if first.Secret == "" || first.Secret != again.Secret {
		t.Errorf("another token: %s, then %s", first.ID, again.ID)
	}
	if n := b.count(fmt.Sprintf(`select count(*) from gateway.idempotency_keys
		where position(convert_to('%s', 'UTF8') in answer) > 0`, first.Secret)); n != 0 {
		t.Error("the new token is stored in the clear")
	}
	// Another token of the same person cannot read what the first one asked for.
	mine := must[model.NewToken](b, 201, b.do("POST", "/api/v1/tokens",
		model.AddToken{Name: "other", Role: model.RoleAdmin, Actor: first.Actor}))
	if a, err := b.keyed(first.Secret, "k", "/api/v1/tokens", in); err != nil || a.status != 201 {
		t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	if a, err := b.keyed(mine.Secret, "k", "/api/v1/tokens", in); err != nil || a.status != 409 {
		t.Errorf("another token: %d %s, %v", a.status, a.body, err)
	}
	keys := store.Keys{Work: b.pool("gateway")}
	b.exec("admin", `update gateway.idempotency_keys set expires = now()`)
	if err := keys.CollectOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`select count(*) from gateway.idempotency_keys`); n != 0 {
		t.Errorf("%d answers are left of a day ago", n)
	}
}

// TestKeptAnswersEndWithRights: who has lost what allowed a request does not get its answer again, whether the
// operation, the object or what was given to others decided it; and gets it again with the right.
func TestKeptAnswersEndWithRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.cluster("other")
	b.catalog("fleet")
	must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/tokens", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"create"}, Resources: []string{"tokens"}},
	}}))
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	spoke, other := model.AccessScope{Clusters: []string{"spoke"}}, model.AccessScope{Clusters: []string{"other"}}
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	for i, c := range []struct {
		what, path string
		body       any
		role, less string // less is what is left
		at, later  model.AccessScope
	}{
		{
			"the operation", subscriptions, subscribe("anemometer", "tidegauge"),
			"operator-admin", "viewer", spoke, spoke,
		},
		{
			"the object", "/api/v1/installplans/" + id + "/approve",
			model.ApprovePlan{Digest: p.Digest},
			"operator-admin", "operator-admin", spoke, other,
		},
		{
			"what was given", tokensPath,
			model.AddToken{Name: "more", Role: model.RoleAdmin},
			"admin", "tokens",
			model.AccessScope{},
			model.AccessScope{},
		},
	} {
		key := fmt.Sprintf("k%d", i)
		ask := func() answer {
			a, err := b.keyed(ann.Secret, key, c.path, c.body)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		b.bind("ann", c.role, ann.Actor, c.at)
		first := ask()
		if first.status > 201 {
			t.Fatalf("%s: %d %s", c.what, first.status, first.body)
		}
		b.bind("ann", c.less, ann.Actor, c.later)
		if a := ask(); a.status != 403 || a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s decides, without the right: %d %s", c.what, a.status, a.body)
		}
		b.bind("ann", c.role, ann.Actor, c.at)
		if a := ask(); a.status != first.status || !bytes.Equal(a.body, first.body) {
			t.Errorf("%s decides, with the right again: %d %s", c.what, a.status, a.body)
		}
	}
}

// TestKeyInFlight: a repetition that comes too early is told so at once, and later gets the answer.
func TestKeyInFlight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cluster := map[string]any{"name": "spoke", "kubeconfig": kubeconfig}
	done := make(chan answer, 1)
	err := b.pool("admin").Tx(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `lock table gateway.credentials in exclusive mode`); err != nil {
			return err
		}
		go func() {
			a, err := b.keyed(token, "k", "/api/v1/clusters", cluster)
			if err != nil {
				t.Error(err)
			}
			done <- a
		}()
		b.until(func() bool {
			return b.count(`select count(*) from pg_locks
				where not granted and relation = 'gateway.credentials'::regclass`) > 0
		})
		p := must[problem](b, 409, b.mustKeyed("k", "/api/v1/clusters", cluster))
		if !strings.HasSuffix(p.Type, "/request-in-flight.md") {
			t.Errorf("in flight: %s", p.Type)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.status != 201 {
		t.Errorf("the first: %d %s", a.status, a.body)
	}
	if a := b.mustKeyed("k", "/api/v1/clusters", cluster); a.status != 201 {
		t.Errorf("the repetition: %d %s", a.status, a.body)
	}
}

// TestQuestionsWithKeysKeepNothing: what only asks is carried out as without a key, and fills no table.
func TestQuestionsWithKeysKeepNothing(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	priority := int32(7)
	question := model.PreviewRequest{Changes: []model.PreviewChange{
		{Catalog: &model.PreviewCatalog{Name: "fleet", Priority: &priority}},
	}}
	wanted := subscribe("anemometer", "tidegauge")
	for _, c := range []struct {
		path string
		body any
	}{
		{previews, question},
		{subscriptions + "?dryRun=true", wanted},
		{subscriptions + "?dryRun=1", wanted},
		{"/api/v1/shadow", model.ShadowRequest{}},
	} {
		first, again := b.mustKeyed("k", c.path, c.body), b.mustKeyed("k", c.path, c.body)
		if first.status != 200 || again.status != 200 || again.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %d %s, again %d %v", c.path, first.status, first.body, again.status, again.header)
		}
	}
	if n := b.count(`select count(*) from gateway.idempotency_keys`); n != 0 {
		t.Errorf("%d answers are kept", n)
	}
}

// TestKeysOfOneAreBounded: an actor for whom enough is kept gets no new key, reads what was answered, and keeps nobody
// else out. A body that the operation does not take is not read.
func TestKeysOfOneAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleAdmin})
	in := model.AddToken{Name: "portal", Role: model.RoleViewer}
	ask := func(key string) answer {
		a, err := b.keyed(ann.Secret, key, tokensPath, in)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := ask("k")
	b.exec("admin", `insert into gateway.idempotency_keys (tenant, actor, key, request, answer, expires)
		select tenant, actor, 'k' || n, request, '', now() + interval '1 hour'
		from gateway.idempotency_keys, generate_series(2, $1) n`, store.MaxKeysOfOne)
	if a := ask("more"); a.status != 429 || a.header.Get("Retry-After") != "600" {
		t.Errorf("beyond the limit: %d %s %v", a.status, a.body, a.header)
	}
	if a := ask("k"); a.status != 201 || !bytes.Equal(a.body, first.body) {
		t.Errorf("what was answered: %d %s", a.status, a.body)
	}
	if a := b.mustKeyed("more", tokensPath, in); a.status != 201 {
		t.Errorf("somebody else: %d %s", a.status, a.body)
	}
	b.exec("admin", `update gateway.idempotency_keys set expires = now() where key = 'k2'`)
	if a := ask("more"); a.status != 201 {
		t.Errorf("when one has ended: %d %s", a.status, a.body)
	}
	in.Name = strings.Repeat("a", 200_000)
	must[problem](b, 413, ask("large"))
}

// TestKeysOfOneLeaveTurnsToOthers: requests of one identity that last do not hold up those of another, and who waits is
// told so after a while.
func TestKeysOfOneLeaveTurnsToOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleAdmin})
	var held sync.WaitGroup
	register := func(key string) answer {
		a, err := b.keyed(ann.Secret, key, "/api/v1/clusters", map[string]any{"name": key, "kubeconfig": kubeconfig})
		if err != nil {
			t.Error(err)
		}
		return a
	}
	err := b.pool("admin").Tx(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `lock table gateway.credentials in exclusive mode`); err != nil {
			return err
		}
		for i := range 2 {
			held.Go(func() {
				if a := register(fmt.Sprintf("spoke-%d", i)); a.status != 201 {
					t.Errorf("one that had to wait for the database: %d %s", a.status, a.body)
				}
			})
		}
		b.until(func() bool {
			return b.count(`select count(*) from pg_locks
				where not granted and relation = 'gateway.credentials'::regclass`) == 2
		})
		if a := register("spoke-2"); a.status != 429 || a.header.Get("Retry-After") == "" {
			t.Errorf("one more: %d %s", a.status, a.body)
		}
		if a := b.mustKeyed("k", tokensPath, model.AddToken{Name: "portal", Role: model.RoleViewer}); a.status != 201 {
			t.Errorf("somebody else: %d %s", a.status, a.body)
		}
		return nil
	})
	held.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

// TestEachIntentOnceOverBrokenConnections: the connections of the gateway to its database are cut again and again, as
// they are when it is killed: what had not been committed is gone. Clients repeat by key until they are answered; each
// intent happened once.
func TestEachIntentOnceOverBrokenConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke") // read models are there; a cut while they are made has tests of its own
	const clients, intents = 4, 10
	stop := make(chan struct{})
	var cutter, askers sync.WaitGroup
	var repeated, made atomic.Int64
	cuts := 0
	cutter.Go(func() {
		// On a busy machine nothing is done between two cuts: it takes longer from one to the next until something is.
		const shortest = 40 * time.Millisecond
		for pause, before := shortest, int64(0); ; {
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
			pause *= 2
			if now := made.Load(); now > before {
				pause, before = shortest, now
			}
			n := 0
			err := b.pool("admin").QueryRow(t.Context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity
				where usename like '%gateway%' and datname = current_database() and state <> 'idle'`).Scan(&n)
			if err != nil {
				t.Error(err)
			}
			cuts += n
		}
	})
	for c := range clients {
		askers.Go(func() {
			for i := range intents {
				name := fmt.Sprintf("c%d-%d", c, i)
				for tries := 0; ; tries++ {
					a, err := b.keyed(token, "key-"+name, "/api/v1/tokens",
						model.AddToken{Name: name, Role: model.RoleViewer})
					if err == nil && a.status == 201 {
						made.Add(1)
						break
					}
					if err == nil && a.status < 500 && a.status != 409 || tries > 500 {
						t.Errorf("%s: %d %s, %v", name, a.status, a.body, err)
						return
					}
					repeated.Add(1)
					<-time.After(10 * time.Millisecond) // as a client that repeats: its rate is bounded
				}
			}
		})
	}
	askers.Wait()
	close(stop)
	cutter.Wait()
	// Tokens have no name of their own: one that is made twice is there twice.
	if n := b.count(`select count(*) from gateway.tokens where name like 'c%-%'`); n != clients*intents {
		t.Errorf("%d intents made %d tokens", clients*intents, n)
	}
	t.Logf("%d connections were cut, requests were repeated %d times", cuts, repeated.Load())
	if cuts == 0 {
		t.Error("no connection was cut: nothing was tested")
	}
}
