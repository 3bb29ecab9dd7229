package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// LetAgent lets the agent of a cluster in, as an operator with users in the server's configuration does: NATS is
// started again with one user more.
func (s *Stack) LetAgent(ctx context.Context, tenant, clusterID string) error {
	seed, err := natsconn.NewSeed()
	if err != nil {
		return err
	}
	u := natsauth.AgentUser(tenant, clusterID)
	if u.NKey, err = natsconn.PublicKey(seed); err != nil {
		return err
	}
	s.secrets.nats[u.Name] = seed
	s.agents = append(s.agents, u)
	s.Kill(natsServer)
	return s.StartNATS(ctx)
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
		"CHANDLER_NATS_URL="+s.NATSURL(), "CHANDLER_NATS_NKEY_SEED="+s.secrets.nats[natsauth.AgentName(clusterID)],
		"CHANDLER_AGENT_CONFIG="+config, "CHANDLER_KUBECONFIG="+kubeconfig, "CHANDLER_OPS_LISTEN="+s.ops[name],
		"CHANDLER_LOG_FORMAT=text",
	)
	return s.run(name, filepath.Join(s.opts.Bin, "chandler-agent"), nil, env)
}

// PID is the process of a part that runs.
func (s *Stack) PID(name string) int { return s.running[name].ID().PID }
