package bus_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestServerAnswersStayWithTheAgent: the server answers requests of JetStream, and acknowledges what a stream takes, by
// its own rights and to whatever subject a message names; it says where a message goes, too, to whom the message names.
// So an agent could have it write in the place of another cluster's plan or report, or to a service. Between accounts
// it cannot: nothing that it names is heard where others are. What it may do works.
func TestServerAnswersStayWithTheAgent(t *testing.T) {
	t.Parallel()
	inBothModes(t, serverAnswersStayWithTheAgent)
}

func serverAnswersStayWithTheAgent(t *testing.T, e *bustest.Env) {
	t.Helper()
	e.AddAgent(t, "default", mine)
	if _, err := e.Bus.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	early := connect(t, e, natsauth.AgentName(mine))
	if _, err := e.As(t, natsauth.AgentName(mine)).Stream(t.Context(), protocol.StreamPlans); err != nil {
		t.Fatalf("a new agent sees the stream of plans as %v", err)
	}
	e.AddAgent(t, "default", theirs)
	plan := "chandler.plans.default." + mine + "." + protocol.ScopeID(mine, "ns")
	report := "chandler.reports.default." + mine + "." + protocol.ScopeID(mine, "ns")
	anywhere := []string{
		"chandler.plans.default." + theirs + "." + protocol.ScopeID(theirs, "ns"),
		"chandler.reports.default." + theirs + "." + protocol.ScopeID(theirs, "ns"),
		"chandler.content.default.aa.0", "chandler.evt.default.cluster.x", "_INBOX.installer.x", "_INBOX.gateway.x",
		"$JS.API.STREAM.PURGE." + e.Bus.StreamName(protocol.StreamPlans),
		"chandler.rpc.executor.default." + theirs + ".check", "chandler.repeat.default." + theirs,
	}
	for _, subject := range []string{plan, anywhere[0], anywhere[1], anywhere[2]} {
		if _, err := e.Bus.JetStream().Publish(t.Context(), subject, []byte("true")); err != nil {
			t.Fatal(err)
		}
	}
	spy, err := e.Bus.Conn().SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Bus.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	if !early.conn.IsConnected() || early.conn.Statistics.Reconnects > 0 {
		t.Error("a new agent costs others their connections")
	}
	attack(t, e, early.conn, anywhere, plan, report)
	installer := connect(t, e, natsauth.Installer)
	answering(t, early.conn, bustest.Log(t), protocol.RPCFilter("default", mine))
	honest(t, installer.conn, []string{protocol.RPCSubject("default", mine, "check")})
	answering(t, installer.conn, bustest.Log(t), protocol.RPCGoAheadSubject("*", "*"))
	honest(t, early.conn, []string{protocol.RPCGoAheadSubject("default", mine)})
	agentMay(t, e, plan, report) // in the order of the connections, what was before has been handled
	for {
		m, err := spy.NextMsg(0)
		if err != nil {
			break
		}
		if slices.Contains(anywhere, m.Subject) {
			t.Errorf("the server says on %s: %s", m.Subject, m.Data)
		}
	}
	for kind, subject := range map[string]string{
		protocol.StreamPlans: anywhere[0], protocol.StreamReports: anywhere[1], protocol.StreamContent: anywhere[2],
	} {
		if m, err := lastOf(t, e.Bus, kind, subject); err != nil || string(m.Data) != "true" {
			t.Errorf("the last value of %s is %v, %v", subject, m, err)
		}
	}
}

// attack has the server answer, acknowledge and trace to subjects of others.
func attack(t *testing.T, e *bustest.Env, agent *nats.Conn, anywhere []string, plan, report string) {
	t.Helper()
	plans := e.Bus.StreamName(protocol.StreamPlans)
	for _, reply := range anywhere {
		for _, request := range []string{
			report, "$JS.API.STREAM.INFO." + plans, "$JS.API.DIRECT.GET." + plans + "." + plan,
			protocol.RPCGoAheadSubject("default", mine),
		} {
			m := nats.NewMsg(request)
			m.Reply = reply
			m.Header.Set("Nats-Trace-Dest", reply)
			if err := agent.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
			m.Header = nats.Header{}
			if err := agent.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := agent.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
}

// agentMay does what an agent does with streams: it hears of plans, reads them, sees the state of their stream and
// writes reports that are acknowledged.
func agentMay(t *testing.T, e *bustest.Env, plan, report string) {
	t.Helper()
	agent := e.As(t, natsauth.AgentName(mine))
	heard, err := agent.Conn().SubscribeSync(protocol.PlansFilter("default", mine))
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Conn().FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Bus.JetStream().Publish(t.Context(), plan, []byte("newer")); err != nil {
		t.Fatal(err)
	}
	if m, err := heard.NextMsg(patience); err != nil || string(m.Data) != "newer" {
		t.Fatalf("a plan comes as %v, %v", m, err)
	}
	if m, err := lastOf(t, agent, protocol.StreamPlans, plan); err != nil || string(m.Data) != "newer" {
		t.Fatalf("a plan is read as %v, %v", m, err)
	}
	if m, err := lastOf(t, agent, protocol.StreamPlans, plan+"0"); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Fatalf("a plan that is not there is read as %v, %v", m, err)
	}
	for subject, want := range map[string]error{
		"chandler.content.default.aa.0": nil, "chandler.content.default.bb.0": jetstream.ErrMsgNotFound,
	} {
		if m, err := lastOf(t, agent, protocol.StreamContent, subject); !errors.Is(err, want) {
			t.Fatalf("the content %s is read as %v, %v", subject, m, err)
		}
	}
	got, err := agent.JetStream().Publish(t.Context(), report, []byte("mine"))
	if err != nil || got.Stream != e.Bus.StreamName(protocol.StreamReports) {
		t.Fatalf("a report is acknowledged with %v, %v", got, err)
	}
	if m, err := lastOf(t, e.Bus, protocol.StreamReports, report); err != nil || string(m.Data) != "mine" {
		t.Fatalf("the report is %v, %v", m, err)
	}
}

func lastOf(t *testing.T, b *bus.Bus, kind, subject string) (*jetstream.RawStreamMsg, error) {
	t.Helper()
	stream, err := b.Stream(t.Context(), kind)
	if err != nil {
		return nil, err
	}
	return stream.GetLastMsgForSubject(t.Context(), subject)
}
