package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/renewed"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

const (
	mine   = "11111111-1111-5111-8111-111111111111"
	theirs = "22222222-2222-5222-8222-222222222222"
)

// user is a connection that notes what the server refuses it.
type user struct {
	t       *testing.T
	conn    *nats.Conn
	refused chan string
}

func connect(t *testing.T, e *bustest.Env, name string) *user {
	t.Helper()
	return connectWith(t, e.Access(name), name)
}

func connectWith(t *testing.T, access natsconn.Settings, name string) *user {
	t.Helper()
	u := &user{t: t, refused: make(chan string, 100)}
	options, err := access.Options()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(access.URL, append(options, nats.CustomInboxPrefix(natsauth.Inbox(name)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { u.refused <- err.Error() }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	u.conn = conn
	return u
}

// may does something and reports whether the server took it.
func (u *user) may(do func(*nats.Conn) error) bool {
	u.t.Helper()
	for len(u.refused) > 0 {
		<-u.refused
	}
	if err := do(u.conn); err != nil {
		u.t.Fatal(err)
	}
	// The server answers in order: a refusal comes before the answer to the flush.
	if err := u.conn.FlushTimeout(patience); err != nil {
		u.t.Fatal(err)
	}
	select {
	case said := <-u.refused:
		if !strings.Contains(said, "ermissions") {
			u.t.Fatalf("the server says %s", said)
		}
		return false
	case <-time.After(20 * time.Millisecond): // the handler runs beside
		return len(u.refused) == 0
	}
}

func (u *user) mayPublish(subject string) bool {
	return u.may(func(c *nats.Conn) error { return c.Publish(subject, []byte("x")) })
}

func (u *user) maySubscribe(subject string) bool {
	return u.may(func(c *nats.Conn) error {
		s, err := c.SubscribeSync(subject)
		if err == nil {
			u.t.Cleanup(func() { _ = s.Unsubscribe() }) // the connection is closed by then
		}
		return err
	})
}

// A compromised service or agent stays what it is: on a real server each user may do what the table says and nothing
// else (DESIGN D10). The attacks of the first list are those that a flat domain allowed.
func TestEachUserMayDoItsOwnOnly(t *testing.T) {
	t.Parallel()
	inBothModes(t, eachUserMayDoItsOwnOnly)
}

// inBothModes runs a test with users in the server's configuration, and in operator mode.
func inBothModes(t *testing.T, fn func(*testing.T, *bustest.Env)) {
	t.Helper()
	for mode, start := range map[string]func(testing.TB) *bustest.Env{
		"configuration": bustest.Start, "operator": bustest.StartOperator,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			fn(t, start(t))
		})
	}
}

func eachUserMayDoItsOwnOnly(t *testing.T, e *bustest.Env) {
	t.Helper()
	e.AddAgent(t, "default", mine)
	e.AddAgent(t, "default", theirs)
	agent := natsauth.AgentName(mine)
	scope := protocol.ScopeID(mine, "ns")
	plans := e.Bus.StreamName(protocol.StreamPlans)
	attacks := map[string]map[string][]string{ // by user: subjects to publish to, and to subscribe to
		natsauth.Gateway: {
			"publish": {
				"chandler.reports.default." + mine + "." + scope, "chandler.plans.default." + mine + "." + scope,
				"chandler.content.default.aa.0", "chandler.rpc.executor.default." + mine + ".check",
				"$JS.API.STREAM.DELETE." + plans, "$JS.API.STREAM.PURGE." + plans, "$JS.API.STREAM.CREATE.X",
				"$JS.API.STREAM.UPDATE." + plans, "$JS.API.DIRECT.GET." + plans,
				"$JS.API.DIRECT.GET." + plans + ".chandler.plans.default." + mine + "." + scope,
				"$JS.API.STREAM.MSG.GET." + plans, "$JS.API.CONSUMER.CREATE." + plans, "_INBOX.resolver.a", "_INBOX.a",
			},
			"subscribe": {
				">", "chandler.>", "chandler.plans.>", "chandler.reports.>", "_INBOX.>", "_INBOX.resolver.>", "$JS.>",
				"chandler.rpc.resolver.>", natsauth.Inbox(agent) + ".>",
			},
		},
		natsauth.Resolver: {
			"publish": {
				"chandler.plans.default." + mine + "." + scope, "chandler.rpc.installer.check", "_INBOX.gateway.a",
			},
			"subscribe": {"chandler.rpc.installer.>", "chandler.reports.>", "_INBOX.gateway.>"},
		},
		natsauth.CatalogIndexer: {
			"publish":   {"chandler.content.default.aa.0", "chandler.rpc.resolver.explain", "chandler.reports.a.b.c"},
			"subscribe": {"chandler.rpc.>", "chandler.plans.>"},
		},
		natsauth.Installer: {
			"publish": {
				"$JS.API.STREAM.DELETE." + plans, "chandler.rpc.resolver.explain", "_INBOX.gateway.a",
				"_INBOX.gateway.resolver.a.b",
			},
			"subscribe": {"chandler.rpc.resolver.>", "_INBOX.gateway.>", ">"},
		},
		agent: {
			"publish": {
				"chandler.reports.default." + theirs + "." + scope, "chandler.reports.other." + mine + "." + scope,
				"chandler.plans.default." + mine + "." + scope, "chandler.evt.default.cluster.x",
				"chandler.content.default.a.0",
				"$JS.API.DIRECT.GET." + plans,
				"$JS.API.DIRECT.GET." + plans + ".chandler.plans.default." + theirs + "." + scope,
				"$JS.API.DIRECT.GET." + plans + ".chandler.plans.default.*.*", "$JS.API.DIRECT.GET." + plans + ".>",
				"$JS.API.STREAM.MSG.GET." + plans, "$JS.API.CONSUMER.CREATE." + plans,
				"$JS.API.CONSUMER.CREATE." + plans + ".c.chandler.plans.>", "$JS.API.STREAM.PURGE." + plans,
				"chandler.rpc.content.default." + theirs, "chandler.rpc.executor.default." + theirs + ".check",
				"chandler.rpc.resolver.explain", "_INBOX.installer.a",
				protocol.RPCGoAheadSubject("default", theirs),
				protocol.RPCGoAheadSubject("default", protocol.GoAheadAll),
				protocol.RPCGoAheadSubject("other", mine),
				protocol.RPCHoldSubject("default", theirs), protocol.RPCHoldSubject("other", mine),
				"_INBOX.installer.executor.default." + theirs + ".check.a", "_INBOX.gateway.installer.check.a",
			},
			"subscribe": {
				"chandler.plans.default." + theirs + ".*", "chandler.plans.>", "chandler.plans.*." + mine + ".*",
				"chandler.evt.>", "chandler.reports.default." + mine + ".*", "_INBOX.>", "_INBOX.installer.>",
				natsauth.Inbox(natsauth.AgentName(theirs)) + ".>", "chandler.rpc.executor.default." + theirs + ".*",
			},
		},
	}
	for name, lists := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := connect(t, e, name)
			for _, s := range lists["publish"] {
				if u.mayPublish(s) {
					t.Errorf("may publish to %s", s)
				}
			}
			for _, s := range lists["subscribe"] {
				if u.maySubscribe(s) {
					t.Errorf("may subscribe to %s", s)
				}
			}
			p := natsauth.Of(name)
			if name == agent {
				p = natsauth.OfAgent("default", mine)
			}
			for _, s := range p.Publish {
				if s = literal(s); !u.mayPublish(s) {
					t.Errorf("may not publish to %s", s)
				}
			}
			for _, s := range p.Subscribe {
				if !u.maySubscribe(s) {
					t.Errorf("may not subscribe to %s", s)
				}
			}
		})
	}
}

// literal is a subject that a pattern matches.
func literal(pattern string) string {
	return strings.NewReplacer("*", "nothing", ">", "nothing").Replace(pattern)
}

// TestAnswersReachWhoAsked: an answer goes to an inbox for answers to that question, of somebody who may ask it. Who
// asks does not choose where another one publishes: an agent that wants the installer's answer as a request to empty a
// stream, as the plan of another cluster, in another's inbox or on the subject of a service gets none, on a real
// server.
func TestAnswersReachWhoAsked(t *testing.T) {
	t.Parallel()
	inBothModes(t, answersReachWhoAsked)
}

func answersReachWhoAsked(t *testing.T, e *bustest.Env) {
	t.Helper()
	e.AddAgent(t, "default", mine)
	e.AddAgent(t, "default", theirs)
	if _, err := e.Bus.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan := "chandler.plans.default." + theirs + "." + protocol.ScopeID(theirs, "ns")
	if _, err := e.Bus.JetStream().Publish(t.Context(), plan, []byte("theirs")); err != nil {
		t.Fatal(err)
	}
	agent, installer := connect(t, e, natsauth.AgentName(mine)), connect(t, e, natsauth.Installer)
	log := &logged{}
	answering(t, installer.conn, slog.New(slog.NewTextHandler(log, nil)), protocol.RPCGoAheadSubject("*", "*"))
	answering(t, installer.conn, slog.New(slog.NewTextHandler(log, nil)), protocol.RPCContentSubject("*", "*"))

	plans := e.Bus.StreamName(protocol.StreamPlans)
	own := protocol.RPCGoAheadSubject("default", mine)
	anywhere := []string{
		"$JS.API.STREAM.DELETE." + plans, "$JS.API.STREAM.PURGE." + plans, plan, "chandler.evt.default.x",
		"chandler.rpc.executor.default." + theirs + ".check", "_INBOX.installer.x", "_INBOX.gateway.installer.check.x",
		"_INBOX.agent." + theirs + ".go-ahead.default." + theirs + ".x",
		"_INBOX.agent." + mine + ".go-ahead.default." + mine, // nothing of the asker's own choice
		"_INBOX.agent." + mine + ".go-ahead.default." + mine + ".a.b", "_INBOX.agent." + mine + ".go-ahead.other.x",
	}
	spy, err := e.Bus.Conn().SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	questions := []string{own, protocol.RPCContentSubject("default", mine)}
	honest(t, agent.conn, questions)
	for _, question := range questions {
		for _, reply := range anywhere {
			if err := agent.conn.PublishRequest(question, reply, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
	}
	honest(t, agent.conn, questions) // those before it were handled
	if err := e.Bus.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := spy.NextMsg(0)
		if err != nil {
			break
		}
		if slices.Contains(anywhere, m.Subject) {
			t.Errorf("the installer answered to %s: %s", m.Subject, m.Data)
		}
	}
	stream, err := e.Bus.JetStream().Stream(t.Context(), plans)
	if err != nil {
		t.Fatalf("the stream of plans: %v", err)
	}
	if m, err := stream.GetLastMsgForSubject(t.Context(), plan); err != nil || string(m.Data) != "theirs" {
		t.Errorf("the plan of another cluster is %v, %v", m, err)
	}
	if n := strings.Count(log.text(), "gets no answer"); n != 2 {
		t.Errorf("%d lines of log for %d questions on 2 subjects, want one for each", n, 2*len(anywhere))
	}
}

// honest asks until each question is answered.
func honest(t *testing.T, conn *nats.Conn, questions []string) {
	t.Helper()
	by := rpc.Asker{Verify: func(context.Context, []byte, string) bool { return true }}
	for _, question := range questions {
		// Between accounts nobody says that nobody listens yet: what is asked too early is lost, and asked again.
		ask := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return by.Ask(ctx, conn, question, struct{}{}, nil)
		}
		err := ask()
		for began := time.Now(); err != nil && time.Since(began) < patience; err = ask() {
			if !strings.Contains(err.Error(), "nobody serves") && !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if err != nil {
			t.Fatalf("an honest question: %v", err)
		}
	}
}

// answering answers all questions on a subject until the test ends.
func answering(t *testing.T, conn *nats.Conn, log *slog.Logger, subject string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	by := rpc.Answerer{Sign: func([]byte) (string, error) { return "", nil }}
	go func() {
		done <- by.Serve(ctx, conn, log, subject, func(context.Context, json.RawMessage) (any, error) {
			return struct{}{}, nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// logged is a log in memory.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) text() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// Every line of the table is for somebody, and an agent gets nothing with a wildcard in the place of its cluster.
func TestTable(t *testing.T) {
	t.Parallel()
	known := append(natsauth.Services(), natsauth.Admin, natsauth.Agent, natsauth.Join)
	for _, r := range natsauth.Table() {
		if len(r.Publish)+len(r.Subscribe) == 0 || r.Meaning == "" {
			t.Errorf("%s is for nobody, or means nothing", r.Subject)
		}
		for _, name := range append(slices.Clone(r.Publish), r.Subscribe...) {
			if !slices.Contains(known, name) {
				t.Errorf("%s names %s, which is no user", r.Subject, name)
			}
		}
	}
	p, j := natsauth.OfAgent("t", mine), natsauth.JoinUser("t", mine)
	for _, s := range slices.Concat(p.Publish, p.Subscribe, j.Publish, j.Subscribe) {
		private := strings.Contains(s, mine) || strings.Contains(s, "chandler.content.t.") ||
			s == "$JS.API.STREAM.INFO.*"
		if !private {
			t.Errorf("an agent may %s, which names neither its cluster nor its tenant", s)
		}
	}
}

// Servers and settings that do not go together are one clear sentence, and no waiting.
func TestConnectionIsRefused(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	stranger, err := natsconn.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	url := e.Server.URL()
	for name, c := range map[string]struct {
		access natsconn.Settings
		want   string
	}{
		"nobody":           {natsconn.Settings{URL: url}, "Authorization Violation"},
		"a wrong password": {natsconn.Settings{URL: url, User: "gateway", Password: "x"}, "Authorization Violation"},
		"a strange key":    {natsconn.Settings{URL: url, NKeySeed: stranger}, "refused"},
		"a broken seed":    {natsconn.Settings{URL: url, NKeySeed: "SUA"}, "nats-nkey-seed"},
		"two ways":         {natsconn.Settings{URL: url, Token: "x", NKeySeed: stranger}, "only one"},
		"no certificate":   {natsconn.Settings{URL: url, CA: renewed.Of("x")}, "nats-ca"},
		"half a pair":      {natsconn.Settings{URL: url, ClientKey: renewed.Of("x")}, "nats-client-key"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := tryConnect(ctx, t, c.access)
		cancel()
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) ||
			errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func tryConnect(ctx context.Context, t *testing.T, access natsconn.Settings) error {
	t.Helper()
	b, err := bus.Connect(ctx, access, bus.WithLog(bustest.Log(t)))
	if err == nil {
		b.Close()
	}
	return err
}
