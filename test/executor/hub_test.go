package executor_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// patience bounds every wait for something that is to happen.
const patience = 2 * time.Minute

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// hub plays the hub's part of the protocol.
type hub struct {
	t       testing.TB
	ensure  func(testing.TB) // makes the streams that are missing
	js      jetstream.JetStream
	key     ed25519.PrivateKey
	public  ed25519.PublicKey
	cluster string // id
	mu      sync.Mutex
	n       int64 // position
	scopes  map[string]protocol.ScopePlans
}

func newHub(tb testing.TB) *hub {
	tb.Helper()
	b := bustest.Start(tb).Connect(tb)
	ensure := func(tb testing.TB) {
		tb.Helper()
		_, err := b.Ensure(tb.Context())
		must(tb, err)
	}
	ensure(tb)
	public, private, err := ed25519.GenerateKey(nil)
	must(tb, err)
	return &hub{t: tb, ensure: ensure, js: b.JetStream(), key: private, public: public, cluster: uuid.NewString(), scopes: map[string]protocol.ScopePlans{}}
}

// scope returns what is wanted of a namespace, one operator group with its own namespace as the target.
func (h *hub) scope(ns string) protocol.ScopePlans {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.scopes[ns]; ok {
		return s
	}
	return protocol.ScopePlans{
		Scope:          protocol.Scope{Tenant: "default", Cluster: "test", ClusterID: h.cluster, Namespace: ns},
		OperatorGroups: 1,
		OperatorGroup:  protocol.OperatorGroup{Name: "group", Spec: events.OperatorGroupSpec{TargetNamespaces: []string{ns}}},
	}
}

// publish writes a scope at the next position.
func (h *hub) publish(s protocol.ScopePlans) {
	h.t.Helper()
	h.mu.Lock()
	h.n++
	s.Position = events.Position{Epoch: 1, N: h.n}
	h.mu.Unlock()
	h.publishAt(s)
}

func (h *hub) publishAt(s protocol.ScopePlans) {
	h.t.Helper()
	h.mu.Lock()
	h.scopes[s.Scope.Namespace] = s
	h.mu.Unlock()
	raw, err := json.Marshal(s)
	must(h.t, err)
	_, err = h.js.Publish(h.t.Context(), protocol.PlansSubject(s.Scope), raw)
	must(h.t, err)
}

// store puts a bundle into the content subjects.
func (h *hub) store(c bundle.Content) digest.Digest {
	h.t.Helper()
	canonical, d, err := c.Canonical()
	must(h.t, err)
	pack := bundle.Pack(canonical)
	chunks := (len(pack) + protocol.ContentChunkBytes - 1) / protocol.ContentChunkBytes
	for n := range chunks {
		m := &nats.Msg{Subject: protocol.ContentSubject("default", d, n), Header: nats.Header{}}
		m.Data = pack[n*protocol.ContentChunkBytes : min((n+1)*protocol.ContentChunkBytes, len(pack))]
		m.Header.Set(protocol.HeaderChunks, strconv.Itoa(chunks))
		m.Header.Set(protocol.HeaderDigest, string(d))
		_, err := h.js.PublishMsg(h.t.Context(), m)
		must(h.t, err)
	}
	return d
}

// planned is a bundle of a plan.
type planned struct {
	content  bundle.Content
	replaces string
	config   json.RawMessage
}

// plan makes an approved plan of bundles.
func (h *hub) plan(ns, component string, bundles ...planned) protocol.Plan {
	h.t.Helper()
	s := h.scope(ns)
	doc := installplan.Document{Namespace: ns, Component: component, Input: digest.Bytes([]byte(component))}
	p := protocol.Plan{ID: uuid.NewString(), Component: component, Configs: map[string]json.RawMessage{}}
	p.Name = "install-" + p.ID[:5]
	group := render.OperatorGroup{Name: s.OperatorGroup.Name, Namespace: ns, Targets: s.OperatorGroup.Spec.TargetNamespaces}
	for _, b := range bundles {
		csv, err := b.content.CSV()
		must(h.t, err)
		objects, err := render.Render(render.Input{Content: b.content, Namespace: ns, Group: group, Config: b.config})
		must(h.t, err)
		for _, o := range objects {
			d, err := o.Digest()
			must(h.t, err)
			doc.Steps = append(doc.Steps, installplan.Step{
				Resolving: o.Resolving, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name, Digest: d,
			})
		}
		doc.Bundles = append(doc.Bundles, events.PlannedBundle{
			CSV: csv.Name, Package: component, Version: csv.Spec.Version, Channel: "stable", Catalog: "test",
			Content: string(h.store(b.content)), Replaces: b.replaces, Reason: "Subscribed",
		})
		if b.config != nil {
			p.Configs[csv.Name] = b.config
		}
	}
	facts := installplan.BaseFacts{OperatorGroup: installplan.GroupFacts{Name: s.OperatorGroup.Name, Spec: s.OperatorGroup.Spec}}
	var err error
	doc.Base, err = facts.Base()
	must(h.t, err)
	d, err := doc.Digest()
	must(h.t, err)
	p.Digest = string(d)
	p.Document, err = digest.Canonical(doc)
	must(h.t, err)
	p.Grant, err = protocol.Grant{Plan: p.ID, Digest: p.Digest, Cluster: h.cluster, Namespace: ns, Expires: time.Now().Add(time.Hour)}.Sign(h.key)
	must(h.t, err)
	return p
}

// want publishes a scope with exactly these plans.
func (h *hub) want(ns string, plans ...protocol.Plan) {
	h.t.Helper()
	s := h.scope(ns)
	s.Plans = plans
	h.publish(s)
}

// report reads the last report of a namespace; ok is false when there is none.
func (h *hub) report(ctx context.Context, ns string) (r protocol.ScopeReport, ok bool, err error) {
	ok, err = h.last(ctx, protocol.ScopeReportSubject(h.scope(ns).Scope), &r)
	return r, ok, err
}

func (h *hub) clusterReport(ctx context.Context) (r protocol.ClusterReport, ok bool, err error) {
	ok, err = h.last(ctx, protocol.ClusterReportSubject("default", h.cluster), &r)
	return r, ok, err
}

func (h *hub) last(ctx context.Context, subject string, into any) (bool, error) {
	s, err := h.js.Stream(ctx, protocol.StreamReports)
	if err != nil {
		return false, err
	}
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(m.Data, into)
}

// await polls until the condition holds; the error of the last look is what a failure shows.
func await(tb testing.TB, what string, look func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = look(ctx); last == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: %v", what, last)
		case <-tick.C:
		}
	}
}

// awaitPlan waits until the plan's report satisfies the condition.
func (h *hub) awaitPlan(ns, id string, ok func(protocol.PlanReport) bool) protocol.PlanReport {
	h.t.Helper()
	var found protocol.PlanReport
	await(h.t, "plan "+id, func(ctx context.Context) error {
		r, _, err := h.report(ctx, ns)
		if err != nil {
			return err
		}
		for _, p := range r.Plans {
			if p.ID == id {
				if found = p; ok(p) {
					return nil
				}
			}
		}
		return fmt.Errorf("last report: %+v", r.Plans)
	})
	return found
}

// awaitCSV waits until the ClusterServiceVersion's report satisfies the condition.
func (h *hub) awaitCSV(ns, name string, ok func(protocol.CSVReport) bool) protocol.CSVReport {
	h.t.Helper()
	var found protocol.CSVReport
	await(h.t, "csv "+name, func(ctx context.Context) error {
		r, _, err := h.report(ctx, ns)
		if err != nil {
			return err
		}
		for _, c := range r.CSVs {
			if c.Name == name {
				if found = c; ok(c) {
					return nil
				}
			}
		}
		return fmt.Errorf("last report: %+v %+v", r.CSVs, r.Plans)
	})
	return found
}

func phase(p string) func(protocol.PlanReport) bool {
	return func(r protocol.PlanReport) bool { return r.Phase == p }
}

func blocked(reason string) func(protocol.PlanReport) bool {
	return func(r protocol.PlanReport) bool { return r.Phase == protocol.PlanBlocked && r.Reason == reason }
}

func reached(p string) func(protocol.CSVReport) bool {
	return func(r protocol.CSVReport) bool { return len(r.History) > 0 && r.History[len(r.History)-1].Phase == p }
}

// history writes the transitions as "Phase(Reason)".
func history(r protocol.CSVReport) []string {
	out := make([]string, 0, len(r.History))
	for _, h := range r.History {
		out = append(out, h.Phase+"("+h.Reason+")")
	}
	return out
}
