package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func config(t *testing.T, url string, nats *bustest.Env, adminToken string, tokenTo io.Writer) app.Config {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var access natsconn.Settings
	if nats != nil {
		access = nats.Access(natsauth.Gateway)
	}
	return app.Config{
		Requests: app.RequestsLogin{Password: "pgtest"}, // of the roles of pgtest
		Config:   service.Config{DatabaseURL: url, NATS: access, OpsListen: "127.0.0.1:0", Drain: 10 * time.Second},
		Listen:   "127.0.0.1:0", AdminToken: adminToken, CredentialsRecipient: id.Recipient().String(),
		TokenTo: tokenTo, Bodies: bodiestest.Secrets(),
	}
}

func quiet() *telemetry.Telemetry { return &telemetry.Telemetry{Log: slog.New(slog.DiscardHandler)} }

// run runs a gateway until the test ends and returns its address.
func run(t *testing.T, cfg app.Config) string {
	t.Helper()
	url, _ := runBoth(t, cfg)
	return url
}

// runBoth returns the host and port of the operators' listener, too.
func runBoth(t *testing.T, cfg app.Config) (url, ops string) {
	t.Helper()
	a, err := app.New(t.Context(), cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("gateway: %v", err)
		}
	})
	return "http://" + a.Addr(), a.OpsAddr()
}

// TestFirstTokenIsToldOnce: an installation without a given token makes one, tells it once and keeps
// its hash only; a given token replaces it.
func TestFirstTokenIsToldOnce(t *testing.T) {
	t.Parallel()
	d, nats := pgtest.DB(t), bustest.Start(t)
	var told, again bytes.Buffer
	b := &bench{
		t: t, db: d, pools: map[string]*pg.Pool{},
		url: run(t, config(t, d.URL("gateway"), nats, "", &told)),
	}
	m := regexp.MustCompile(`^admin token \(shown once\): ([A-Z0-9]{52})\n$`).FindStringSubmatch(told.String())
	if m == nil {
		t.Fatalf("told %q", told.String())
	}
	if a := b.as(m[1], "GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("the token that was told does not work: %d", a.status)
	}
	if n := b.count(fmt.Sprintf(`select count(*) from gateway.tokens
		where position(convert_to('%s', 'UTF8') in hash) > 0`, m[1])); n != 0 {
		t.Error("the token is stored in the clear")
	}
	run(t, config(t, d.URL("gateway"), nats, "", &again))
	if again.Len() != 0 {
		t.Errorf("told again: %q", again.String())
	}
	run(t, config(t, d.URL("gateway"), nats, token, io.Discard))
	if a := b.as(m[1], "GET", "/api/v1/clusters", nil); a.status != 401 {
		t.Errorf("the replaced token still works: %d", a.status)
	}
	if a := b.do("GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("the given token does not work: %d", a.status)
	}
}

func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	nats := bustest.Start(t)
	d := pgtest.DB(t)
	short := config(t, d.URL("gateway"), nats, "short", io.Discard)
	if _, err := app.New(t.Context(), short, quiet()); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "16") {
		t.Errorf("a short token: %v", err)
	}
	halfTLS := config(t, d.URL("gateway"), nats, token, io.Discard)
	halfTLS.OpsCertificate.Text = "certificate"
	if _, err := app.New(t.Context(), halfTLS, quiet()); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "without ops-key") {
		t.Errorf("a certificate without its key: %v", err)
	}
	noKey := config(t, d.URL("gateway"), nats, token, io.Discard)
	noKey.CredentialsRecipient = ""
	if _, err := app.New(t.Context(), noKey, quiet()); !errs.Is(err, errs.Invalid) {
		t.Errorf("no recipient: %v", err)
	}
	empty := config(t, pgtest.Empty(t).URL(pgtest.Admin), nats, token, io.Discard)
	if _, err := app.New(t.Context(), empty, quiet()); err == nil || !strings.Contains(err.Error(), "migrat") {
		t.Errorf("a database without a schema: %v", err)
	}
}

// onMessage calls something when a message that begins so is logged.
type onMessage struct {
	slog.Handler
	begins string
	do     func()
}

// Enabled implements slog.Handler.
func (o onMessage) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (o onMessage) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, o.begins) {
		o.do()
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (o onMessage) WithAttrs([]slog.Attr) slog.Handler { return o }

// WithGroup implements slog.Handler.
func (o onMessage) WithGroup(string) slog.Handler { return o }

// TestStartWaitsForNATS: without NATS the gateway waits and ends when it is told to.
func TestStartWaitsForNATS(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := &telemetry.Telemetry{Log: slog.New(onMessage{slog.DiscardHandler, "NATS is away at start", cancel})}
	cfg := config(t, d.URL("gateway"), nil, token, io.Discard)
	cfg.NATS.URL = "nats://127.0.0.1:1"
	_, err := app.New(ctx, cfg, waits)
	if !errs.Is(err, errs.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// TestTraceGoesIntoEvents: the trace of a request is that of its event.
func TestTraceGoesIntoEvents(t *testing.T) { //nolint:paralleltest // the tracer is the process's
	old := otel.GetTracerProvider()
	tracer := sdktrace.NewTracerProvider()
	otel.SetTracerProvider(tracer)
	t.Cleanup(func() {
		otel.SetTracerProvider(old)
		if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	b := setup(t)
	b.cluster("spoke")
	b.until(func() bool {
		page := must[struct{ Items []model.Event }](b, http.StatusOK, b.do("GET", "/api/v1/events", nil))
		return len(page.Items) == 2 && regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`).MatchString(
			page.Items[1].TraceParent) // the first one is that of the admin token
	})
}

// TestRebuiltViewsAreEqual proves DESIGN D9: every read model, made again from the log, is what it was.
func TestRebuiltViewsAreEqual(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/ops/operatorgroups",
		model.CreateOperatorGroup{Name: "g"}))
	b.bind("crew", "viewer", "ann", model.AccessScope{ClusterLabels: map[string]string{"stage": "test"}})
	b.write("PUT", "/api/v1/approvalpolicies/edge", model.ApprovalPolicySpec{})
	for i := range 5 {
		name := fmt.Sprintf("s%d", i)
		must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe(name, "tidegauge")))
		plan := fmt.Sprintf("00000000-0000-0000-0000-00000000000%d", i)
		subject := fmt.Sprintf("spoke/ops/install-%d", i)
		b.fact(events.Resolver, events.KindInstallPlan, plan, subject,
			proposed(plan, fmt.Sprintf("install-%d", i), fmt.Sprintf("tidegauge.v%d.0.0", i), name))
		csv := fmt.Sprintf("spoke/ops/tidegauge.v%d.0.0", i)
		b.fact(events.Installer, events.KindCSV, csv, csv, events.CSVPhaseChanged{Phase: "Pending"},
			events.CSVPhaseChanged{Phase: "Succeeded"})
		if i%2 == 0 {
			b.fact(events.Installer, events.KindCSV, csv, csv, events.CSVRemoved{Reason: "Deleted"})
		}
	}
	b.fact(events.Resolver, events.KindInstallPlan, "00000000-0000-0000-0000-000000000004", "spoke/ops/install-4",
		events.InstallPlanSuperseded{})
	b.fact(events.Resolver, events.KindSubscription, "spoke/ops/s2", "spoke/ops/s2",
		events.ResolutionFailed{Reason: "ErrorPreventedResolution", Explanation: "sha256:e"})
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogRevisionPublished{
			Revision: "sha256:2", Previous: "x", Variant: "1.34",
			Changes: []events.PackageChange{
				{Package: "tidegauge", Change: "changed", Deprecated: []string{"olm.package", "olm.channel/fast"}},
				{Package: "buoy", Change: "removed"},
			},
		},
		events.CatalogRevisionPublished{
			Revision: "sha256:3", Previous: "sha256:2", Variant: "1.34",
			Changes: []events.PackageChange{{
				Package: "tidegauge", Change: "changed",
				Undeprecated: []string{"olm.package"},
			}},
		},
		events.CatalogLoadFailed{Reason: "InvalidCatalog"})
	b.write("PUT", "/api/v1/fleet/subscriptions/gauges", wantedEverywhere())
	b.fact(events.Fleet, events.KindRollout, "gauges/1", "gauges/1", events.RolloutStarted{
		FleetSubscription: "gauges", Number: 1,
		Waves: []events.RolloutWave{{Name: "rest", Clusters: []string{"spoke"}}},
	}, events.RolloutWaveOpened{}, events.RolloutClusterDirected{Cluster: "spoke", Attempt: 1, Directive: "d"})
	must[model.Removed](b, 200, b.do("DELETE", subscriptions+"/s3", nil))
	b.position = must[model.Removed](b, 200, b.do("DELETE", "/api/v1/clusters/spoke", nil)).Position
	for _, path := range []string{
		"clusters", "catalogs", "operatorgroups", "subscriptions", "installplans",
		"operators", "approvalpolicies", "rolebindings", "fleet/subscriptions",
	} {
		b.do("GET", b.seen("/api/v1/"+path), nil)
	}
	b.stop()

	pool := b.pool("gateway")
	log := eventlog.New(pool)
	for _, p := range view.Projections() {
		before := b.contents(p)
		r, err := projection.New(p, projection.Deps{Log: log, Pool: pool, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := b.contents(p)
		if before != after || p.Name != clusters.Name && before == "" {
			t.Errorf("%s:\n%s\nmade again:\n%s", p.Name, before, after)
		}
	}
}

// contents is every row of a projection's tables.
func (b *bench) contents(p projection.Projection) string {
	b.t.Helper()
	var all strings.Builder
	for _, table := range p.Tables {
		rows, err := b.pool("admin").Query(b.t.Context(), `select t::text from `+p.Live().Name(table)+
			` t order by 1`)
		if err != nil {
			b.t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			b.t.Fatal(err)
		}
		for _, l := range lines {
			all.WriteString(table + " " + l + "\n")
		}
	}
	return all.String()
}
