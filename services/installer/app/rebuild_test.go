package app_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection/projectiontest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/hub"
)

// TestRebuildBeside: the hub's tables are made anew while it publishes. What comes out is what was there, and what is
// not made of the log, such as the grant of a plan and its message, stays.
func TestRebuildBeside(t *testing.T) {
	t.Parallel()
	e := setup(t)
	east := e.cluster("east")
	e.one(events.KindOperatorGroup, "east/ns/og", events.OperatorGroupMetadataChanged{
		Metadata: events.Metadata{Labels: map[string]string{"team": "harbour"}},
	})
	for _, name := range []string{"etcd", "gone"} {
		e.one(events.KindSubscription, "east/ns/"+name, events.SubscriptionCreated{
			Cluster: "east", Namespace: "ns", Name: name,
			Spec: events.SubscriptionSpec{Package: name, Config: "c1:" + name},
		})
	}
	e.one(events.KindSubscription, "east/ns/gone", events.SubscriptionDeleted{})
	e.one(events.KindCatalog, "harbour", events.CatalogAdded{Name: "harbour", SourceType: "image", Spec: "c1:harbour"})
	e.one(events.KindPolicy, "approval/nights", events.ApprovalPolicySet{Name: "nights"})
	e.one(events.KindCluster, "east", events.ClusterLabelsChanged{Labels: map[string]string{"stage": "test"}})
	e.one(events.KindCluster, "east", events.ClusterJoinTokenIssued{
		Token: "UAAA", Ends: time.Now().Add(time.Hour).UTC(), Accept: events.JoinManual,
	})
	begun, waits := e.propose(east, "etcd.v1", "Automatic", "etcd"), e.propose(east, "etcd.v2", "Automatic", "etcd")
	e.one(events.KindAccess, "fleet", events.EffectsStopped{Reason: "Operator"})
	csv := func(name string, payloads ...events.Payload) {
		subject := "east/ns/" + name
		e.append(events.KindCSV, subject, subject, payloads...)
	}
	csv("old.v1", events.CSVPhaseChanged{
		Cluster: "east", Namespace: "ns", Name: "old.v1", Package: "old", Phase: "Succeeded", Plan: begun,
	}, events.CSVRemoved{Reason: "Replaced"})
	csv("etcd.v1", events.CSVPhaseChanged{
		Cluster: "east", Namespace: "ns", Name: "etcd.v1", Package: "etcd", Phase: "Succeeded", Plan: begun,
	})
	csv("etcd.v1", events.CSVRemovalRequested{Removal: uuid.NewString()})
	e.exec(events.Installer, `insert into installer.holders (tenant, cluster_id, epoch, heard) values ($1, $2, 1, now())
		on conflict (tenant, cluster_id) do update set epoch = excluded.epoch, heard = excluded.heard`,
		events.DefaultTenant, east.ClusterID)
	e.exec(events.Installer, `insert into installer.grants (tenant, plan, cluster_id, until) values ($1, $2, $3, 'infinity')
		on conflict do nothing`, events.DefaultTenant, waits, east.ClusterID)
	e.eventually("the hub is at rest", func() bool { return e.atRest() })
	m := hub.Making(hub.New(hub.Config{
		Pool: e.pools[events.Installer], EventLog: eventlog.New(e.pools[events.Installer]), Key: e.private,
	}))
	var spoil []string
	for _, table := range m.Derived {
		spoil = append(spoil, "delete from installer."+table)
	}
	before, _ := e.plans(east)
	projectiontest.RebuildEqualsLive(t, e.db.Pool(t, "admin"), m, spoil...)
	e.eventually("the hub is at rest again", func() bool { return e.atRest() })
	after, there := e.plans(east)
	if !there || !after.Stopped || !slices.Equal(planIDs(before), planIDs(after)) {
		t.Errorf("published before %+v, after %+v", before, after)
	}
}

func planIDs(s protocol.ScopePlans) (out []string) {
	for _, p := range s.Plans {
		out = append(out, p.ID)
	}
	return out
}

// atRest reports whether the hub has taken and published everything.
func (e *env) atRest() (rest bool) {
	e.t.Helper()
	err := e.pools[events.Installer].QueryRow(e.t.Context(), `select not exists (select from eventlog.appended)
		and not exists (select from installer.dirty) and exists (select from eventlog.checkpoints c, eventlog.sequencer s
		where c.consumer = 'installer.hub' and c.position >= s.position)`).Scan(&rest)
	if err != nil {
		e.t.Fatal(err)
	}
	return rest
}
