package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	portreceiver "github.com/chandler-fleet/chandler/examples/port/receiver"
	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const portSecret = "port-client-secret"

// portAPI plays Port's API: it gives a token for the secret, and keeps what it is told of runs.
type portAPI struct {
	*httptest.Server

	mu     sync.Mutex
	told   map[string][]map[string]string // by run
	broken bool
}

func playPort(t *testing.T) *portAPI {
	t.Helper()
	p := &portAPI{told: map[string][]map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/auth/access_token", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ClientID, ClientSecret string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.ClientSecret != portSecret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if _, err := w.Write([]byte(`{"ok": true, "accessToken": "port-token", "expiresIn": 3600}`)); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("PATCH /v1/actions/runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]string
		err := json.NewDecoder(r.Body).Decode(&in)
		if err != nil || r.Header.Get("Authorization") != "Bearer port-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.broken {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		p.told[r.PathValue("id")] = append(p.told[r.PathValue("id")], in)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *portAPI) breaks(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = yes
}

// of is what a run was told, as status and label.
func (p *portAPI) of(run string) (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.told[run] {
		list = append(list, strings.TrimSpace(r["status"]+" "+r["statusLabel"]))
	}
	return list
}

// act runs an action of Port.
func act(b *bench, address, run string, in map[string]string) int {
	b.t.Helper()
	in["run"], in["cluster"], in["namespace"], in["catalog"] = run, "spoke", "ops", "fleet"
	body, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(portSecret))
	mac.Write([]byte(at + "." + string(body)))
	return b.send(address, "", "POST", "/actions", string(body), "X-Port-Timestamp", at,
		"X-Port-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))).status
}

// TestPort is the example for Port against a gateway: an action subscribes once however often it comes, the run is told
// by Chandler's webhook what became of it, also where Port did not answer at first and where the example was started
// anew; what is refused ends the run (the section 3: a Port-style webhook example).
func TestPort(t *testing.T) {
	t.Parallel()
	b := webhookBench(t, &movingClock{})
	b.watchedFleet("other")
	port := playPort(t)
	var mu sync.Mutex
	var handler http.Handler
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(at.Close)
	made := b.setWebhook("port", model.WebhookSpec{
		URL: at.URL + "/events", Types: []string{"subscription.*", "installplan.*", "csv.*"},
	})
	start := func() {
		portal := b.give(model.AddToken{Name: "port-" + uuid.NewString()[:8], Role: model.RoleAdmin})
		c, err := client.New(client.Config{URL: b.url, Token: portal.Secret})
		if err != nil {
			t.Fatal(err)
		}
		h, err := portreceiver.New(portreceiver.Config{
			Chandler: c, Pages: b.url, WebhookSecret: made.Secret, PortAPI: port.URL, PortClientID: "id",
			PortClientSecret: portSecret, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		handler = h
	}
	start()
	tells := func(run, what string) {
		t.Helper()
		eventually(t, func() bool { return slices.Contains(port.of(run), what) })
	}

	if a := b.send(at.URL, "", "POST", "/actions", `{"run": "r_forged"}`); a.status != http.StatusUnauthorized {
		t.Errorf("an action that nobody signed: %d", a.status)
	}
	if a := b.send(at.URL, "", "POST", "/events", `{"subject": "spoke/ops/x"}`); a.status != http.StatusUnauthorized {
		t.Errorf("an event that nobody signed: %d", a.status)
	}
	for range 2 {
		if status := act(b, at.URL, "r_QOz6WoOB1Q2lmhZZ", map[string]string{"package": "tidegauge"}); status != 204 {
			t.Fatalf("an action: %d", status)
		}
	}
	tells("r_QOz6WoOB1Q2lmhZZ", "Resolving")
	if n := b.count(`select count(*) from eventlog.events where type = 'subscription.created.v1'
		and subject = 'spoke/ops/tidegauge'`); n != 1 {
		t.Errorf("%d subscriptions were made", n)
	}
	b.portRun(port, tells, start)

	if status := act(b, at.URL, "r_second", map[string]string{"package": "tidegauge"}); status != 204 {
		t.Errorf("an action that is refused: %d", status)
	}
	if got := port.of("r_second"); !slices.Equal(got, []string{"FAILURE Chandler did not subscribe"}) {
		t.Errorf("a name that is taken: told %v", got)
	}
}

// portRun: the plan of the run waits, is approved and installed; the run is told of the end though Port was away and
// the example was started anew.
func (b *bench) portRun(port *portAPI, tells func(run, what string), start func()) {
	b.t.Helper()
	const subject, run = "spoke/ops/tidegauge", "r_QOz6WoOB1Q2lmhZZ"
	id := uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa",
		proposed(id, "install-aaaaa", gauge, "tidegauge"))
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionSucceeded{Outcome: "Planned", CSV: gauge, Plan: id})
	tells(run, "waits for an approval in Chandler")
	start()
	port.breaks(true)
	p := must[model.InstallPlan](b, 200, b.do("GET", "/api/v1/installplans/"+id, nil))
	approval := model.ApprovePlan{Digest: p.Digest}
	must[model.InstallPlan](b, 200, b.do("POST", "/api/v1/installplans/"+id+"/approve", approval))
	b.fact(events.Installer, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", events.InstallPlanStarted{Steps: 3},
		events.InstallPlanFinished{Steps: 3, StepLog: "sha256:log"})
	b.installed()
	b.until(func() bool {
		return slices.ContainsFunc(b.deliveries("port", ""), func(d model.WebhookDelivery) bool {
			return d.Status == http.StatusBadGateway
		})
	})
	port.breaks(false)
	tells(run, "SUCCESS "+gauge+" runs")
	if got := port.of(run); slices.Index(got, "SUCCESS "+gauge+" runs") != len(got)-1 {
		b.t.Errorf("after its end the run was told %v", got)
	}
}
