package protocol

// RPCLogs is the question to the executor of a cluster what pods of an operator have written: LogQuestion → LogAnswer.
const RPCLogs = "logs"

// RPCInstallerLogs is where the installer service is asked the same about a cluster that is known by its name:
// OperatorLogQuestion → LogAnswer.
const RPCInstallerLogs = "chandler.rpc.installer.logs"

// Bounds of an answer about logs.
const (
	// MaxLogBytes bounds the lines of one answer: as base64, which gzip may not make smaller, they fit into a message
	// of NATS, which has 1 MiB by default.
	MaxLogBytes = 512 << 10
	// MaxLogContainers bounds the containers of one answer. Operators have one or two pods of one or two containers.
	MaxLogContainers = 20
	// MaxLogLine bounds one line: runtimes split what containers write into parts of that size.
	MaxLogLine = 16 << 10
	// MaxLogCursor bounds the text that says where an answer ended.
	MaxLogCursor = 2 << 10
)

// LogQuestion asks for what containers of an operator have written.
type LogQuestion struct {
	Namespace string `json:"namespace"`
	CSV       string `json:"csv"`
	// Deployment and Pod choose one of the operator's; "" is all.
	Deployment string `json:"deployment,omitempty"`
	Pod        string `json:"pod,omitempty"`
	// Container is "" for the default one of each pod.
	Container     string `json:"container,omitempty"`
	AllContainers bool   `json:"allContainers,omitempty"`
	// Previous asks for what the container before the last restart has written.
	Previous bool `json:"previous,omitempty"`
	// Tail is the number of last lines of each container; without it all.
	Tail *int64 `json:"tail,omitempty"`
	// SinceSeconds leaves older lines out; 0 leaves out none.
	SinceSeconds int64 `json:"sinceSeconds,omitempty"`
	// After is that of an earlier answer: only what was written since. Tail and SinceSeconds do not count then.
	After string `json:"after,omitempty"`
}

// OperatorLogQuestion is a LogQuestion about a cluster that is known by its name.
type OperatorLogQuestion struct {
	Tenant  string `json:"tenant"`
	Cluster string `json:"cluster"` // name
	LogQuestion
}

// LogAnswer has a part of what the containers have written.
type LogAnswer struct {
	Containers []ContainerLog `json:"containers"`
	// After asks for what follows this answer.
	After string `json:"after"`
	// More says that there is more already.
	More bool `json:"more,omitempty"`
	// LeftOut counts the containers beyond MaxLogContainers, of which nothing is told.
	LeftOut int `json:"leftOut,omitempty"`
	// MorePods says that a Deployment has more pods than the executor looks at, of which nothing is told either.
	MorePods bool `json:"morePods,omitempty"`
}

// ContainerLog is a part of what one container has written.
type ContainerLog struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`
	// Choices are all containers of the pod, where the question chose none of several.
	Choices []string `json:"choices,omitempty"`
	// Lines are whole ones, each with its time (RFC 3339) and a space before it, as the kubelet gives them.
	Lines []byte `json:"lines,omitempty"`
	// Problem is why nothing, or not all, can be told, such as that the container has not started.
	Problem string `json:"problem,omitempty"`
}
