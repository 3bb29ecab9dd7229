package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	quotasPath = "/api/v1/quotas"
	acmeQuota  = quotasPath + "/acme"
	acmeToken  = "acme-token-0123456789"
)

// acme is a tenant beside that of the installation, with an administrator.
func (b *bench) acme() {
	b.t.Helper()
	b.exec("gateway", `insert into gateway.tokens (tenant, id, hash, role)
		values ('acme', 'token-acme', sha256('`+acmeToken+`'), 'admin')`)
}

func (b *bench) quota(hard model.HardQuota) model.Quota {
	b.t.Helper()
	return must[model.Quota](b, 200, b.do("PUT", acmeQuota, model.SetQuota{Hard: hard}))
}

// refusedByQuota says whether an answer is the refusal of one more, which names quota, bound and use.
func (b *bench) refusedByQuota(a answer, words string) {
	b.t.Helper()
	p := must[problem](b, http.StatusForbidden, a)
	if len(p.Errors) != 1 || p.Errors[0].Rule != "quota" || !strings.Contains(p.Detail, words) {
		b.t.Errorf("refused with %v, want the rule quota and %q", p, words)
	}
}

// TestQuotas: however many ask at the same moment, a tenant gets what its quota allows and no more; what stands above a
// lowered quota stays, can be changed and deleted; other tenants are not bounded by it.
func TestQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.acme()
	as := func(method, path string, body any) answer { return b.as(acmeToken, method, path, body) }
	add := func(name string) answer {
		return as("POST", "/api/v1/catalogs",
			model.AddCatalog{Name: name, Source: model.CatalogSource{Type: "directory", Path: "/" + name}})
	}
	if q := b.quota(model.HardQuota{Catalogs: new(int64(3)), Subscriptions: new(int64(1))}); *q.Hard.Catalogs != 3 ||
		q.Used.Catalogs != 0 || q.UpdatedAt == nil || q.Gateways != 1 {
		t.Errorf("set as %+v", q)
	}
	const atOnce = 12
	var wait sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range atOnce {
		wait.Go(func() {
			a := add("c" + strconv.Itoa(i))
			mu.Lock()
			defer mu.Unlock()
			codes[a.status]++
		})
	}
	wait.Wait()
	if codes[201] != 3 || codes[403] != atOnce-3 {
		t.Fatalf("of %d at once with room for 3: %v", atOnce, codes)
	}
	b.refusedByQuota(add("one-more"), "allows 3 catalogs, and there are 3")
	var names []string
	b.until(func() bool {
		names = nil
		for _, c := range must[struct{ Items []model.Catalog }](b, 200, as("GET", "/api/v1/catalogs", nil)).Items {
			names = append(names, c.Name)
		}
		return len(names) == 3
	})

	// Lowered: what is there stays. It is deleted, and only below the quota something is made again.
	if q := b.quota(model.HardQuota{Catalogs: new(int64(2)), Subscriptions: new(int64(1))}); q.Used.Catalogs != 3 {
		t.Errorf("lowered: %+v", q)
	}
	for i, name := range names {
		if a := as("DELETE", "/api/v1/catalogs/"+name, nil); a.status != 200 {
			t.Fatalf("delete %s: %d %s", name, a.status, a.body)
		}
		if i == 0 {
			b.refusedByQuota(add("again"), "allows 2 catalogs, and there are 2")
		}
	}
	must[model.Catalog](b, 201, add("again"))

	// Subscriptions are another bound, and so is another tenant.
	must[model.Cluster](b, 201, as("POST", "/api/v1/clusters",
		model.RegisterCluster{Name: "spoke", Kubeconfig: kubeconfig}))
	in := func(name string) model.CreateSubscription {
		s := subscribe(name, name)
		s.Catalog = "again"
		return s
	}
	must[model.Subscription](b, 201, as("POST", subscriptions, in("a")))
	b.refusedByQuota(as("POST", subscriptions, in("b")), "allows 1 subscriptions, and there are 1")
	b.refusedByQuota(as("POST", subscriptions+"?dryRun=true", in("b")), "allows 1 subscriptions")
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "of-default", Source: model.CatalogSource{Type: "directory", Path: "/a"}}))
	b.quota(model.HardQuota{})
	must[model.Subscription](b, 201, as("POST", subscriptions, in("b")))
	if q := must[model.Quota](b, 200, as("GET", acmeQuota, nil)); q.Hard != (model.HardQuota{}) ||
		q.Used.Subscriptions != 2 || q.Used.Catalogs != 1 {
		t.Errorf("lifted: %+v", q)
	}
}

// TestWhoSetsQuotas: an administrator of the installation sets the quota of any tenant, whose people see their own
// alone; the event is in the log of the tenant.
func TestWhoSetsQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.acme()
	as := func(method, path string, body any) answer { return b.as(acmeToken, method, path, body) }
	b.quota(model.HardQuota{Streams: new(int64(7))})
	b.quota(model.HardQuota{Streams: new(int64(7))}) // nothing changes
	p := must[problem](b, 403, as("PUT", acmeQuota, model.SetQuota{}))
	if !strings.Contains(p.Detail, "administrator of the tenant") {
		t.Errorf("an administrator of the tenant alone: %v", p)
	}
	must[problem](b, 404, as("GET", quotasPath+"/default", nil))
	type list struct{ Items []model.Quota }
	if l := must[list](b, 200, as("GET", quotasPath, nil)).Items; len(l) != 1 || l[0].Tenant != "acme" ||
		*l[0].Hard.Streams != 7 {
		t.Errorf("a tenant sees %+v", l)
	}
	later := model.SetQuota{Hard: model.HardQuota{Catalogs: new(int64(0))}}
	must[model.Quota](b, 200, b.do("PUT", quotasPath+"/later", later))
	l := must[list](b, 200, b.do("GET", quotasPath, nil)).Items
	if len(l) != 3 || l[0].Tenant != "acme" || l[1].Tenant != "default" || l[2].Tenant != "later" ||
		l[1].UpdatedAt != nil {
		t.Errorf("the installation sees %+v", l)
	}
	p = must[problem](b, 400, b.do("PUT", acmeQuota, map[string]any{"hard": map[string]any{"streams": -1}}))
	if len(p.Errors) != 1 || p.Errors[0].Location != "body.hard.streams" {
		t.Errorf("a bound below none: %v", p)
	}
	b.until(func() bool {
		return b.count(`select count(*) from eventlog.events where tenant = 'acme' and type = 'access.quota-set.v1'`) == 1
	})
	viewer := b.give(model.AddToken{Name: "v", Role: model.RoleViewer}).Secret
	must[problem](b, 403, b.as(viewer, "PUT", acmeQuota, model.SetQuota{}))
	must[model.Quota](b, 200, b.as(viewer, "GET", quotasPath+"/default", nil))
}

// TestQuotaOfRequests: all people and programs of a tenant share its requests and streams; who is to help, by the
// break-glass token, and other tenants are answered.
func TestQuotaOfRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.acme()
	as := func(method, path string, body any) answer { return b.as(acmeToken, method, path, body) }
	glass := must[model.NewBreakGlass](b, 201, as("POST", breakGlassPath, nil)).Secret
	must[model.BreakGlassUse](b, 201, b.as(glass, "POST", breakGlassOpen, model.OpenBreakGlass{Reason: "a"}))
	second := must[model.NewToken](b, 201, as("POST", tokensPath, model.AddToken{Name: "a", Role: model.RoleViewer}))
	third := must[model.NewToken](b, 201, as("POST", tokensPath, model.AddToken{Name: "b", Role: model.RoleViewer}))
	b.quota(model.HardQuota{Streams: new(int64(1)), RequestsPerSecond: new(int64(1))})
	var refused answer
	for range 20 { // 4 at once, 1 a second
		if a := b.as(second.Secret, "GET", "/api/v1/whoami", nil); a.status == 429 {
			refused = a
		}
	}
	if refused.status != 429 || refused.header.Get("Ratelimit-Policy") != `4;w=4;name="tenant"` ||
		refused.header.Get("Retry-After") != "1" || !strings.Contains(string(refused.body), "quota") {
		t.Fatalf("20 requests at once with 1 a second: %d %v %s", refused.status, refused.header, refused.body)
	}
	if a := as("DELETE", tokensPath+"/"+third.ID, nil); a.status != http.StatusNoContent {
		t.Errorf("who reads too much keeps the tenant from writing: %d %s", a.status, a.body)
	}
	limited := 0
	for range 10 {
		if as("GET", "/api/v1/whoami", nil).status == 429 {
			limited++
		}
		must[model.WhoAmI](b, 200, b.as(glass, "GET", "/api/v1/whoami", nil))
		must[model.WhoAmI](b, 200, b.do("GET", "/api/v1/whoami", nil))
	}
	if limited == 0 {
		t.Error("another token of the tenant is not limited")
	}
	b.quota(model.HardQuota{Streams: new(int64(1))})
	s := b.streamAs(acmeToken, "", "")
	p := must[problem](b, 429, b.as(second.Secret, "GET", "/api/v1/events/stream", nil))
	if !strings.Contains(p.Detail, "quota of tenant acme allows 1 open streams") {
		t.Errorf("one more stream: %v", p)
	}
	if q := must[model.Quota](b, 200, as("GET", acmeQuota, nil)); q.Used.Streams != 1 {
		t.Errorf("with one stream open: %+v", q)
	}
	s.close()
	b.until(func() bool {
		return must[model.Quota](b, 200, as("GET", acmeQuota, nil)).Used.Streams == 0
	})
	again := b.streamAs(second.Secret, "", "")
	again.close()
}
