package executorhost_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/internal/executorhost"
	"github.com/chandler-fleet/chandler/services/installer/internal/holds"
)

const patience = 60 * time.Second

// env is a host whose executors only tell that they began and ended.
type env struct {
	t        *testing.T
	gateway  *pg.Pool
	own      *pg.Pool
	nats     *bustest.Env
	identity *age.X25519Identity
	host     *executorhost.Host
	told     chan string
	letGo    chan string // clusters that were given back

	ahead   atomic.Int64 // of the host's clock
	mu      sync.Mutex
	targets map[string]executorhost.Target // that executors began with
	request func(c *rest.Config, life time.Duration) (string, clusteraccess.Token, error)
}

func setup(t *testing.T) *env {
	t.Helper()
	d := pgtest.DB(t)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	set, err := seal.ParseIdentities(id.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &env{
		t: t, gateway: d.Pool(t, "gateway"), own: d.Pool(t, "installer"), nats: bustest.Start(t), identity: id,
		told: make(chan string, 100), letGo: make(chan string, 100), targets: map[string]executorhost.Target{},
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	e.host = executorhost.New(executorhost.Config{
		Pool: e.own, Bus: e.nats.Bus, Identity: set, Log: bustest.Log(t),
		Name: "only", Follows: "installer.test",
		EventLog: eventlog.New(e.own),
		Now:      func() time.Time { return time.Now().Add(time.Duration(e.ahead.Load())) },
		Request: func(_ context.Context, c *rest.Config, life time.Duration) (string, clusteraccess.Token, error) {
			return e.request(c, life)
		},
		Session:  protocol.NewSession(uuid.NewString(), key),
		Register: holds.Registry{Pool: e.own, Log: bustest.Log(t)}.Register,
		Execute: func(ctx context.Context, tg executorhost.Target) error {
			e.mu.Lock()
			e.targets[tg.Cluster] = tg
			e.mu.Unlock()
			e.told <- "begin " + tg.Cluster + " " + tg.REST.BearerToken
			<-ctx.Done()
			e.told <- "end " + tg.Cluster + " " + tg.REST.BearerToken
			return nil
		},
		Release: func(_ context.Context, tg executorhost.Target) error {
			e.letGo <- tg.Cluster + " " + tg.REST.BearerToken
			return nil
		},
	})
	return e
}

func (e *env) run() {
	ctx, cancel := context.WithCancel(e.t.Context())
	done := make(chan error, 1)
	go func() { done <- e.host.Run(ctx) }()
	e.t.Cleanup(sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("Run = %v", err)
		}
	}))
}

func (e *env) next(want string) {
	e.t.Helper()
	select {
	case got := <-e.told:
		if got != want {
			e.t.Fatalf("an executor told %q, want %q", got, want)
		}
	case <-time.After(patience):
		e.t.Fatalf("nothing told; want %q", want)
	}
}

func kubeconfig(token, extra string) []byte {
	return fmt.Appendf(
		nil,
		`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":%q%s}}]}`, token, extra)
}

func (e *env) seal(to age.Recipient, plain []byte) []byte {
	e.t.Helper()
	var b bytes.Buffer
	w, err := age.Encrypt(&b, to)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return b.Bytes()
}

// register puts a cluster where the hub's consumer puts it.
func (e *env) register(name string) (id string) {
	e.t.Helper()
	stream := events.StreamID{
		Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster, name),
		Incarnation: 1,
	}
	id = stream.UUID().String()
	e.exec(e.own, `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, $2, $3, $4, '')`, events.DefaultTenant, name, id, stream.String())
	return id
}

// credential stores a kubeconfig as the gateway does, and its commitment as the hub's consumer does.
func (e *env) credential(name string, ciphertext []byte) {
	e.t.Helper()
	commitment := e.stored(name, ciphertext)
	e.exec(e.own, `update installer.clusters set credential = $2 where name = $1`, name, commitment)
	e.host.Wake()
}

// stored stores a kubeconfig as the gateway does.
func (e *env) stored(name string, ciphertext []byte) (commitment string) {
	e.t.Helper()
	commitment = uuid.NewString()
	e.exec(e.gateway, `insert into gateway.credentials (tenant, cluster_key, name, commitment, salt, ciphertext)
		values ($1, $2, $3, $4, '', $5)
		on conflict (tenant, cluster_key) do update set ciphertext = excluded.ciphertext,
		commitment = excluded.commitment`,
		events.DefaultTenant, events.Key(events.DefaultTenant, events.KindCluster, name), name, commitment, ciphertext)
	e.host.Wake()
	return commitment
}

func (e *env) exec(p *pg.Pool, sql string, args ...any) {
	e.t.Helper()
	if _, err := p.Exec(e.t.Context(), sql, args...); err != nil {
		e.t.Fatal(err)
	}
}

func TestHostFollowsTheClusters(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.run()
	id := e.register("east")
	e.credential("east", e.seal(e.identity.Recipient(), kubeconfig("one", "")))
	e.next("begin east one")
	e.credential("east", e.seal(e.identity.Recipient(), kubeconfig("two", ""))) // replaced
	e.next("end east one")
	e.next("begin east two")
	e.register("west")
	e.credential("west", e.seal(e.identity.Recipient(), kubeconfig("three", "")))
	e.next("begin west three")
	if n := e.host.Clusters(); n != 2 {
		t.Errorf("%d executors run", n)
	}
	e.exec(e.own, `update installer.clusters set removed = true where cluster_id = $1`, id)
	e.host.Wake()
	e.next("end east two")
	select { // with the credential that is in memory only by then, and not before its executor has ended
	case got := <-e.letGo:
		if got != "east two" {
			t.Errorf("%s was given back", got)
		}
	case <-time.After(patience):
		t.Error("the removed cluster was not given back")
	}
	select {
	case got := <-e.letGo:
		t.Errorf("%s was given back, too", got)
	default:
	}
}

// A cluster that was removed and registered again under its name is another one: the executor of the old
// registration never gets the new kubeconfig, whatever the order in which both become known.
func TestKubeconfigBelongsToARegistration(t *testing.T) {
	t.Parallel()
	e := setup(t)
	old := e.register("east")
	e.credential("east", e.seal(e.identity.Recipient(), kubeconfig("one", "")))
	e.run()
	e.next("begin east one")
	commitment := e.stored("east", e.seal(e.identity.Recipient(), kubeconfig("two", "")))
	e.register("west") // a round of the host that sees this one has seen the above
	e.credential("west", e.seal(e.identity.Recipient(), kubeconfig("three", "")))
	e.next("begin west three")
	e.exec(e.own, `update installer.clusters set removed = true where cluster_id = $1`, old)
	e.exec(e.own, `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'east', $2, '', $3)`,
		events.DefaultTenant, uuid.NewString(), commitment)
	e.host.Wake()
	told := map[string]bool{}
	for range 2 { // two executors of two clusters: in any order
		select {
		case got := <-e.told:
			told[got] = true
		case <-time.After(patience):
		}
	}
	if !told["end east one"] || !told["begin east two"] {
		t.Errorf("executors told %v", told)
	}
}

// A kubeconfig that cannot be used is reported like other trouble with the cluster, never quoted, and its
// replacement is picked up.
func TestUnusableKubeconfigIsReported(t *testing.T) {
	t.Parallel()
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]func(e *env) []byte{
		"another key": func(e *env) []byte { return e.seal(stranger.Recipient(), kubeconfig("secret", "")) },
		"garbage":     func(*env) []byte { return []byte("secret") },
		"no config":   func(e *env) []byte { return e.seal(e.identity.Recipient(), []byte("secret: [")) },
		"exec": func(e *env) []byte {
			return e.seal(e.identity.Recipient(), kubeconfig(
				"secret",
				`,"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"/bin/secret","interactiveMode":"Never"}`))
		},
		"file": func(e *env) []byte {
			return e.seal(e.identity.Recipient(), kubeconfig("secret", `,"tokenFile":"/etc/secret"`))
		},
		// Whoever opens it waits for ever: it is not opened.
		"a pipe": func(e *env) []byte {
			pipe := filepath.Join(e.t.TempDir(), "secret")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				e.t.Fatal(err)
			}
			return e.seal(e.identity.Recipient(), kubeconfig("secret", fmt.Sprintf(`,"tokenFile":%q`, pipe)))
		},
		"exec hidden by Exec": func(e *env) []byte {
			return e.seal(e.identity.Recipient(), kubeconfig("secret",
				`,"exec":{"apiVersion":"v1","command":"/bin/secret","interactiveMode":"Never"},"Exec":null`))
		},
		"without TLS": func(e *env) []byte {
			return e.seal(
				e.identity.Recipient(), bytes.Replace(kubeconfig("secret", ""), []byte("https:"), []byte("http:"), 1),
			)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			if _, err := e.nats.Bus.Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			id := e.register("east")
			sub, err := e.nats.Bus.Conn().SubscribeSync(protocol.ClusterReportSubject(events.DefaultTenant, id))
			if err != nil {
				t.Fatal(err)
			}
			e.credential("east", c(e))
			e.run()
			m, err := sub.NextMsg(patience)
			if err != nil {
				t.Fatal(err)
			}
			var own ed25519.PublicKey
			if err := e.own.QueryRow(t.Context(), `select public_key from installer.holds where session = $1 and epoch = 0`,
				m.Header.Get(protocol.HeaderSession)).Scan(&own); err != nil {
				t.Fatalf("the session of the report is not registered: %v", err)
			}
			if err := protocol.VerifyReport(m.Subject, m.Data, m.Header.Get(protocol.HeaderReportSignature),
				own); err != nil {
				t.Error(err)
			}
			var r protocol.ClusterReport
			if err := json.Unmarshal(m.Data, &r); err != nil {
				t.Fatal(err)
			}
			if r.State != "Unauthorized" || r.Reason != "CredentialUnusable" || r.Message == "" || r.Cluster != "east" {
				t.Errorf("reported %+v", r)
			}
			if bytes.Contains(m.Data, []byte("secret")) {
				t.Errorf("the report quotes the kubeconfig: %s", m.Data)
			}
			e.credential("east", e.seal(e.identity.Recipient(), kubeconfig("good", "")))
			e.next("begin east good")
		})
	}
}
