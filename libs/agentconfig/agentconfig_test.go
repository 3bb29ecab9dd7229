package agentconfig_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

const (
	clusterID    = "5b5f3e0e-6d0a-5b5c-9d0e-1f1a6f0c9a11"
	installation = "0193e6a0-0000-7000-8000-000000000001"
)

// TestADocument: what the hub writes the agent reads: it believes the hub's keys, and opens what was sealed for its
// cluster.
func TestADocument(t *testing.T) {
	t.Parallel()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	root, err := configseal.NewRoot(bytes.Repeat([]byte("s"), 32))
	if err != nil {
		t.Fatal(err)
	}
	made, err := agentconfig.New("default", "east", clusterID, installation, keys.Accept(public), root)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := agentconfig.Parse(raw)
	if diff := cmp.Diff(made, got); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	hub, err := got.Hub()
	signature, errSign := keys.Sign(key, []byte("text"))
	if err != nil || errSign != nil || !hub.Verify([]byte("text"), signature) {
		t.Errorf("the hub's key is not believed: %v %v", err, errSign)
	}
	own, err := root.For("default", clusterID)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := own.Seal("c1:a", json.RawMessage(`"value"`))
	if err != nil {
		t.Fatal(err)
	}
	opens, err := got.Configs()
	if err != nil {
		t.Fatal(err)
	}
	if value, err := opens.Open(sealed); err != nil || string(value) != `"value"` {
		t.Errorf("opened %s: %v", value, err)
	}

	for field, change := range map[string]func(*agentconfig.Config){
		"version":      func(c *agentconfig.Config) { c.Version = "2" },
		"tenant":       func(c *agentconfig.Config) { c.Tenant = "" },
		"cluster":      func(c *agentconfig.Config) { c.Cluster = "" },
		"clusterId":    func(c *agentconfig.Config) { c.ClusterID = "east" },
		"installation": func(c *agentconfig.Config) { c.Installation = "" },
		"hubKeys":      func(c *agentconfig.Config) { c.HubKeys = []string{"public:AAAA"} },
		"configsKey":   func(c *agentconfig.Config) { c.ConfigsKey += "!" },
	} {
		bad := made
		change(&bad)
		raw, err := bad.Encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = agentconfig.Parse(raw)
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), field) ||
			strings.Contains(err.Error(), made.ConfigsKey) {
			t.Errorf("with a wrong %s: %v", field, err)
		}
	}
	for _, bad := range []string{"", "[]", strings.Repeat(" ", agentconfig.MaxBytes+1)} {
		if _, err := agentconfig.Parse([]byte(bad)); !errs.Is(err, errs.Invalid) {
			t.Errorf("Parse of %d bytes: %v", len(bad), err)
		}
	}
}
