package app_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// accepted is an answer about an operation that has not succeeded.
func (b *bench) accepted(a answer) (op model.Operation, path string) {
	b.t.Helper()
	op = must[model.Operation](b, 202, a)
	path = a.header.Get("Location")
	if !strings.HasPrefix(path, "/api/v1/operations/") || a.header.Get("Chandler-Operation") != path ||
		a.header.Get("Preference-Applied") == "" || (a.header.Get("Retry-After") == "") != op.Over {
		b.t.Errorf("the headers of %+v are %v", op, a.header)
	}
	return op, path
}

func (b *bench) operation(path, state, reason string) model.Operation {
	b.t.Helper()
	op := must[model.Operation](b, 200, b.do("GET", path, nil))
	if op.State != state || op.Reason != reason || op.Over != model.IsOver(state) {
		b.t.Errorf("%s: %+v, want %s (%s)", path, op, state, reason)
	}
	return op
}

// TestOperations: what a subscription leads to is followed from the write to an operator that runs, by its address,
// also at another gateway; a change takes its place (the section 3: operations as resources).
func TestOperations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watchedFleet("other")
	const subject = "spoke/ops/gauge"
	resolved := func(p events.Payload) { b.fact(events.Resolver, events.KindSubscription, subject, subject, p) }
	op, path := b.accepted(b.ask("POST", subscriptions, subscribe("gauge", "tidegauge"), "Prefer", "respond-async"))
	if op.State != model.OperationRunning || op.Reason != "Resolving" || op.Type != "subscription.created.v1" ||
		op.Object != subscriptions+"/gauge" || op.Actor != "token-admin" {
		t.Errorf("at first %+v", op)
	}
	resolved(events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"})
	b.operation(path, model.OperationFailed, "ConstraintsNotSatisfiable")

	id := uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa",
		proposed(id, "install-aaaaa", gauge, "gauge"))
	resolved(events.ResolutionSucceeded{Outcome: "Planned", CSV: gauge, Plan: id})
	if op := b.operation(path, model.OperationWaiting, "RequiresApproval"); op.Result != "/api/v1/installplans/"+id {
		t.Errorf("the result is %q", op.Result)
	}
	p := must[model.InstallPlan](b, 200, b.do("GET", "/api/v1/installplans/"+id, nil))
	_, approval := b.accepted(b.ask("POST", "/api/v1/installplans/"+id+"/approve", model.ApprovePlan{Digest: p.Digest},
		"Prefer", "respond-async"))
	b.operation(approval, model.OperationRunning, "Installing")
	b.operation(path, model.OperationRunning, "Installing")
	b.fact(events.Installer, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", events.InstallPlanStarted{Steps: 3},
		events.InstallPlanFinished{Steps: 3, StepLog: "sha256:log"})
	b.operation(approval, model.OperationSucceeded, "Complete")
	b.installed()

	// What the log and the objects have is told by any gateway, and after any restart.
	b.showWrites()
	second, stop := b.gateway(token)
	defer stop()
	again := must[model.Operation](b, 200, b.send(second, token, "GET", approval, nil))
	if again.State != model.OperationSucceeded {
		t.Errorf("at another gateway: %+v", again)
	}

	must[model.Subscription](b, 200, b.ask("PATCH", subscriptions+"/gauge", map[string]any{"channel": "swift"}))
	b.operation(path, model.OperationSuperseded, "subscription.changed.v1")
	b.operationsAreSeen(path, approval)
}

// operationsAreSeen: by those who may read what they are about, and what is none is not there.
func (b *bench) operationsAreSeen(subscription, approval string) {
	b.t.Helper()
	ann := b.give(model.AddToken{Name: "Ann", Role: "none"})
	b.bind("ann", "viewer", ann.Actor, model.AccessScope{Namespaces: []string{"elsewhere"}})
	for _, path := range []string{subscription, approval} {
		must[problem](b, 404, b.as(ann.Secret, "GET", path, nil))
	}
	b.bind("ann-ops", "viewer", ann.Actor, model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"ops"}})
	for _, path := range []string{subscription, approval} {
		must[model.Operation](b, 200, b.as(ann.Secret, "GET", path, nil))
	}
	// Whether there is something that she may not see she cannot find out: the ids of streams follow from names.
	unseen := map[string]bool{}
	for _, name := range []string{"spoke/ops/gauge", "spoke/elsewhere/gauge"} {
		id := events.StreamID{
			Kind: events.KindSubscription, Key: events.Key("default", events.KindSubscription, name), Incarnation: 1,
		}.String() + "@1"
		p := must[problem](b, 404, b.as(b.give(model.AddToken{Name: "Eve", Role: "none"}).Secret, "GET",
			"/api/v1/operations/"+id, nil))
		unseen[strings.ReplaceAll(p.Detail, id, "ID")] = true
	}
	if len(unseen) != 1 {
		b.t.Errorf("what is hidden and what is not there are told apart: %v", unseen)
	}
	labels := b.write("PATCH", "/api/v1/clusters/spoke", map[string]any{"labels": map[string]string{"a": "b"}})
	for path, status := range map[string]int{
		labels.header.Get("Chandler-Position"): 404, "9-9": 404, "1-999999": 404, "yesterday": 400,
	} {
		must[problem](b, status, b.do("GET", "/api/v1/operations/"+path, nil))
	}
}

// TestPreferWait: a write is answered when it has come to its end, or as an operation when the time is over; with a key
// it is written once, and its repetition waits for the same. A dry run waits for nothing.
func TestPreferWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watchedFleet("other")
	ask := func(name, prefer string, header ...string) answer {
		return b.ask("POST", "/api/v1/clusters", model.RegisterCluster{Name: name, Kubeconfig: kubeconfig},
			append([]string{"Prefer", prefer}, header...)...)
	}
	connects := func(name, state string) {
		b.record(events.Installer, events.KindCluster, name, name, events.ClusterObserved{State: state, Reason: "R"})
	}
	soon := func(name, state string) { // once it is registered
		known := b.watch(token, "/api/v1/clusters", "")
		known.told()
		go func() {
			for m, ok := known.next(); ok; m, ok = known.next() {
				if m.change == "ADDED" && m.of.Name == name {
					connects(name, state)
					return
				}
			}
		}()
	}
	soon("east", "Connected")
	began := time.Now()
	key := uuid.NewString()
	a := ask("east", "handling=lenient, wait=20", "Idempotency-Key", key)
	made := must[model.Cluster](b, 201, a)
	if made.Name != "east" || a.header.Get("Preference-Applied") != "wait=20" || time.Since(began) > 20*time.Second {
		t.Errorf("after %s: %+v %v", time.Since(began), made, a.header)
	}
	b.operation(a.header.Get("Chandler-Operation"), model.OperationSucceeded, "Connected")
	replayed := ask("east", "wait=20", "Idempotency-Key", key)
	must[model.Cluster](b, 201, replayed)
	if replayed.header.Get("Idempotent-Replayed") != "true" ||
		replayed.header.Get("Chandler-Operation") != a.header.Get("Chandler-Operation") {
		t.Errorf("the repetition has %v", replayed.header)
	}
	soon("west", "Unauthorized")
	op, _ := b.accepted(ask("west", "wait=20"))
	if op.State != model.OperationFailed || op.Reason != "R" {
		t.Errorf("a cluster that refuses: %+v", op)
	}

	op, path := b.accepted(ask("north", "wait=1"))
	if op.State != model.OperationRunning || op.Reason != "Registered" {
		t.Errorf("when the time is over: %+v", op)
	}
	done := make(chan answer, 1)
	go func() { done <- b.ask("GET", path, nil, "Prefer", "wait=20") }()
	connects("north", "Connected")
	select {
	case a := <-done:
		if op := must[model.Operation](b, 200, a); op.State != model.OperationSucceeded {
			t.Errorf("who waited for it reads %+v", op)
		}
	case <-time.After(20 * time.Second):
		t.Error("who waits for an operation is not told of its end")
	}

	b.waitsAreBounded(ask)

	plain := b.ask("POST", "/api/v1/clusters", model.RegisterCluster{Name: "south", Kubeconfig: kubeconfig})
	if plain.status != 201 || plain.header.Get("Preference-Applied") != "" ||
		plain.header.Get("Chandler-Operation") == "" {
		t.Errorf("without Prefer: %d %v", plain.status, plain.header)
	}
	unread := ask("", "wait=20")
	if unread.status != 400 || unread.header.Get("Preference-Applied") != "" {
		t.Errorf("what is refused: %d %v", unread.status, unread.header)
	}
}

// waitsAreBounded: beyond the requests of one identity that wait nobody waits, and is told so by the lack of a header.
func (b *bench) waitsAreBounded(ask func(name, prefer string, header ...string) answer) {
	b.t.Helper()
	const own = 20
	ctx, cancel := context.WithCancel(b.t.Context())
	var held sync.WaitGroup
	defer held.Wait()
	defer cancel()
	_, path := b.accepted(ask("busy", "respond-async"))
	for range own {
		held.Go(func() { b.holds(ctx, path) })
	}
	b.until(func() bool {
		a := ask("busy-"+uuid.NewString()[:8], "wait=1")
		must[model.Operation](b, 202, a)
		return a.header.Get("Preference-Applied") == ""
	})
}

// holds waits for an operation until it is called off.
func (b *bench) holds(ctx context.Context, path string) {
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, http.NoBody)
		if err != nil {
			b.t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Prefer", "wait=20")
		if res, err := http.DefaultClient.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}
}
