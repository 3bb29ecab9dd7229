package clusters_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestReader: a report without a version keeps the last one, and an older holder does not take the epoch back; a
// cluster that is registered again begins anew; a message is shown while there is a reason; other tenants see nothing.
func TestReader(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, clusters.Projection())
	r := &clusters.Reader{Pool: e.Pool}
	fold := func(name string, p ...events.Payload) { e.Fold(events.KindCluster, name, p...) }
	registered := func(name string) events.ClusterRegistered {
		return events.ClusterRegistered{Name: name, Labels: map[string]string{"site": name}}
	}
	fold("harbour", registered("harbour"),
		events.ClusterObserved{State: "Connected", KubernetesVersion: "v1.34.1", HolderEpoch: 7},
		events.ClusterObserved{State: "Unreachable", Reason: "NoReport", HolderEpoch: 3})
	fold("pier", registered("pier"))
	facts := events.ClusterFacts{Distribution: "k3s", Nodes: 3, Architectures: map[string]int64{"amd64": 3}}
	fold("harbour", events.ClusterFactsObserved{Facts: facts})
	e.Exec(`insert into installer.messages (tenant, kind, subject, message)
		values ('default', 'cluster', 'harbour', 'nobody answers'), ('default', 'cluster', 'pier', 'of long ago')
		on conflict do nothing`)
	get := func(name string) model.Cluster {
		t.Helper()
		c, err := r.Get(t.Context(), viewtest.Ann, name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := get("harbour"); c.KubernetesVersion != "v1.34.1" || c.HolderEpoch != 7 || c.State != "Unreachable" ||
		c.Message != "nobody answers" {
		t.Errorf("observed: %+v", c)
	}
	if c := get("harbour"); c.Facts == nil || !events.ClusterFacts(*c.Facts).Equal(facts) || get("pier").Facts != nil {
		t.Errorf("facts: %+v", c.Facts)
	}
	ends := func(name, what string, want time.Time) {
		t.Helper()
		if c := get(name); want.IsZero() != (c.CredentialEndsAt == nil) ||
			c.CredentialEndsAt != nil && !c.CredentialEndsAt.Equal(want) {
			t.Errorf("%s: the credential ends at %v, want %v", what, c.CredentialEndsAt, want)
		}
	}
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	ends("harbour", "one that does not say", time.Time{})
	fold("harbour", events.ClusterCredentialReplaced{Ends: at})
	ends("harbour", "replaced", at)
	fold("harbour", events.ClusterCredentialRotated{Expires: at.Add(time.Hour)})
	ends("harbour", "rotated", at.Add(time.Hour))
	fold("harbour", events.ClusterCredentialReplaced{})
	ends("harbour", "replaced by one that does not say", time.Time{})
	fold("quay", events.ClusterRegistered{Name: "quay", Ends: at})
	ends("quay", "registered", at)
	fold("quay", events.ClusterRemoved{Name: "quay"})
	if c := get("pier"); c.Message != "" {
		t.Errorf("a cluster without trouble has the message %q", c.Message)
	}
	e.Exec(`insert into installer.messages (tenant, kind, subject, message)
		values ('default', 'cluster-reports', 'harbour', 'a flood'), ('default', 'cluster-reports', 'pier', 'a flood')`)
	if at, by := get("harbour").Message, get("pier").Message; at != "nobody answers" || by != "a flood" {
		t.Errorf("of clusters with a flood of reports people are told %q (in trouble) and %q", at, by)
	}
	err := e.Pool.TenantTx(t.Context(), viewtest.Ann.Tenant, func(tx pgx.Tx) error {
		none, err := clusters.Observed(t.Context(), tx, viewtest.Ann.Tenant, "none")
		if none != (events.ClusterObserved{}) {
			t.Errorf("observed of no cluster: %+v", none)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	names := func(who model.Caller, f model.ClusterFilter) (names []string) {
		t.Helper()
		f.Limit = 9
		items, _, err := r.List(t.Context(), who, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range items {
			names = append(names, c.Name)
		}
		return names
	}
	for _, c := range []struct {
		name string
		who  model.Caller
		f    model.ClusterFilter
		want []string
	}{
		{"all", viewtest.Ann, model.ClusterFilter{}, []string{"harbour", "pier"}},
		{"by state", viewtest.Ann, model.ClusterFilter{State: "Unreachable"}, []string{"harbour"}},
		{
			"by distribution", viewtest.Ann,
			model.ClusterFilter{Choice: model.Choice{FieldSelector: "distribution=k3s"}},
			[]string{"harbour"},
		},
		{
			"not connected yet", viewtest.Ann,
			model.ClusterFilter{State: "Pending", Choice: model.Choice{FieldSelector: "connection=Registered"}},
			[]string{"pier"},
		},
		{"by name", viewtest.Ann, model.ClusterFilter{Name: "pier"}, []string{"pier"}},
		{"by label", viewtest.Ann, model.ClusterFilter{Label: "site=pier"}, []string{"pier"}},
		{
			"behind one", viewtest.Ann,
			model.ClusterFilter{Page: model.Page{After: []string{"harbour"}}},
			[]string{"pier"},
		},
		{"of another tenant", viewtest.Eve, model.ClusterFilter{}, nil},
	} {
		if diff := cmp.Diff(c.want, names(c.who, c.f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	fold("harbour", events.ClusterRemoved{Name: "harbour"})
	if _, err := r.Get(t.Context(), viewtest.Ann, "harbour"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a removed cluster: %v", err)
	}
	fold("harbour", registered("harbour"))
	if c := get("harbour"); c.KubernetesVersion != "" || c.HolderEpoch != 0 || c.State != model.ClusterPending ||
		c.Facts != nil {
		t.Errorf("registered again: %+v", c)
	}
	// The state follows each fact, and says since when: another holder or a version is no news of it.
	fold("pier", events.ClusterObserved{State: "Connected", KubernetesVersion: "v1.34.1", HolderEpoch: 1})
	first := get("pier")
	fold("pier", events.ClusterObserved{State: "Connected", KubernetesVersion: "v1.34.2", HolderEpoch: 2})
	if c := get("pier"); c.State != model.ClusterConnected || !c.StateSince.Equal(first.StateSince) ||
		!c.UpdatedAt.After(first.UpdatedAt) {
		t.Errorf("a new holder: %+v, before it %+v", c, first)
	}
	for _, step := range []struct {
		event events.Payload
		want  string
	}{
		{events.ClusterCordoned{}, model.ClusterCordoned},
		{events.ClusterObserved{State: "Connected", Reason: "OLMRunning"}, model.ClusterOLMRunning},
		{events.ClusterObserved{State: "Refused", Reason: "DuplicateCluster"}, model.ClusterHeldElsewhere},
		{events.ClusterUncordoned{}, model.ClusterHeldElsewhere},
		{events.ClusterObserved{State: "Connected"}, model.ClusterConnected},
	} {
		fold("pier", step.event)
		c, found := get("pier"), names(viewtest.Ann, model.ClusterFilter{State: step.want})
		if c.State != step.want || !slices.Contains(found, "pier") {
			t.Errorf("after %+v: %+v, want the state %s, and the filter to find it", step.event, c, step.want)
		}
	}
}
