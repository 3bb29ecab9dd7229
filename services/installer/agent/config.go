package agent

import (
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/service"
)

// Config is the agent's configuration. It has no database.
type Config struct {
	service.Config
	Agent      string // agentconfig.Config, as the hub wrote it; "" with Join
	Join       string // agentconfig.Join: with it the agent gets the rest from the hub
	Namespace  string // of the Secret where an agent that joins keeps who it is; "" is that of the pod
	Kubeconfig string // "" is the service account of the pod
	Holder     string // name of this process slot in the cluster's Lease; "" is host and ops address
}

// Settings declares the settings.
func (c *Config) Settings(s *service.Settings) {
	c.WithoutDatabase(s)
	s.Secret(&c.Agent, "agent-config", "what chandler cluster agent-config writes: cluster, hub and their keys, as JSON")
	s.Secret(&c.Join, "agent-join", "what chandler cluster join-token writes as join.json: the agent joins by it, and needs neither "+
		"agent-config nor a user of NATS")
	s.String(&c.Namespace, "agent-namespace", "",
		"namespace of the Secret where an agent that joins keeps its keys; that of the pod without it")
	s.Secret(&c.Kubeconfig, "kubeconfig", "kubeconfig of the cluster; without one the service account of the pod")
	s.String(&c.Holder, "holder", "",
		"name of this process in the cluster's Lease; unique, and best the same after a restart")
}

// known is what the hub wrote.
func (c *Config) known() (agentconfig.Config, error) {
	if c.Agent == "" {
		return agentconfig.Config{}, errs.New(errs.Invalid, "CHANDLER_AGENT_CONFIG is not set: want what chandler "+
			"cluster agent-config writes, or its file in CHANDLER_AGENT_CONFIG_FILE, or CHANDLER_AGENT_JOIN_FILE").At("agent-config", "")
	}
	known, err := agentconfig.Parse([]byte(c.Agent))
	return known, errs.Wrap(errs.Invalid, err, "CHANDLER_AGENT_CONFIG")
}

// cluster is how the API server is reached. Errors never quote a kubeconfig.
func (c *Config) cluster() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		return config, errs.Wrap(errs.Invalid, err, "CHANDLER_KUBECONFIG is not set, and this is no pod of a cluster")
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(c.Kubeconfig))
	if err != nil {
		return nil, errs.New(errs.Invalid, "CHANDLER_KUBECONFIG is not a kubeconfig").At("kubeconfig", "")
	}
	return config, nil
}

// holder names the process slot: the host (a pod's name) and the address of the ops listener, which no other process
// has at the same time.
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
