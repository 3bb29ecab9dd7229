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
		want    bool
	}{
		{events.KindCluster, "harbour", true},
		{events.KindCluster, "other", false},
		{events.KindAccess, "cluster/harbour", true},
		{events.KindAccess, "fleet", false},
		{events.KindCatalog, "harbour/ops/own", true},
		{events.KindCatalog, "harbour", false}, // a catalog of the hub with the name of the cluster
		{events.KindSubscription, "harbour/ops/etcd", true},
		{events.KindSubscription, "harbour2/ops/etcd", false},
		{events.KindRetention, "harbour", false}, // a service with the name of the cluster
	} {
		e := eventlog.Recorded{StreamID: events.StreamID{Kind: c.kind}, Envelope: events.Envelope{Subject: c.subject}}
		if got := s.takes(e); got != c.want {
			t.Errorf("%s %s is taken: %v, want %v", c.kind, c.subject, got, c.want)
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
