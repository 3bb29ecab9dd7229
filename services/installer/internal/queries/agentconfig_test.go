package queries_test

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestAgentConfigs: what the agent of a cluster is to know comes encrypted to who asks; a cluster that is hosted has no
// agent.
func TestAgentConfigs(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	root, err := configseal.NewRoot([]byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	hub := keys.Accept(d.hub.Public().(ed25519.PublicKey))
	d.Agent = func(tenant, cluster, clusterID string) (agentconfig.Config, error) {
		return agentconfig.New(tenant, cluster, clusterID, registration, hub, root)
	}
	if _, err := d.Pool.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'west', '22222222-2222-5222-8222-222222222222', 's2', 'c1:a')`, events.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	d.serving(d.ServeAgentConfigs)
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity, err := seal.Of(own)
	if err != nil {
		t.Fatal(err)
	}
	about := func(cluster string) protocol.AgentConfigQuestion {
		return protocol.AgentConfigQuestion{
			Tenant: events.DefaultTenant, Cluster: cluster, Recipient: identity.Recipient.String(),
		}
	}
	answer := patient[protocol.AgentConfigAnswer](d, protocol.RPCInstallerAgentConfig, about("east"))
	text, err := seal.Identities{identity}.Open(answer.Sealed, agentconfig.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	got, err := agentconfig.Parse(text)
	if err != nil || got.ClusterID != registration || answer.ClusterID != registration || got.Cluster != "east" {
		t.Errorf("the agent of east is told %s of %s: %v", got.ClusterID, got.Cluster, err)
	}
	wrong := about("east")
	wrong.Recipient = "age1"
	for name, c := range map[string]struct {
		question protocol.AgentConfigQuestion
		kind     errs.Kind
	}{
		"hosted": {about("west"), errs.Conflict}, "unknown": {about("north"), errs.NotFound},
		"no key": {wrong, errs.Invalid},
	} {
		if _, err := put[protocol.AgentConfigAnswer](d, protocol.RPCInstallerAgentConfig, c.question); !errs.Is(
			err, c.kind) {
			t.Errorf("%s: %v, want %s", name, err, c.kind)
		}
	}
}
