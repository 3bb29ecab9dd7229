// Package agentconfig is what the agent of a cluster knows of its hub and of itself, beside the credential of NATS: one
// document, which the hub makes and the agent reads. It holds a secret: the key that opens configuration values of this
// cluster, and of no other. The package is pure.
package agentconfig

import (
	"bytes"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// Version is that of the document.
const Version = "chandler.agent.v1"

// MaxBytes bounds the document: a dozen keys on their way in or out.
const MaxBytes = 16 << 10

// Config is the document.
type Config struct {
	Version   string `json:"version"`   // Version
	Tenant    string `json:"tenant"`    // of the cluster
	Cluster   string `json:"cluster"`   // name, for people
	ClusterID string `json:"clusterId"` // UUID; another registration of the same name has another one
	// Installation is the id of the hub's, which names its streams.
	Installation string `json:"installation"`
	// HubKeys are the public keys by which the hub is believed, as keys.PublicEntry writes them, the active one first.
	HubKeys []string `json:"hubKeys"`
	// ConfigsKey opens configuration values that the hub sealed for this cluster: configseal.Root.Export. A secret.
	ConfigsKey string `json:"configsKey"`
}

// New makes the document of a cluster; root is what the hub seals configuration values by.
func New(tenant, cluster, clusterID, installation string, hub keys.Accepted, root configseal.Root) (Config, error) {
	key, err := root.Export(tenant, clusterID)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Version: Version, Tenant: tenant, Cluster: cluster, ClusterID: clusterID, Installation: installation,
		ConfigsKey: key,
	}
	for _, k := range hub.Public() {
		c.HubKeys = append(c.HubKeys, keys.PublicEntry(k))
	}
	return c, c.Check()
}

// Parse reads the document. Errors are of kind errs.Invalid, name the field, and never quote the secret.
func Parse(raw []byte) (Config, error) {
	var c Config
	if len(raw) > MaxBytes {
		return c, errs.New(errs.Invalid, "agent configuration: %d bytes, %d are allowed", len(raw), MaxBytes)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&c); err != nil {
		return Config{}, errs.New(errs.Invalid, "agent configuration: it is not the JSON that chandler cluster "+
			"agent-config writes: %v", err)
	}
	return c, c.Check()
}

// Encode writes the document.
func (c Config) Encode() ([]byte, error) {
	raw, err := json.MarshalIndent(c, "", "  ")
	return append(raw, '\n'), errs.Wrap(errs.Internal, err, "encode an agent configuration")
}

// Check reports errs.Invalid for a document that no agent can run with.
func (c Config) Check() error {
	_, badCluster := uuid.Parse(c.ClusterID)
	_, badInstallation := uuid.Parse(c.Installation)
	switch {
	case c.Version != Version:
		return errs.New(errs.Invalid, "agent configuration: version is %.40q, this program reads %q", c.Version, Version)
	case c.Tenant == "":
		return errs.New(errs.Invalid, "agent configuration: tenant is missing")
	case c.Cluster == "":
		return errs.New(errs.Invalid, "agent configuration: cluster is missing")
	case badCluster != nil:
		return errs.New(errs.Invalid, "agent configuration: clusterId %.60q is not a UUID", c.ClusterID)
	case badInstallation != nil:
		return errs.New(errs.Invalid, "agent configuration: installation %.60q is not a UUID", c.Installation)
	}
	if _, err := c.Hub(); err != nil {
		return err
	}
	_, err := c.Configs()
	return err
}

// Hub are the keys by which the hub is believed.
func (c Config) Hub() (keys.Accepted, error) {
	a, err := keys.ParseAccepted(c.HubKeys)
	return a, errs.Wrap(errs.Invalid, err, "agent configuration: hubKeys")
}

// Configs opens configuration values of the cluster.
func (c Config) Configs() (configseal.Key, error) {
	k, err := configseal.ParseKey(c.Tenant, c.ClusterID, c.ConfigsKey)
	return k, errs.Wrap(errs.Invalid, err, "agent configuration: configsKey")
}
