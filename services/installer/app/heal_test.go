package app_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
)

// One chunk of CONTENT that is purged or replaced by garbage, which the hub believes published: the executor that needs
// it asks, the hub publishes it again, and the plan heals instead of waiting for ever (DESIGN D4). The executor has the
// permissions of an agent.
func TestDamagedContentHeals(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	// Before anything is read of streams: the NATS server (v2.15.2) reads its options for that without a lock.
	e.nats.AddAgent(t, s.Tenant, s.ClusterID)
	p := e.planned(s, e.propose(s, "etcd.v1.0.0", "Automatic"))
	e.hasContent(p.Plans[0])
	var d digest.Digest
	if err := e.pools[events.Gateway].QueryRow(t.Context(), `select digest from catalog_api.contents limit 1`).Scan(
		&d); err != nil {
		t.Fatal(err)
	}
	stream, err := e.nats.Bus.Stream(t.Context(), protocol.StreamContent)
	if err != nil {
		t.Fatal(err)
	}
	agent := e.nats.As(t, natsauth.AgentName(s.ClusterID)).JetStream()
	subject := protocol.ContentSubject(s.Tenant, d, 0)
	garbage := func(header nats.Header) {
		t.Helper()
		m := &nats.Msg{Subject: subject, Header: header, Data: []byte("garbage")}
		if _, err := e.nats.Bus.JetStream().PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for name, harm := range map[string]func(){
		"purged": func() {
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject)); err != nil {
				t.Fatal(err)
			}
		},
		"garbage":              func() { garbage(nats.Header{protocol.HeaderChunks: {"1"}}) },
		"garbage without form": func() { garbage(nil) },
		"chunks that are none": func() { garbage(nats.Header{protocol.HeaderChunks: {"3"}}) },
	} {
		harm()
		// Another executor each time: one asks for the same bundle once in a while only.
		c := hubclient.NewContents(
			hubclient.New(agent, bustest.Installation, s.Tenant, s.ClusterID, keys.Accepted{}, nil), 0)
		e.eventually("healed after "+name, func() bool {
			_, err := c.Get(t.Context(), d)
			return err == nil
		})
	}
}
