package compare

import (
	"cmp"
	"slices"
	"strings"
)

// Demand is one thing that a bundle asks of a cluster beside rights and definitions: of its nodes, of its API server,
// of other accounts. Danger says which.
type Demand struct {
	Danger string `json:"danger"`
	Object string `json:"object"` // Kind name
	Detail string `json:"detail,omitempty"`
}

// Dangers. What cannot be judged is Unknown: it is told, and never taken for nothing.
const (
	Unknown = "Unknown"

	// Of pods and their nodes.

	Privileged         = "Privileged"
	HostNamespace      = "HostNamespace" // of processes, of IPC, of the network
	HostPath           = "HostPath"
	HostPort           = "HostPort"
	HostProbe          = "HostProbe" // the kubelet calls a host that the bundle names
	Capability         = "Capability"
	RunsAsRoot         = "RunsAsRoot"
	GainsPrivileges    = "GainsPrivileges" // a process may get more than its parent has
	SeccompUnconfined  = "SeccompUnconfined"
	AppArmorUnconfined = "AppArmorUnconfined"
	SELinux            = "SELinux"
	ProcMount          = "ProcMount"
	Sysctl             = "Sysctl"
	Runtime            = "Runtime" // another container runtime, another scheduler
	Priority           = "Priority"
	Toleration         = "Toleration"
	ControlPlane       = "ControlPlane" // it chooses nodes of the control plane, or a node by name
	Volume             = "Volume"       // of storage outside the pod
	Network            = "Network"      // networks beside that of the cluster
	ImageRegistry      = "ImageRegistry"

	// Of accounts and what they know.

	ForeignAccount = "ForeignAccount" // that the bundle does not bring
	AnotherAccount = "AnotherAccount" // that the bundle did not name before
	MountsToken    = "MountsToken"
	UsesSecret     = "UsesSecret"
	Identity       = "Identity" // annotations by which clouds and others give an account rights

	// Of the cluster.

	Webhook           = "Webhook"
	ReservedWebhook   = "ReservedWebhook" // it sees or changes what rights rest on
	ConversionWebhook = "ConversionWebhook"
	APIService        = "APIService"
	BuiltinRole       = "BuiltinRole" // it brings a role under a name of Kubernetes' own
	ExternalTraffic   = "ExternalTraffic"
	NetworkOfOthers   = "NetworkOfOthers"
	ReadsFiles        = "ReadsFiles" // of whoever collects metrics
	RunsInConsole     = "RunsInConsole"
)

// mild dangers are what pods commonly leave open, and what comes with every new Deployment.
var mild = words(strings.Join([]string{
	GainsPrivileges, SeccompUnconfined, MountsToken, AnotherAccount, UsesSecret,
}, " "))

// Mild reports a demand that is told behind the others.
func (d Demand) Mild() bool { return mild[d.Danger] }

// First orders what holds before what does not: lists of demands and rights are cut, and begin with what matters.
func First(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Bounds on demands.
const (
	// MaxDemands is how many demands of one bundle are compared; the largest real bundle has some 300.
	MaxDemands = 20_000
	// MaxNewDemands is how many a difference lists; what is more is counted.
	MaxNewDemands = 500
)

// demands are those of one bundle. Those of wide dangers are the same whichever object asks.
type demands struct {
	all   []Demand
	known map[Demand]bool // without the object where the danger is wide
	more  bool            // there are more than are compared
}

var wide = words(ImageRegistry + " " + AnotherAccount)

func (d Demand) key() Demand {
	if wide[d.Danger] {
		d.Object = ""
	}
	return d
}

func (s *demands) add(danger, object, detail string) {
	d := Demand{Danger: danger, Object: object, Detail: short(detail)}
	if len(detail) > maxShown { // two that differ behind what is shown are two
		d.Detail += " " + digestOf(detail)
	}
	k := d.key()
	switch {
	case s.known[k]:
	case len(s.known) >= MaxDemands:
		s.more = true
	default:
		if s.known == nil {
			s.known = map[Demand]bool{}
		}
		s.known[k] = true
		s.all = append(s.all, d)
	}
}

// newly are the demands that another bundle did not have, sorted; more counts what is not listed.
func (s *demands) newly(before *demands) (out []Demand, more int) {
	for _, d := range s.all {
		if !before.known[d.key()] {
			out = append(out, d)
		}
	}
	if s.more {
		out = append(out, Demand{Danger: Unknown, Object: "bundle", Detail: "it asks for more than is compared"})
	}
	slices.SortFunc(out, func(a, b Demand) int {
		return cmp.Or(cmp.Compare(a.Danger, b.Danger), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Detail, b.Detail))
	})
	if len(out) > MaxNewDemands {
		return out[:MaxNewDemands:MaxNewDemands], len(out) - MaxNewDemands
	}
	return out, 0
}
