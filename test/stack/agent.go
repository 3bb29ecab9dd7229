package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// LetAgents lets the agents of clusters in, as an operator with users in the server's configuration does: NATS is
// started again with these users more.
func (s *Stack) LetAgents(ctx context.Context, tenant string, clusterIDs ...string) error {
	if s.operator != nil {
		return errors.New("NATS is in operator mode, where agents join by tokens")
	}
	for _, id := range clusterIDs {
		seed, err := natsconn.NewSeed()
		if err != nil {
			return err
		}
		u := natsauth.AgentUser(tenant, id)
		if u.NKey, err = natsconn.PublicKey(seed); err != nil {
			return err
		}
		s.secrets.nats[u.Name] = seed
		s.agents = append(s.agents, u)
	}
	s.Kill(natsServer)
	return s.StartNATS(ctx)
}

// Agent is an agent to start. Either it joins by a token, or it has Config and a user that LetAgents let in.
type Agent struct {
	Name       string // of the process; one that was killed is found where it was
	Kubeconfig string // of its cluster
	Join       string // join.json of the manifest of chandler cluster join-token
	Config     string // what chandler cluster agent-config writes
	ClusterID  string // that of Config
	NATSURL    string // "" is where the stack has NATS; who joins is told
}

// LaunchAgent starts an agent, without waiting for it.
func (s *Stack) LaunchAgent(a Agent) error {
	if s.ops[a.Name] == "" {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		s.ops[a.Name] = fmt.Sprintf("127.0.0.1:%d", ports[0])
	}
	env := append(os.Environ(), "CHANDLER_KUBECONFIG="+a.Kubeconfig, "CHANDLER_OPS_LISTEN="+s.ops[a.Name],
		"CHANDLER_LOG_FORMAT=text")
	if a.Join != "" {
		env = append(env, "CHANDLER_AGENT_JOIN="+a.Join)
	} else {
		env = append(env, "CHANDLER_NATS_URL="+cmp.Or(a.NATSURL, s.NATSURL()), "CHANDLER_AGENT_CONFIG="+a.Config,
			"CHANDLER_NATS_NKEY_SEED="+s.secrets.nats[natsauth.AgentName(a.ClusterID)])
	}
	return s.run(a.Name, filepath.Join(s.opts.Bin, "chandler-agent"), nil, env)
}
