package watch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestTouched: an event has the part of a list read again that it is about, and no list that does not follow its kind.
func TestTouched(t *testing.T) {
	t.Parallel()
	all := []events.Kind{
		events.KindSubscription, events.KindInstallPlan, events.KindCSV, events.KindOperatorGroup, events.KindCluster,
		events.KindCatalog,
	}
	for _, c := range []struct {
		typ     events.Type
		subject string
		kinds   []events.Kind
		want    Scope
		ok      bool
	}{
		{"subscription.created.v1", "east/ports/gauge", all, Scope{"east", "ports"}, true},
		{"installplan.proposed.v1", "east/ports/install-1", all, Scope{"east", "ports"}, true},
		{"csv.phase-changed.v1", "east/ports/gauge.v1", all, Scope{"east", "ports"}, true},
		{"operatorgroup.created.v1", "east/ports/g", all, Scope{Cluster: "east"}, true},
		{"cluster.observed.v1", "east", all, Scope{Cluster: "east"}, true},
		{"catalog.added.v1", "east/ports/own", all, Scope{Cluster: "east"}, true},
		{"catalog.added.v1", "fleet", all, everything, true},
		{"subscription.created.v1", "east/ports/gauge", []events.Kind{events.KindCluster}, everything, false},
		{"access.token-created.v1", "token-1", all, everything, false},
		{"of.a-newer-release.v1", "east/ports/gauge", nil, everything, true},
	} {
		if _, known := events.Lookup(c.typ); !known && c.kinds != nil {
			t.Fatalf("no event type %s exists", c.typ)
		}
		got, ok := touched(model.StreamedEvent{Type: c.typ, Subject: c.subject}, c.kinds)
		if got != c.want || ok != c.ok {
			t.Errorf("%s of %s touches %+v, %v; want %+v, %v", c.typ, c.subject, got, ok, c.want, c.ok)
		}
	}
	for typ, want := range map[events.Type]bool{
		"access.token-created.v1": true, "cluster.labels-changed.v1": true, "of.a-newer-release.v1": true,
		"subscription.created.v1": false,
	} {
		if got := changesRights(model.StreamedEvent{Type: typ}); got != want {
			t.Errorf("%s may change rights: %v", typ, got)
		}
	}
}

// TestDue: a part within another is not read twice, and many parts are read as one.
func TestDue(t *testing.T) {
	t.Parallel()
	var d due
	d.add(Scope{"east", "ports"})
	d.add(Scope{"east", "ports"})
	d.add(Scope{"west", "ports"})
	if len(d.parts) != 2 || d.whole || d.empty() {
		t.Errorf("two parts are %+v", d)
	}
	d.add(Scope{Cluster: "east"})
	d.add(Scope{"east", "tides"})
	if !slices.Equal(d.parts, []Scope{{"west", "ports"}, {Cluster: "east"}}) {
		t.Errorf("a cluster and a namespace are %+v", d)
	}
	for i := range maxParts {
		d.add(Scope{"west", fmt.Sprint(i)})
	}
	if !d.whole || len(d.parts) > maxParts {
		t.Errorf("many parts are %+v", d)
	}
}
