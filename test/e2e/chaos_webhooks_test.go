package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// How many webhooks there are, of how many subjects, and how often a gateway is killed while it sends.
const (
	killedHooks     = 6
	killedSubjects  = 6
	webhookKills    = 40
	webhookKillsFew = 3 // in make test
	// setEvery is how often each subject has an event, so that deliveries are under way at each moment.
	setEvery = 60 * time.Millisecond
	// answerWithin is the longest time that the receiver takes for an answer.
	answerWithin = 40 * time.Millisecond
	// refusedOneIn is how many messages there are to one that the receiver refuses at first.
	refusedOneIn = 50
)

// sentEvent is an event as a receiver reads it.
type sentEvent struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	Version int64  `json:"streamversion"`
}

// takenBy is what a webhook's receiver has got.
type takenBy struct {
	messages map[string]string // webhook-id by event
	taken    map[string]bool   // events that were answered by 200
	last     map[string]int64  // version of each subject that was taken last
	came     int               // how many were taken, again ones too
}

// hookReceiver takes what webhooks send, each by its path, and checks the order of each subject as it comes.
type hookReceiver struct {
	t *testing.T

	mu     sync.Mutex
	hooks  map[string]*takenBy
	again  int // messages that came though they were taken
	broken int // requests whose sender was gone before the answer
	wrong  []string
}

// ServeHTTP implements http.Handler.
func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var e sentEvent
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		return // its sender was killed while it wrote
	}
	hook := strings.TrimPrefix(req.URL.Path, "/")
	r.arrived(hook, req.Header.Get("Webhook-Id"), e)
	if rand.N(refusedOneIn) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	select {
	case <-time.After(rand.N(answerWithin)):
	case <-req.Context().Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		r.broken++ // taken or not: nobody knows, and it comes again
		return
	}
	// Taken from here on: the sender may see the answer or not.
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hooks[hook]
	h.came++
	h.taken[e.ID] = true
	h.last[e.Subject] = max(h.last[e.Subject], e.Version)
}

// arrived checks a message: it has the id of the first time; an event that is new comes when the one before it of its
// subject was taken.
func (r *hookReceiver) arrived(hook, message string, e sentEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hooks[hook]
	if h == nil {
		h = &takenBy{messages: map[string]string{}, taken: map[string]bool{}, last: map[string]int64{}}
		r.hooks[hook] = h
	}
	if was, known := h.messages[e.ID]; known && was != message {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: event %s has the ids %s and %s", hook, e.ID, was, message))
	}
	h.messages[e.ID] = message
	if h.taken[e.ID] {
		r.again++
	} else if e.Version != h.last[e.Subject]+1 {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: version %d of %s came after %d was taken", hook, e.Version, e.Subject,
			h.last[e.Subject]))
	}
}

// counts are how many messages each webhook has had taken.
func (r *hookReceiver) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for name, h := range r.hooks {
		out[name] = h.came
	}
	return out
}

// missing is an event of a list that a webhook has not had taken, and how many there are.
func (r *hookReceiver) missing(list []sentEvent) (one string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for hook, h := range r.hooks {
		for _, e := range list {
			if !h.taken[e.ID] {
				one, n = fmt.Sprintf("%s: version %d of %s", hook, e.Version, e.Subject), n+1
			}
		}
	}
	return one, n
}

// TestWebhooksOutliveGateways: two gateways send for webhooks, and are killed in the middle of deliveries, each alone
// and both at once. Every event comes to each webhook at least once, with the same id each time, and in the order of
// its subject. DESIGN D4, ADR 0059.
func TestWebhooksOutliveGateways(t *testing.T) {
	t.Parallel()
	w := newStackWith(t, func(service string) []string {
		if service != "gateway" {
			return nil
		}
		return []string{"CHANDLER_WEBHOOK_ALLOWED_NETWORKS=127.0.0.0/8"}
	})
	r := &hookReceiver{t: t, hooks: map[string]*takenBy{}}
	here := httptest.NewServer(r)
	t.Cleanup(here.Close)
	gateways := []string{"gateway", stack.Second("gateway")}
	w.must(w.Launch(gateways[1]))
	w.must(w.Stack.Ready(w.ctx, gateways[1]))
	for i := range killedHooks {
		name := fmt.Sprint("hook-", i)
		w.put("/api/v1/webhooks/"+name, map[string]any{
			"url": here.URL + "/" + name, "types": []string{"webhook.set.v1"},
		})
	}
	ctx, stop := context.WithCancel(w.ctx)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop()
	for i := range killedSubjects {
		writing.Go(func() { w.setAgainAndAgain(ctx, fmt.Sprint(suspended, i)) })
	}
	kills := webhookKillsFew
	if thorough {
		kills = webhookKills
	}
	for i := range kills {
		before := r.counts()
		w.eventually("each webhook goes on", func() (string, bool) {
			now := r.counts()
			for name, n := range now {
				if n <= before[name] {
					return fmt.Sprint(now), false
				}
			}
			return fmt.Sprint(now), len(now) == killedHooks
		})
		victims := gateways[i%2 : i%2+1]
		if i%3 == 2 {
			victims = gateways
		}
		for _, name := range victims {
			w.Kill(name)
		}
		for _, name := range victims {
			w.must(w.Launch(name))
		}
	}
	for _, name := range gateways {
		w.must(w.Stack.Ready(w.ctx, name))
	}
	stop()
	writing.Wait()
	list := w.recorded()
	w.eventually("every event was taken by each webhook", func() (string, bool) {
		one, n := r.missing(list)
		return fmt.Sprint(n, " are missing: ", one), n == 0
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Logf("%d kills: %d events for %d webhooks, %d came again after they were taken, %d requests broken", kills,
		len(list), killedHooks, r.again, r.broken)
	if len(r.wrong) > 0 {
		t.Errorf("%d times: %s", len(r.wrong), r.wrong[0])
	}
	if r.broken+r.again == 0 { // what was sent and not recorded comes again
		t.Error("no gateway was killed in the middle of a delivery: nothing was tested")
	}
}

// put repeats a replacement until a gateway has carried it out.
func (w *world) put(path string, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		w.t.Error(err)
		return
	}
	match := "" // what is to be replaced
	for i := 0; w.ctx.Err() == nil; i++ {
		base := []string{w.Stack.URL(), w.SecondURL()}[i%2]
		req, err := http.NewRequestWithContext(w.ctx, http.MethodPut, base+path, bytes.NewReader(raw))
		if err != nil {
			w.t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+w.Client.Token)
		req.Header.Set("Content-Type", "application/json")
		if match != "" {
			req.Header.Set("If-Match", match)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			w.pause(20 * time.Millisecond) // nobody listens
			continue
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch again := (statusError{resp.StatusCode, string(said)}); {
		case resp.StatusCode == http.StatusOK:
			return
		case resp.StatusCode == http.StatusPreconditionRequired:
			match = "*"
		case !again.again():
			w.t.Errorf("%s: %v", path, again)
			return
		}
	}
}

// suspended begins the names of the webhooks whose events are sent: each is a subject, and sends nothing itself.
const suspended = "suspended-"

// setAgainAndAgain changes a webhook until ctx ends.
func (w *world) setAgainAndAgain(ctx context.Context, name string) {
	for i := 0; ctx.Err() == nil; i++ {
		w.put("/api/v1/webhooks/"+name, map[string]any{
			"url": "https://hooks.example.org/", "suspended": true,
			"types": []string{"csv.*", "cluster.*"}[i%2 : i%2+1],
		})
		w.pause(setEvery)
	}
}

// recorded are the events that webhooks have to send.
func (w *world) recorded() (all []sentEvent) {
	w.t.Helper()
	for after, done := "1-0", false; !done; {
		var page struct {
			Items []sentEvent
			Next  string
			Done  bool
		}
		w.must(w.Get(w.ctx, "/api/v1/events?type=webhook.set.v1&limit=500&after="+after, &page))
		for _, e := range page.Items {
			if strings.HasPrefix(e.Subject, suspended) {
				all = append(all, e)
			}
		}
		after, done = page.Next, page.Done
	}
	if len(all) == 0 {
		w.t.Fatal("the log has no event that webhooks have to send")
	}
	return all
}
