package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// got is one request that a receiver got.
type got struct {
	header http.Header
	body   []byte
}

func (g got) id() string { return g.header.Get("Webhook-Id") }

// receiver is somebody whom events are sent to.
type receiver struct {
	*httptest.Server

	t      testing.TB
	mu     sync.Mutex
	got    []got
	answer func(w http.ResponseWriter, r *http.Request) // nil: 200
}

func receive(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{t: t}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the sender was stopped
		}
		r.mu.Lock()
		r.got = append(r.got, got{req.Header.Clone(), body})
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f func(w http.ResponseWriter, r *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receiver) answersStatus(code int) {
	r.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// wait waits until n requests have come, and returns all of them.
func (r *receiver) wait(n int) []got {
	r.t.Helper()
	var list []got
	eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		list = slices.Clone(r.got)
		return len(list) >= n
	})
	return list
}

func eventually(t testing.TB, done func() bool) {
	t.Helper()
	late := time.After(40 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-late:
			t.Fatal("it did not happen in time")
		case <-tick.C:
		}
	}
}

// signatures says how many of the signatures of a request are by a secret: Standard Webhooks, written once more.
func signatures(t testing.TB, g got, secret string) (n int) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(g.id() + "." + g.header.Get("Webhook-Timestamp") + "." + string(g.body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for s := range strings.FieldsSeq(g.header.Get("Webhook-Signature")) {
		if s == want {
			n++
		}
	}
	return n
}

// movingClock is a clock that a test moves.
type movingClock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *movingClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *movingClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

func webhookBench(t testing.TB, clock *movingClock) *bench {
	t.Helper()
	return setupWith(t, func(c *app.Config) {
		c.WebhookNetworks = "127.0.0.0/8"
		c.SetClock(clock.now, 2*time.Second)
	})
}

func (b *bench) webhook(name string) model.Webhook {
	b.t.Helper()
	return must[model.Webhook](b, 200, b.do("GET", "/api/v1/webhooks/"+name, nil))
}

func (b *bench) deliveries(name, query string) []model.WebhookDelivery {
	b.t.Helper()
	return must[struct{ Items []model.WebhookDelivery }](b, 200,
		b.do("GET", "/api/v1/webhooks/"+name+"/deliveries"+query, nil)).Items
}

func (b *bench) setWebhook(name string, spec model.WebhookSpec) model.Webhook {
	b.t.Helper()
	return must[model.Webhook](b, 200, b.write("PUT", "/api/v1/webhooks/"+name, spec))
}

// TestWebhooks: what happens is sent, signed, in order and with one id however often; the secret is shown once, and the
// address never; who takes nothing is asked again later, from any place on, and is given up in the end, by an event.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	clock := &movingClock{}
	b := webhookBench(t, clock)
	r := receive(t)
	spec := model.WebhookSpec{URL: r.URL + "/token-in-path", Types: []string{"cluster.*"}}
	must[problem](b, 404, b.do("GET", "/api/v1/webhooks/portal", nil))
	made := b.setWebhook("portal", spec)
	if made.Secret == "" || made.Spec.URL != "" || made.State != "Active" || made.Spec.Target.Mode != "Structured" {
		t.Fatalf("made %+v", made)
	}
	if again := b.setWebhook("portal", spec); again.Version != 1 || again.Secret != "" {
		t.Errorf("the same again made %+v", again)
	}
	shown := b.do("GET", "/api/v1/webhooks/portal", nil)
	logged := b.do("GET", "/api/v1/events?type=webhook.*", nil)
	for _, text := range []string{string(shown.body), string(logged.body)} {
		if strings.Contains(text, "token-in-path") || strings.Contains(text, made.Secret) ||
			!strings.Contains(text, "portal") {
			t.Errorf("address or secret are in %s", text)
		}
	}
	if n := b.count(`select count(*) from gateway.webhooks where position('token-in-path'::bytea in sealed) > 0`); n > 0 {
		t.Error("the address is stored in the clear")
	}

	b.cluster("one")
	first := r.wait(1)[0]
	var event model.Event
	if err := json.Unmarshal(first.body, &event); err != nil || event.Type != "cluster.registered.v1" ||
		event.Subject != "one" || first.header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" {
		t.Errorf("got %s (%v), %v", first.body, err, first.header)
	}
	if signatures(t, first, made.Secret) != 1 {
		t.Errorf("signatures %q", first.header.Get("Webhook-Signature"))
	}
	documented(t, first, made.Secret)

	// It takes nothing for a while: the same message comes again, and what is behind it of its subject waits.
	r.answersStatus(500)
	b.cluster("two")
	failed := r.wait(2)[1]
	labels := map[string]any{"labels": map[string]string{"a": "b"}}
	must[model.Cluster](b, 200, b.do("PATCH", "/api/v1/clusters/two", labels))
	eventually(t, func() bool {
		list := b.deliveries("portal", "?state=Pending")
		return len(list) == 2 && list[1].Attempts == 1 && list[1].Status == 500 && list[1].NextAttempt != nil &&
			list[0].Attempts == 0
	})
	r.answers(nil)
	clock.move(time.Minute)
	all := r.wait(4)
	if all[2].id() != failed.id() || all[3].id() == failed.id() ||
		!strings.Contains(string(all[3].body), "cluster.labels-changed") {
		t.Errorf("got %q, %q, %q: %s", failed.id(), all[2].id(), all[3].id(), all[3].body)
	}

	rotated := must[model.Webhook](b, 200, b.write("POST", "/api/v1/webhooks/portal/rotate", nil))
	must[model.Webhook](b, 200, b.write("POST", "/api/v1/webhooks/portal/replay", model.ReplayWebhook{After: "1-0"}))
	all = r.wait(7)
	var replayed []string
	for _, g := range all[4:7] {
		replayed = append(replayed, g.id())
	}
	// Subjects do not wait for each other.
	if !slices.Contains(replayed, first.id()) || slices.Index(replayed, failed.id()) < 0 ||
		slices.Index(replayed, failed.id()) > slices.Index(replayed, all[3].id()) {
		t.Errorf("replayed %q of %q, %q, %q", replayed, first.id(), failed.id(), all[3].id())
	}
	if signatures(t, all[4], made.Secret) != 1 || signatures(t, all[4], rotated.Secret) != 1 ||
		rotated.Secret == made.Secret {
		t.Errorf("two secrets sign %q", all[4].header.Get("Webhook-Signature"))
	}
	tested := must[model.WebhookDelivery](b, 200, b.do("POST", "/api/v1/webhooks/portal/test", nil))
	if all = r.wait(8); tested.State != "Delivered" || tested.Status != 200 || tested.ID != all[7].id() {
		t.Errorf("tested %+v", tested)
	}
	must[problem](b, 409, b.do("POST", "/api/v1/webhooks/portal/replay", model.ReplayWebhook{After: "9-9"}))

	b.givenUp(r, clock)
}

// documented checks a signature by the lines of docs/howto/webhooks.md.
func documented(t *testing.T, g got, secret string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/howto/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, behind, found := strings.Cut(string(page), "## Checking a signature")
	_, behind, fenced := strings.Cut(behind, "```sh\n")
	script, _, closed := strings.Cut(behind, "```")
	if !found || !fenced || !closed {
		t.Fatal("docs/howto/webhooks.md does not say how to check a signature")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "body"), g.body, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SECRET="+secret, "ID="+g.id(), "TIMESTAMP="+g.header.Get("Webhook-Timestamp"))
	out, err := cmd.Output()
	if want := "v1," + strings.TrimSpace(string(out)); err != nil || want != g.header.Get("Webhook-Signature") {
		t.Errorf("the page computes %q, %v; the signature is %q", want, err, g.header.Get("Webhook-Signature"))
	}
}

// givenUp is the end of TestWebhooks.
func (b *bench) givenUp(r *receiver, clock *movingClock) {
	b.t.Helper()
	r.answersStatus(http.StatusServiceUnavailable)
	b.cluster("three")
	r.wait(9)
	disabled := func(reason string) {
		b.t.Helper()
		eventually(b.t, func() bool {
			clock.move(time.Minute) // to the next attempt
			w := b.webhook("portal")
			return w.State == "Disabled" && w.Reason == reason
		})
	}
	// Suspended for longer than three days, it has three days from then on.
	spec := model.WebhookSpec{Types: []string{"cluster.*"}}
	spec.Suspended = true
	b.setWebhook("portal", spec)
	clock.move(80 * time.Hour)
	spec.Suspended = false
	b.setWebhook("portal", spec)
	for range 3 {
		clock.move(time.Hour)
		r.wait(len(r.wait(0)) + 1)
	}
	eventually(b.t, func() bool {
		list := b.deliveries("portal", "?state=Pending")
		return len(list) == 1 && list[0].Attempts >= 3
	})
	if w := b.webhook("portal"); w.State != "Active" {
		b.t.Errorf("a suspension ended it: %+v", w)
	}
	clock.move(80 * time.Hour) // no success since: three days are over
	disabled("Failing")
	eventually(b.t, func() bool { // what was written has its place in the log a moment later
		return strings.Contains(string(b.do("GET", "/api/v1/events?type=webhook.disabled.v1", nil).body), "Failing")
	})
	r.answers(nil)
	before := len(r.wait(0))
	if w := b.setWebhook("portal", model.WebhookSpec{Types: []string{"cluster.*"}}); w.State != "Active" {
		b.t.Errorf("set again %+v", w)
	}
	if all := r.wait(before + 1); !strings.Contains(string(all[before].body), `"three"`) {
		b.t.Errorf("what waited did not come: %s", all[before].body)
	}
	r.answersStatus(http.StatusGone)
	b.cluster("four")
	disabled("Gone")
	must[model.Removed](b, 200, b.write("DELETE", "/api/v1/webhooks/portal", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/webhooks/portal/deliveries", nil))
	if n := b.count(`select count(*) from gateway.webhook_deliveries`); n != 0 {
		b.t.Errorf("%d deliveries are left", n)
	}
}

// TestWebhooksSendWhatTheirOwnerSees: nobody has sent what they may not see, then or later; a process that was killed
// leaves what waits to the next one; a slow receiver keeps no other waiting.
func TestWebhooksSendWhatTheirOwnerSees(t *testing.T) {
	t.Parallel()
	b := webhookBench(t, &movingClock{})
	fast, slow := receive(t), receive(t)
	hold := make(chan struct{})
	slow.answers(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-hold:
		case <-req.Context().Done():
		}
	})
	b.exec("gateway", `insert into gateway.tokens (tenant, id, hash, role)
		values ('default', 'token-east', sha256('token-of-east-0123456789'), 'none')`)
	subject := []model.AccessSubject{{Kind: "User", Name: "token-east"}}
	must[model.AccessRole](b, 200, b.write("PUT", "/api/v1/roles/hooks", map[string]any{
		"rules": []any{map[string]any{"verbs": []string{"get", "list", "update"}, "resources": []string{"webhooks"}}},
	}))
	must[model.RoleBinding](b, 200, b.write("PUT", "/api/v1/rolebindings/hooks",
		model.RoleBindingSpec{Role: "hooks", Subjects: subject}))
	must[model.RoleBinding](b, 200, b.write("PUT", "/api/v1/rolebindings/east", model.RoleBindingSpec{
		Role: "viewer", Subjects: subject, Scope: model.AccessScope{Clusters: []string{"east-*"}},
	}))
	set := func(spec model.WebhookSpec) answer {
		return b.as("token-of-east-0123456789", "PUT", "/api/v1/webhooks/east", spec)
	}
	spec := model.WebhookSpec{URL: fast.URL, Target: model.WebhookTarget{Mode: "Binary"}}
	if p := must[problem](b, 403, set(spec)); len(p.Errors) != 1 || p.Errors[0].Rule != "no-more-than-own" {
		t.Errorf("the whole tenant: %v", p)
	}
	spec.Scope.Clusters = []string{"east-*"}
	must[model.Webhook](b, 200, set(spec))
	if p := must[problem](b, 400, b.write("PUT", "/api/v1/webhooks/east", model.WebhookSpec{})); len(p.Errors) != 1 ||
		p.Errors[0].Location != "body.url" {
		t.Errorf("somebody else takes over without an address: %v", p)
	}
	b.setWebhook("slow", model.WebhookSpec{URL: slow.URL})
	b.cluster("west-1")
	b.cluster("east-1")
	one := fast.wait(1)[0]
	if one.header.Get("Ce-Subject") != "east-1" || one.header.Get("Ce-Specversion") != "1.0" ||
		one.header.Get("Content-Type") != "application/json" || !json.Valid(one.body) {
		t.Errorf("got %v %s", one.header, one.body)
	}
	held := slow.wait(1)[0]

	// Another process, as if the first was killed in the middle: it sends what has no record again.
	b.stop()
	close(hold)
	b.url, b.stop = b.gateway(token)
	eventually(t, func() bool {
		list := slow.wait(1)
		return slices.ContainsFunc(list[1:], func(g got) bool { return g.id() == held.id() })
	})

	must[model.Removed](b, 200, b.write("DELETE", "/api/v1/rolebindings/east", nil))
	b.cluster("east-2")
	eventually(t, func() bool { return b.webhook("east").Reason == "NoRights" })
	for _, g := range fast.wait(1)[1:] {
		if g.id() != one.id() { // the process that was killed may have left no record of that one
			t.Errorf("after the binding had gone %s came", g.body)
		}
	}
	for _, bad := range []struct {
		at   string
		spec model.WebhookSpec
	}{
		{"body.url", model.WebhookSpec{}},
		{"body.url", model.WebhookSpec{URL: "http://203.0.113.7/"}},
		{"body.url", model.WebhookSpec{URL: fast.URL, Target: model.WebhookTarget{Type: "PagerDuty"}}},
		{"body.types[0]", model.WebhookSpec{URL: fast.URL, Types: []string{"none.*"}}},
		{"body.scope.clusters[0]", model.WebhookSpec{
			URL: fast.URL, Scope: model.AccessScope{Clusters: []string{"a b"}},
		}},
	} {
		p := must[problem](b, 400, b.write("PUT", "/api/v1/webhooks/bad", bad.spec))
		if p.Errors[0].Location != bad.at {
			t.Errorf("%+v: %v", bad.spec, p)
		}
	}
}
