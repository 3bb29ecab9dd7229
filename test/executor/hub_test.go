package executor_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// hub is the one of package hubtest under the short names of this package.
type hub struct {
	*hubtest.Hub
	t       testing.TB
	js      jetstream.JetStream
	key     ed25519.PrivateKey
	public  ed25519.PublicKey
	cluster string // id
}

func newHub(tb testing.TB) *hub {
	tb.Helper()
	h := hubtest.New(tb)
	return &hub{Hub: h, t: tb, js: h.JetStream, key: h.Key, public: h.Public(), cluster: h.ClusterID}
}

// planned is a bundle of a plan.
type planned struct {
	content  bundle.Content
	pkg      string // "" is the component
	replaces string
	reason   string // "" is Subscribed
	config   json.RawMessage
}

func (h *hub) plan(ns, component string, bundles ...planned) protocol.Plan {
	h.t.Helper()
	all := make([]hubtest.Bundle, 0, len(bundles))
	for _, b := range bundles {
		all = append(all, hubtest.Bundle{
			Content: b.content, Package: b.pkg, Replaces: b.replaces, Reason: b.reason, Config: b.config,
		})
	}
	return h.Plan(ns, component, all...)
}

func (h *hub) ensure(tb testing.TB)                        { tb.Helper(); h.Ensure(tb) }
func (h *hub) scope(ns string) protocol.ScopePlans         { return h.Scope(ns) }
func (h *hub) publish(s protocol.ScopePlans)               { h.t.Helper(); h.Publish(s) }
func (h *hub) publishAt(s protocol.ScopePlans)             { h.t.Helper(); h.PublishAt(s) }
func (h *hub) store(c bundle.Content) digest.Digest        { h.t.Helper(); return h.Store(c) }
func (h *hub) want(ns string, plans ...protocol.Plan)      { h.t.Helper(); h.Want(ns, plans...) }
func phase(p string) func(protocol.PlanReport) bool        { return hubtest.Phase(p) }
func blocked(reason string) func(protocol.PlanReport) bool { return hubtest.Blocked(reason) }
func reached(p string) func(protocol.CSVReport) bool       { return hubtest.Reached(p) }
func history(r protocol.CSVReport) []string                { return hubtest.History(r) }

func (h *hub) report(ctx context.Context, ns string) (protocol.ScopeReport, bool, error) {
	return h.Report(ctx, ns)
}

func (h *hub) clusterReport(ctx context.Context) (protocol.ClusterReport, bool, error) {
	return h.ClusterReport(ctx)
}

func (h *hub) awaitPlan(ns, id string, ok func(protocol.PlanReport) bool) protocol.PlanReport {
	h.t.Helper()
	return h.AwaitPlan(ns, id, ok)
}

func (h *hub) awaitCSV(ns, name string, ok func(protocol.CSVReport) bool) protocol.CSVReport {
	h.t.Helper()
	return h.AwaitCSV(ns, name, ok)
}

func await(tb testing.TB, what string, look func(context.Context) error) {
	tb.Helper()
	hubtest.Await(tb, what, look)
}
