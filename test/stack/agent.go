package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// LetAgents lets the agents of clusters in, as an operator with users in the server's configuration does: NATS is
// started again with these users more.
func (s *Stack) LetAgents(ctx context.Context, tenant string, clusterIDs ...string) error {
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

// AgentSeed is the NKey of an agent that LetAgents let in.
func (s *Stack) AgentSeed(clusterID string) string {
	return s.secrets.nats[natsauth.AgentName(clusterID)]
}

// LaunchAgent starts an agent under a name, without waiting for it; one that was killed is found where it was. config
// is what chandler cluster agent-config writes.
func (s *Stack) LaunchAgent(name, clusterID, config, kubeconfig string) error {
	if s.ops[name] == "" {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		s.ops[name] = fmt.Sprintf("127.0.0.1:%d", ports[0])
	}
	env := append(os.Environ(),
		"CHANDLER_NATS_URL="+s.NATSURL(), "CHANDLER_NATS_NKEY_SEED="+s.AgentSeed(clusterID),
		"CHANDLER_AGENT_CONFIG="+config, "CHANDLER_KUBECONFIG="+kubeconfig, "CHANDLER_OPS_LISTEN="+s.ops[name],
		"CHANDLER_LOG_FORMAT=text",
	)
	return s.run(name, filepath.Join(s.opts.Bin, "chandler-agent"), nil, env)
}
