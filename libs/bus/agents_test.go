package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// An agent whose rights are taken away is cut off at once and does not come back, whatever its JWT says; so is one
// whose place another key has taken. Others keep their connections. Nobody gets in with the JWT of one account and the
// key of another, and one that has ended lets nobody in.
func TestAgentsAreCutOff(t *testing.T) {
	t.Parallel()
	e := bustest.StartOperator(t)
	e.AddAgent(t, "default", theirs)
	e.AddAgent(t, "default", mine)
	other, first := connect(t, e, natsauth.AgentName(theirs)), connect(t, e, natsauth.AgentName(mine))
	before := e.Access(natsauth.AgentName(mine))

	gone := closed(first.conn)
	second := e.Let(t, "default", mine, time.Hour)
	signalled(t, gone, "an agent whose place another key has taken")
	wantRefused(t, before.URL, before.Credentials, "the key before")

	agent := connect(t, e, natsauth.AgentName(mine))
	answering(t, connect(t, e, natsauth.Installer).conn, bustest.Log(t), protocol.RPCGoAheadSubject("*", "*"))
	honest(t, agent.conn, []string{protocol.RPCGoAheadSubject("default", mine)})
	gone = closed(agent.conn)
	e.Push(t, natsjwt.Agent{Tenant: "default", ClusterID: mine})
	signalled(t, gone, "an agent without rights")
	now := e.Access(natsauth.AgentName(mine))
	wantRefused(t, now.URL, now.Credentials, "an agent without rights")

	e.Push(t, second)
	honest(t, connect(t, e, natsauth.AgentName(mine)).conn, []string{protocol.RPCGoAheadSubject("default", mine)})
	if !other.conn.IsConnected() || other.conn.Statistics.Reconnects > 0 {
		t.Error("what is done to one agent costs another its connection")
	}

	_, seed, _, err := natsjwt.ReadCreds(before.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	token, err := e.Authority.AgentJWT(second, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := nats.Connect(now.URL, nats.UserJWTAndSeed(token, seed)); err == nil {
		conn.Close()
		t.Error("a JWT is good without its key")
	}
	e.Let(t, "default", theirs, -time.Minute)
	ended := e.Access(natsauth.AgentName(theirs))
	wantRefused(t, ended.URL, ended.Credentials, "a JWT that has ended")
}

// Who has a join token may ask for its cluster, gets answers, and may do nothing else.
func TestWhoJoinsMayOnlyAsk(t *testing.T) {
	t.Parallel()
	e := bustest.StartOperator(t)
	seed, err := natsconn.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	who := natsjwt.Agent{Tenant: "default", ClusterID: mine}
	if who.Joiner, err = natsconn.PublicKey(seed); err != nil {
		t.Fatal(err)
	}
	e.Push(t, who)
	token, err := e.Authority.JoinJWT(who, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := natsjwt.Creds(token, seed)
	if err != nil {
		t.Fatal(err)
	}
	u := connectWith(t, natsconn.Settings{URL: e.Server.URL(), Credentials: creds}, natsauth.JoinName(mine))
	answering(t, connect(t, e, natsauth.Installer).conn, bustest.Log(t), protocol.RPCJoinSubject("*", "*"))
	honest(t, u.conn, []string{protocol.RPCJoinSubject("default", mine)})
	for _, subject := range append(literals(natsauth.OfAgent("default", mine).Publish),
		protocol.RPCJoinSubject("default", theirs), protocol.RPCJoinSubject("other", mine), "$JS.API.INFO",
		"_INBOX.join."+theirs+".x") {
		if u.mayPublish(subject) {
			t.Errorf("who joins may publish to %s", subject)
		}
	}
	for _, subject := range append(natsauth.OfAgent("default", mine).Subscribe, ">", "_INBOX.>", "chandler.rpc.join.>",
		"_INBOX.join."+theirs+".>") {
		if u.maySubscribe(subject) {
			t.Errorf("who joins may subscribe to %s", subject)
		}
	}
	gone := closed(u.conn)
	e.Push(t, natsjwt.Agent{Tenant: "default", ClusterID: mine})
	signalled(t, gone, "who joins with a token that was taken back")
	wantRefused(t, e.Server.URL(), creds, "a token that was taken back")
}

func literals(patterns []string) (list []string) {
	for _, p := range patterns {
		list = append(list, literal(p))
	}
	return list
}

// closed is closed when the server lets go of a connection.
func closed(conn *nats.Conn) <-chan struct{} {
	gone := make(chan struct{}, 10)
	conn.SetDisconnectErrHandler(func(*nats.Conn, error) { gone <- struct{}{} })
	return gone
}

func signalled(t *testing.T, gone <-chan struct{}, who string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-gone:
	case <-ctx.Done():
		t.Fatalf("%s keeps its connection", who)
	}
}

func wantRefused(t *testing.T, url, creds, who string) {
	t.Helper()
	conn, err := nats.Connect(url, nats.UserCredentialBytes([]byte(creds)))
	if err == nil {
		conn.Close()
		t.Errorf("%s is let in", who)
	}
}
