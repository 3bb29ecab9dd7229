package protocol

// RPCInstallerAgentConfig is where the installer service is asked what the agent of a cluster is to know:
// AgentConfigQuestion → AgentConfigAnswer. A cluster without an agent is errs.Conflict.
const RPCInstallerAgentConfig = "chandler.rpc.installer.agent-config"

// AgentConfigQuestion asks for the document of an agent (libs/agentconfig).
type AgentConfigQuestion struct {
	Tenant  string `json:"tenant"`
	Cluster string `json:"cluster"` // name
	// Recipient is the public age key of who asks, to which the answer is encrypted.
	Recipient string `json:"recipient"`
}

// AgentConfigAnswer is the answer.
type AgentConfigAnswer struct {
	ClusterID string `json:"clusterId"`
	Sealed    []byte `json:"sealed"` // the document, encrypted
}
