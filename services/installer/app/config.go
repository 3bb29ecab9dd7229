package app

import (
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/ageplugin"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/keys/sshagent"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/service"
)

// defaultCapacity is what a replica with 1 GB is sized for: some 90 clusters with 10 operators each
// (docs/benchmarks.md).
const defaultCapacity = 1000

// defaultAgentAway is as long as a site without a line is to be looked after by itself.
const defaultAgentAway = 30 * 24 * time.Hour

// Config is the installer's configuration.
type Config struct {
	service.Config
	Identity string // age identities that open kubeconfigs, the active one first
	GrantKey string // Ed25519 keys that sign grants, the active one first: see keys.ParseSigning
	// GrantAgent is the Unix socket of the agent that has keys of GrantKey: see sshagent.Entry.
	GrantAgent string
	// Bodies are the keys of what it reads: configurations, annotations and sources of catalogs.
	Bodies  bodies.Secrets
	Streams string // bus.StreamSettings in JSON
	// Capacity is the weight of clusters whose executors this replica runs.
	Capacity int
	// LocalClusters lets clusters be on this machine, at loopback: demos and tests have them there.
	LocalClusters bool
	// AgentAway is for how long agents go on without hearing from the hub.
	AgentAway time.Duration
	// NATSAgents is a natsjwt.Authority, by which agents are let in; "" where NATS is not in operator mode.
	NATSAgents string
	// AgentNATSURL is where agents reach NATS; "" is where the installer does.
	AgentNATSURL string
	Retention    service.Retention
	Holder       string // name of this process slot in clusters' leases; "" is host and ops address
}

// Settings declares the settings.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.Secret(&c.Identity, "credentials-identity", "age identities (AGE-SECRET-KEY-1…) that open stored kubeconfigs, with commas; what is stored is encrypted to the "+
		"first")
	s.Secret(&c.GrantKey, "grant-key", "Ed25519 keys that sign grants, with commas: seeds of 32 bytes in base64, the active one first; "+
		"others are still accepted, of which public:<base64> is enough")
	s.String(&c.GrantAgent, "grant-agent", "",
		"Unix socket of the agent (protocol of ssh-agent) that has the keys of CHANDLER_GRANT_KEY which begin with "+
			sshagent.Prefix)
	c.Bodies.Of("installer").Declare(s.Secret)
	s.String(&c.Streams, "nats-streams", "", "replicas, placement and bounds of the streams, as JSON")
	s.Int(&c.Capacity, "executor-capacity", defaultCapacity,
		"weight of the clusters whose executors this replica runs: each has 1, and 1 for each operator; 0 is any")
	s.Bool(&c.LocalClusters, "clusters-on-this-machine", false,
		"serve clusters whose API server is at loopback; otherwise their kubeconfigs are refused, since any service of this machine is there")
	s.Duration(&c.AgentAway, "agent-away", defaultAgentAway,
		"for how long the agent of a cluster goes on without hearing from the hub; a stop of effects reaches it no sooner")
	s.Secret(&c.NATSAgents, "nats-agents",
		"what lets agents in on a NATS server in operator mode: agents.json of chandler keys nats --jwt")
	s.String(&c.AgentNATSURL, "agent-nats-url", "", "URLs at which agents reach NATS; CHANDLER_NATS_URL without it")
	c.Retention.Settings(s)
	s.String(&c.Holder, "holder", "",
		"name of this process in clusters' leases; unique, and best the same after a restart")
}

// checkAway refuses what agents would not take.
func (c *Config) checkAway() error {
	if c.AgentAway < 0 || c.AgentAway > protocol.GoAheadMaxAway {
		return errs.New(errs.Invalid, "CHANDLER_AGENT_AWAY %s is not between 0 and %s", c.AgentAway,
			protocol.GoAheadMaxAway).At("agent-away", "")
	}
	return nil
}

// agentURL is where agents reach NATS. What a URL says of this service is not for them.
func (c *Config) agentURL() string {
	if c.AgentNATSURL != "" {
		return c.AgentNATSURL
	}
	var list []string
	for text := range strings.SplitSeq(c.NATS.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil {
			u.User = nil
			list = append(list, u.String())
		}
	}
	return strings.Join(list, ",")
}

// keys parses the secrets. Errors never quote them.
func (c *Config) keys() (seal.Identities, keys.Signing, error) {
	id, err := seal.ParseIdentities(c.Identity, ageplugin.Open)
	if err != nil {
		return nil, keys.Signing{}, errs.New(errs.Invalid, "CHANDLER_CREDENTIALS_IDENTITY: %v", err).
			At("credentials-identity", "")
	}
	signing, err := keys.ParseSigning(c.GrantKey, sshagent.Open(c.GrantAgent))
	if err != nil {
		return nil, keys.Signing{}, errs.New(errs.Invalid, "CHANDLER_GRANT_KEY: %v", err).At("grant-key", "")
	}
	if _, ok := signing.Active.(*sshagent.Signer); ok && c.GrantAgent == "" {
		return nil, keys.Signing{}, errs.New(errs.Invalid, "CHANDLER_GRANT_AGENT is not set: the active key of "+
			"CHANDLER_GRANT_KEY is that of an agent, want its Unix socket").At("grant-agent", "")
	}
	return id, signing, nil
}

// holder names the process slot. Without a setting it is the host (a pod's name) and the address of the
// ops listener, which no other process has at the same time.
func (c *Config) holder(opsAddr string) (string, error) {
	if c.Holder != "" {
		return c.Holder, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", errs.Wrap(errs.Internal, err, "name of this host")
	}
	return name + "/" + opsAddr, nil
}

// secretKey is what an age identity begins with that holds its secret itself.
const secretKey = "AGE-SECRET-KEY-1"

// sealing is what configuration values are sealed by on their way to executors and in clusters. It is derived from the
// identities, which every replica has, so that a value that is sealed in a cluster is opened after any hand-over. One
// whose key is elsewhere holds no secret: then another is needed beside it.
func (c *Config) sealing() (configseal.Root, error) {
	var secrets [][]byte
	for _, e := range keys.Entries(c.Identity) {
		if strings.HasPrefix(e, secretKey) {
			secrets = append(secrets, []byte(e))
		}
	}
	root, err := configseal.NewRoot(secrets...)
	if err != nil {
		return root, errs.New(errs.Invalid, "CHANDLER_CREDENTIALS_IDENTITY: %v: one identity has to be %s…", err,
			secretKey).At("credentials-identity", "")
	}
	return root, nil
}
