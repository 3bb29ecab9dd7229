package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
)

const token = "test-token-of-the-administrator"

// bench is a gateway over a database and a NATS server of its own, asked through HTTP.
type bench struct {
	t        testing.TB
	url      string
	db       *pgtest.Database
	identity *age.X25519Identity
	settings func(*app.Config) // of further ones; may be nil
	said     slog.Handler      // takes what gateways log; may be nil
	mu       sync.Mutex
	pools    map[string]*pg.Pool // by role
	position string              // of the last event that a fact appended
	app      *app.App            // that was started last; nil where the test starts its own
	unseen   string              // position of the last write that no read has waited for; "" without one
	stop     func()
}

func setup(tb testing.TB) *bench {
	tb.Helper()
	return setupWith(tb, nil)
}

// withModels has the read models of an empty log: making them takes a third of what PostgreSQL does in a short test.
// Tests of the making take pgtest.DB.
var withModels = pgtest.Prepared{Do: func(tb testing.TB, d *pgtest.Database) {
	tb.Helper()
	models := view.Projections()
	pool, err := pg.Open(tb.Context(), d.URL("gateway"), pg.WithSearchPath(view.Places(models)...))
	if err != nil {
		tb.Fatal(err)
	}
	defer pool.Close()
	for _, m := range models {
		r, err := projection.New(m, projection.Deps{
			Log: eventlog.New(pool), Pool: pool, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			tb.Fatal(err)
		}
		if err := r.CatchUp(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
}}

func setupWith(tb testing.TB, settings func(*app.Config)) *bench {
	tb.Helper()
	b := &bench{t: tb, db: withModels.DB(tb), pools: map[string]*pg.Pool{}, settings: settings}
	var err error
	if b.identity, err = age.GenerateX25519Identity(); err != nil {
		tb.Fatal(err)
	}
	b.url, b.stop = b.gateway(token)
	if settings == nil { // a gateway on a busy machine does not wait so long with its first answers
		b.app.Opened(tb.Context())
	}
	return b
}

// gateway starts a gateway and returns its address.
func (b *bench) gateway(adminToken string) (url string, stop func()) {
	b.t.Helper()
	nats := bustest.Start(b.t)
	tel := &telemetry.Telemetry{Log: slog.New(slog.DiscardHandler)}
	if b.said != nil {
		tel.Log = slog.New(b.said)
	}
	cfg := app.Config{
		Requests: app.RequestsLogin{URL: b.db.URL("gateway-api")},
		Config: service.Config{
			DatabaseURL: b.db.URL("gateway"), NATS: nats.Access("gateway"), OpsListen: "127.0.0.1:0",
			Drain: 10 * time.Second,
		},
		Listen: "127.0.0.1:0", AdminToken: adminToken, CredentialsRecipient: b.identity.Recipient().String(),
		TokenTo: io.Discard, CatalogCredentialsRecipient: b.identity.Recipient().String(),
		HookKey: "a-hook-key-of-32-characters-or-more", GlobalNamespaces: app.DefaultGlobalNamespaces,
		GlobalCatalogNamespaces: app.DefaultGlobalCatalogNamespaces, Bodies: bodiestest.Secrets(),
	}
	if b.settings != nil {
		b.settings(&cfg)
	}
	a, err := app.New(b.t.Context(), cfg, tel)
	if err != nil {
		b.t.Fatal(err)
	}
	b.app = a
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("gateway: %v", err)
		}
	}
	b.t.Cleanup(stop)
	return "http://" + a.Addr(), stop
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request with the admin token; body may be a string, nil or anything that is JSON. A read without
// minPosition sees the writes before it: who asks for nothing is promised nothing, and a busy machine takes its time.
func (b *bench) do(method, path string, body any) answer {
	b.t.Helper()
	return b.as(token, method, path, body)
}

// as sends a request for somebody. A replacement replaces whatever is there.
func (b *bench) as(bearer, method, path string, body any) answer {
	b.t.Helper()
	if method == http.MethodGet && !strings.Contains(path, "minPosition") {
		b.showWrites()
	}
	a := b.send(b.url, bearer, method, path, body)
	if a.status == http.StatusPreconditionRequired {
		a = b.send(b.url, bearer, method, path, body, "If-Match", "*")
	}
	if at := a.header.Get("Chandler-Position"); at != "" && method != http.MethodGet {
		b.mu.Lock()
		b.unseen = at
		b.mu.Unlock()
	}
	return a
}

// ask sends a request with names and values of headers.
func (b *bench) ask(method, path string, body any, header ...string) answer {
	b.t.Helper()
	return b.send(b.url, token, method, path, body, header...)
}

// send sends a request to a gateway; header are names and values.
func (b *bench) send(base, bearer, method, path string, body any, header ...string) answer {
	b.t.Helper()
	return b.sendBy(http.DefaultClient, base, bearer, method, path, body, header...)
}

// sendBy is send by a client of its own.
func (b *bench) sendBy(by *http.Client, base, bearer, method, path string, body any, header ...string) answer {
	b.t.Helper()
	var in io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		in = bytes.NewBufferString(v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			b.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, base+path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := by.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		b.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, raw}
}

// showWrites waits until the read models hold the last write. Where they cannot, the read shows what there is.
func (b *bench) showWrites() {
	b.mu.Lock()
	at := b.unseen
	b.unseen = ""
	b.mu.Unlock()
	if at == "" || b.app == nil { // a gateway that the test started itself
		return
	}
	if err := b.app.Show(b.t.Context(), at); err != nil {
		b.t.Logf("a read does not wait for the write at %s: %v", at, err)
	}
}

// must wants a status and decodes the body.
func must[T any](b *bench, want int, a answer) T {
	b.t.Helper()
	var v T
	if a.status != want {
		b.t.Fatalf("status %d, want %d: %s", a.status, want, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		b.t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

// fact appends what another service records, and keeps its position.
func (b *bench) fact(w events.Writer, kind events.Kind, natural, subject string, payloads ...events.Payload) {
	b.t.Helper()
	b.position = b.record(w, kind, natural, subject, payloads...)
}

// record is fact for more than one goroutine: it returns the position.
func (b *bench) record(
	w events.Writer, kind events.Kind, natural, subject string, payloads ...events.Payload,
) string {
	b.t.Helper()
	return b.recordBy("", w, kind, natural, subject, payloads...)
}

// recordBy is record of what an actor asked for.
func (b *bench) recordBy(
	actor string, w events.Writer, kind events.Kind, natural, subject string, payloads ...events.Payload,
) string {
	b.t.Helper()
	ctx := b.t.Context()
	role := w
	if w == events.Fleet { // the controller runs in the resolver
		role = events.Resolver
	}
	pool := b.pool(string(role))
	l := eventlog.New(pool)
	var done eventlog.Appended
	err := pool.Tx(ctx, func(tx pgx.Tx) error {
		head, err := l.Latest(ctx, tx, events.DefaultTenant, kind, natural)
		if err != nil {
			return err
		}
		id, version := head.Create(), int64(0)
		if head.Exists() {
			id, version = head.ID, head.Version
		}
		m := events.Meta{Tenant: events.DefaultTenant, Source: w, Command: uuid.New(), Time: time.Now(), Actor: actor}
		done, err = l.Append(ctx, tx, m, id, subject, version, payloads...)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	pos, ok, err := l.Wait(ctx, done, 5*time.Second)
	if err != nil || !ok {
		b.t.Fatalf("no position: %v", err)
	}
	return pos.String()
}

// seen is a path that waits for the last fact.
func (b *bench) seen(path string) string { return path + "?minPosition=" + b.position }

const kubeconfig = `apiVersion: v1
kind: Config
current-context: main
clusters: [{name: c, cluster: {server: "https://spoke.example.org:6443"}}]
users: [{name: u, user: {token: s3cr3t-token}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`

// cluster registers a cluster.
func (b *bench) cluster(name string) {
	b.t.Helper()
	a := b.do("POST", "/api/v1/clusters", map[string]any{"name": name, "kubeconfig": kubeconfig})
	if a.status != http.StatusCreated {
		b.t.Fatalf("register %s: %d %s", name, a.status, a.body)
	}
	b.position = a.header.Get("Chandler-Position")
}

// problem is what an error answers.
type problem struct {
	Type, Title, Detail, Kind, Instance string
	Status                              int
	Errors                              []struct{ Location, Message, Rule, Help string }
}

func (p problem) String() string { return fmt.Sprintf("%d %s %v", p.Status, p.Detail, p.Errors) }

func (b *bench) pool(role string) *pg.Pool {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pools[role] == nil {
		b.pools[role] = b.db.Pool(b.t, role)
	}
	return b.pools[role]
}

func (b *bench) exec(role, sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool(role).Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) count(sql string) (n int) {
	b.t.Helper()
	if err := b.pool("admin").QueryRow(b.t.Context(), sql).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// connectAs connects a played service to the NATS of a gateway.
func connectAs(b *bench, user string, gateway natsconn.Settings) *bus.Bus {
	b.t.Helper()
	access, err := bustest.AccessAs(user, gateway)
	if err != nil {
		b.t.Fatal(err)
	}
	conn, err := bus.Connect(b.t.Context(), access, bus.WithName(user), bus.WithLog(bustest.Log(b.t)),
		bustest.Speaking(b.t, b.db, user))
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}
