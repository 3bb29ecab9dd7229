package app_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestGroupThereAndBack: an executor is told of a group with the id of its stream, and what it reports of the group
// stands in that stream, once; another group of the same name begins anew (R-OG §7.1, R-OG-20).
func TestGroupThereAndBack(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	s.Namespace = "quay"
	spec := events.OperatorGroupSpec{Selector: events.LabelSelector{MatchLabels: map[string]string{"sea": "north"}}}
	group := events.OperatorGroupCreated{Cluster: "east", Namespace: "quay", Name: "og", Spec: spec}
	stream := e.one(events.KindOperatorGroup, "east/quay/og", group)
	e.eventually("the group reached the executor", func() bool {
		p, ok := e.plans(s)
		return ok && p.OperatorGroups == 1 && p.OperatorGroup.ID == stream.UUID().String() &&
			p.OperatorGroup.Spec.Selector.MatchLabels["sea"] == "north"
	})
	report := protocol.GroupReport{
		ID: stream.UUID().String(), Name: "og", Targets: []string{"a"},
		ProvidedAPIs: []string{"Gauge.v1.sea.test"}, Conditions: []protocol.GroupCondition{
			{Type: protocol.GroupServiceAccount, Reason: "ServiceAccountNotFound", Message: "no such account"},
		},
	}
	e.report(s, protocol.ScopeReport{Group: &report})
	// the first is of the cluster's own namespace
	want := []string{"operatorgroup.created.v1", "operatorgroup.created.v1", "operatorgroup.observed.v1"}
	e.recorded(events.KindOperatorGroup, want...)
	message := func() (text string) {
		err := e.pools[events.Gateway].QueryRow(t.Context(),
			`select coalesce(max(message), '') from installer_api.messages
			where kind = 'operatorgroup' and subject = 'east/quay/og/OperatorGroupServiceAccount'`).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := message(); got != "no such account" {
		t.Errorf("message %q", got)
	}
	report.Conditions = nil
	e.report(s, protocol.ScopeReport{Group: &report})
	e.recorded(events.KindOperatorGroup, append(want, "operatorgroup.observed.v1")...)
	if got := message(); got != "" {
		t.Errorf("message %q of a condition that ended", got)
	}
	e.one(events.KindOperatorGroup, "east/quay/og", events.OperatorGroupDeleted{})
	e.report(s, protocol.ScopeReport{Group: &report})
	next := e.one(events.KindOperatorGroup, "east/quay/og", group)
	e.eventually("another group of the name", func() bool {
		p,
			_ := e.plans(s)
		return p.OperatorGroup.ID == next.UUID().String()
	})
	e.report(s, protocol.ScopeReport{Group: &report}) // still of the one before
	report.ID = next.UUID().String()
	e.report(s, protocol.ScopeReport{Group: &report})
	e.recorded(events.KindOperatorGroup, append(want, "operatorgroup.observed.v1", "operatorgroup.deleted.v1",
		"operatorgroup.created.v1", "operatorgroup.observed.v1")...)
}
