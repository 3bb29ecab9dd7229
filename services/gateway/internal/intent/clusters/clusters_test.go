package clusters_test

import (
	"context"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const credential = `select count(*) from gateway.credentials where name = 'harbour' and commitment = $1`

// TestRefusedRegisterKeepsTheCredential: a name that is taken is refused, and the credential that the executor
// of the cluster works with stays the one that it was.
func TestRefusedRegisterKeepsTheCredential(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	e.Register("harbour")
	registered, _ := e.Recorded(intenttest.Ann, events.KindCluster, "harbour")[0].Payload.(events.ClusterRegistered)
	if n := e.Count(credential, registered.Credential); n != 1 {
		t.Fatalf("%d credentials with the commitment of the event", n)
	}
	for name, c := range map[string]struct {
		in   model.RegisterCluster
		kind errs.Kind
	}{
		"a name that is taken":  {model.RegisterCluster{Name: "harbour"}, errs.AlreadyExists},
		"no name of Kubernetes": {model.RegisterCluster{Name: "Harbour_1"}, errs.Invalid},
		"a label of another form": {
			model.RegisterCluster{Name: "pier", Labels: map[string]string{"a b": "c"}}, errs.Invalid,
		},
		"a kubeconfig that is bad": {model.RegisterCluster{Name: "pier", Kubeconfig: "[]"}, errs.Invalid},
	} {
		if c.in.Kubeconfig == "" {
			c.in.Kubeconfig = intenttest.Kubeconfig
		}
		if _, err := e.Clusters.Register(t.Context(), intenttest.Ann, c.in); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v, want %s", name, err, c.kind)
		}
	}
	if n := e.Count(`select count(*) from gateway.credentials`); n != 1 || e.Count(credential, registered.Credential) != 1 {
		t.Errorf("%d credentials, and that of the cluster is another one", n)
	}
}

// TestLifeOfACluster: settings that are the same are no event; a credential is erased with its cluster; what is not
// registered, or is another tenant's, is not found.
func TestLifeOfACluster(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	e.Register("harbour")
	configure := func(who model.Caller, in model.ConfigureCluster) error {
		_, err := e.Clusters.Configure(t.Context(), who, "harbour", in)
		return err
	}
	north := "north"
	in := model.ConfigureCluster{
		Mirror: events.MirrorAll, Labels: map[string]*string{"site": &north},
		Taints: map[string]*string{"edge": &north},
	}
	for range 2 { // the second one changes nothing
		if err := configure(intenttest.Ann, in); err != nil {
			t.Fatal(err)
		}
	}
	want := []events.Type{
		events.ClusterRegistered{}.EventType(), events.ClusterConfigured{}.EventType(),
		events.ClusterLabelsChanged{}.EventType(), events.ClusterTaintsChanged{}.EventType(),
	}
	if got := e.Events(intenttest.Ann, events.KindCluster, "harbour"); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if err := configure(intenttest.Ann, model.ConfigureCluster{Mirror: "some"}); !errs.Is(err, errs.Invalid) {
		t.Errorf("an unknown mirror: %v", err)
	}
	if err := configure(intenttest.Eve, in); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant configures it: %v", err)
	}
	replace := model.ReplaceCredentials{Kubeconfig: intenttest.Kubeconfig}
	if _, err := e.Clusters.ReplaceCredentials(t.Context(), intenttest.Ann, "pier", replace); !errs.Is(err,
		errs.NotFound) {
		t.Errorf("credentials of an unknown cluster: %v", err)
	}
	if n := e.Count(`select count(*) from gateway.credentials`); n != 1 {
		t.Errorf("%d credentials are kept, want that of the cluster", n)
	}
	if _, err := e.Clusters.Remove(t.Context(), intenttest.Eve, "harbour"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant removes it: %v", err)
	}
	if _, err := e.Clusters.Remove(t.Context(), intenttest.Ann, "harbour"); err != nil {
		t.Fatal(err)
	}
	if n := e.Count(`select count(*) from gateway.credentials`); n != 0 {
		t.Error("the credential of a removed cluster is kept")
	}
	if _, err := e.Clusters.Remove(t.Context(), intenttest.Ann, "harbour"); !errs.Is(err, errs.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	err := e.In(intenttest.Ann, func(ctx context.Context, u *unit.Work) error {
		return clusters.MustExist(ctx, u, "harbour")
	})
	if !errs.Is(err, errs.NotFound) {
		t.Errorf("a removed cluster exists: %v", err)
	}
}
