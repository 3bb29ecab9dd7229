package eventlist

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var anybody = model.Caller{Rights: access.Everything()}

// TestSelectionOfACluster: an event concerns a cluster by its subject, which each kind of stream writes in its own way.
func TestSelectionOfACluster(t *testing.T) {
	t.Parallel()
	s, err := selectEvents(anybody, access.List, model.EventFilter{Cluster: "harbour"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind    events.Kind
		subject string
		payload events.Payload
		want    bool
	}{
		{events.KindCluster, "harbour", nil, true},
		{events.KindCluster, "other", nil, false},
		{events.KindAccess, "cluster/harbour", nil, true},
		{events.KindAccess, "fleet", nil, false},
		{events.KindCatalog, "harbour/ops/own", nil, true},
		{events.KindCatalog, "harbour", nil, false}, // a catalog of the hub with the name of the cluster
		{events.KindSubscription, "harbour/ops/etcd", nil, true},
		{events.KindSubscription, "harbour2/ops/etcd", nil, false},
		{events.KindRetention, "harbour", nil, false}, // a service with the name of the cluster
		{events.KindFleetSubscription, "harbour", nil, false},
		{events.KindRollout, "harbour/2", events.RolloutWaveOpened{}, false},
		{events.KindRollout, "etcd/2", events.RolloutClusterDirected{Cluster: "harbour"}, true},
		{events.KindRollout, "etcd/2", events.RolloutClusterSettled{Cluster: "harbour"}, true},
		{events.KindRollout, "etcd/2", events.RolloutClusterSkipped{Cluster: "harbour"}, true},
		{events.KindRollout, "etcd/2", events.RolloutClusterRetried{Cluster: "harbour"}, true},
		{events.KindRollout, "harbour/2", events.RolloutClusterSettled{Cluster: "other"}, false},
	} {
		e := eventlog.Recorded{
			StreamID: events.StreamID{Kind: c.kind}, Envelope: events.Envelope{Subject: c.subject}, Payload: c.payload,
		}
		if got := s.takes(e); got != c.want {
			t.Errorf("%s %s %T is taken: %v, want %v", c.kind, c.subject, c.payload, got, c.want)
		}
	}
}

// TestFleetEventsAreTheTenants: events of fleet subscriptions and rollouts are seen by those who may see all of the
// fleet, and by nobody else (issue 14, section 2).
func TestFleetEventsAreTheTenants(t *testing.T) {
	t.Parallel()
	for _, e := range []eventlog.Recorded{
		{StreamID: events.StreamID{Kind: events.KindFleetSubscription}, Envelope: events.Envelope{Subject: "harbour"}},
		{StreamID: events.StreamID{Kind: events.KindRollout}, Envelope: events.Envelope{Subject: "harbour/2"}},
	} {
		if at := targetOf(e); at != (access.Target{}) {
			t.Errorf("%s is about %+v, want all of the fleet", e.StreamID.Kind, at)
		}
	}
}

// TestTypesOfASelection: a family is all of its types, and what is no type is refused.
func TestTypesOfASelection(t *testing.T) {
	t.Parallel()
	s, err := selectEvents(anybody, access.List, model.EventFilter{Types: []string{"cluster.*", "csv.removed.v1"}})
	if err != nil {
		t.Fatal(err)
	}
	taken := map[events.Type]bool{
		"cluster.registered.v1": true, "cluster.observed.v1": true, "csv.removed.v1": true, "csv.flapping.v1": false,
		"catalog.added.v1": false,
	}
	for typ, want := range taken {
		if got := s.takes(eventlog.Recorded{Envelope: events.Envelope{Type: typ}}); got != want {
			t.Errorf("%s is taken: %v, want %v", typ, got, want)
		}
	}
	for _, wrong := range []string{"cluster", "clus*", "nothing.*", "*"} {
		if _, err := selectEvents(anybody, access.List, model.EventFilter{Types: []string{wrong}}); err == nil {
			t.Errorf("type %q was taken", wrong)
		}
	}
}
