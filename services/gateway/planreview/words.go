package planreview

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
)

// reasons say in words why a right or a demand deserves a second look, by the code that package compare gives it.
var reasons = map[string]string{
	compare.GrantedToEveryone:    "whoever reaches the API server has it",
	compare.Everything:           "it may do everything",
	compare.UnknownRole:          "the bundle does not bring this role: what it allows is not known, and may be everything",
	compare.EscalatesRights:      "it can give itself or others more rights, or act as somebody else",
	compare.ReadsSecrets:         "it reads Secrets, and with them credentials",
	compare.RunsInPods:           "it can run commands in containers of others, or reach them",
	compare.ChangesAdmission:     "it can see and change what others write",
	compare.ApprovesCertificates: "it can make itself a user of the API server, or a node",
	compare.ServesAPIs:           "it can answer in the place of the API server",
	compare.ChangesNodes:         "it can change nodes or volumes of the cluster",
	compare.LiftsPodSecurity:     "it can change what pods may do in a namespace",
	compare.ReachesAPIServer:     "it reaches paths of the API server that are no resources",
	compare.ChangesChandler:      "it can change what Chandler keeps in the cluster",
	compare.Wildcard:             "it takes in kinds that are yet to come",
	compare.GrantedToOthers:      "somebody else than the operator gets it",

	WebhookOnPods:              "the API server asks it about pods: it sees, and can change or stop, what others run",
	compare.Unknown:            "this release cannot judge it",
	compare.Privileged:         "a container is privileged: it can do everything that its node can",
	compare.HostNamespace:      "pods share the network, the processes or the IPC of their node",
	compare.HostPath:           "pods mount directories of their node",
	compare.HostPort:           "pods listen on ports of their node",
	compare.HostProbe:          "the kubelet calls a host that the bundle names",
	compare.Capability:         "a container has more capabilities of Linux than by default",
	compare.RunsAsRoot:         "a container runs as root",
	compare.GainsPrivileges:    "a process may get more privileges than its parent has",
	compare.SeccompUnconfined:  "system calls are not filtered",
	compare.AppArmorUnconfined: "AppArmor does not confine a container",
	compare.SELinux:            "it sets options of SELinux",
	compare.ProcMount:          "it sees all of /proc",
	compare.Sysctl:             "it sets parameters of the kernel",
	compare.Runtime:            "it chooses another container runtime or scheduler",
	compare.Priority:           "its pods can displace others",
	compare.Toleration:         "its pods run on nodes that repel others",
	compare.ControlPlane:       "it chooses nodes of the control plane, or a node by name",
	compare.Volume:             "it mounts storage outside its pods",
	compare.Network:            "it joins networks beside that of the cluster",
	compare.ImageRegistry:      "images come from this registry",
	compare.ForeignAccount:     "its pods use a service account that the bundle does not bring",
	compare.AnotherAccount:     "its pods use this service account",
	compare.MountsToken:        "its pods mount a token of their account",
	compare.UsesSecret:         "its pods use a Secret",
	compare.Identity:           "an account gets rights outside the cluster",
	compare.Webhook:            "the API server asks it about what others write",
	compare.ReservedWebhook:    "the API server asks it about objects that rights or the cluster itself rest on",
	compare.ConversionWebhook:  "custom resources cannot be read without it",
	compare.APIService:         "it answers in the place of the API server",
	compare.BuiltinRole:        "it brings a role under a name of Kubernetes' own",
	compare.ExternalTraffic:    "it can be reached from outside the cluster",
	compare.NetworkOfOthers:    "it changes whom pods of others may reach",
	compare.ReadsFiles:         "it has a collector of metrics read files",
	compare.RunsInConsole:      "it runs in the browser of those who use the console",
}

// Reason says in words why a right or a demand deserves a second look; "" for "".
func Reason(code string) string {
	if code == "" {
		return ""
	}
	if text, ok := reasons[code]; ok {
		return text
	}
	return reasons[compare.Unknown]
}

// kinds of verbs that belong together in a sentence.
var (
	reading  = []string{"get", "list", "watch"}
	changing = []string{"create", "update", "patch", "delete"}
)

// verbWords are verbs in words: those of reading and of changing together where all of them are there.
func verbWords(verbs []string) string {
	if slices.Contains(verbs, "*") {
		return "do everything with"
	}
	rest := slices.Clone(verbs)
	var out []string
	for _, group := range []struct {
		word string
		of   []string
	}{{"read", reading}, {"change", changing}} {
		if !slices.ContainsFunc(group.of, func(v string) bool { return !slices.Contains(rest, v) }) {
			out = append(out, group.word)
			rest = slices.DeleteFunc(rest, func(v string) bool {
				return slices.Contains(group.of, v) || group.word == "change" && v == "deletecollection"
			})
		}
	}
	return strings.Join(append(out, rest...), ", ")
}

// resourceWords are a resource in words.
func resourceWords(r compare.Right) string {
	switch {
	case r.URL != "":
		return r.URL
	case r.Resource == "*" && r.Group == "*":
		return "all resources"
	case r.Resource == "*" && r.Group == "":
		return "all resources of Kubernetes' core"
	case r.Resource == "*":
		return "all resources of " + r.Group
	case r.Group == "*":
		return r.Resource + " of every group"
	}
	return strings.TrimSuffix(r.Resource+"."+r.Group, ".")
}

// Words are a right in one sentence, such as "read secrets in all namespaces".
func (p Place) Words(r compare.Right) string {
	where := p.where(r)
	words := verbWords(r.Verbs) + " " + resourceWords(r)
	if r.Name != "" {
		words += " named " + r.Name
	}
	if r.Role != "" {
		words = "whatever " + r.Role + " allows"
	}
	if where != "" {
		words += " " + where
	}
	if r.Holder != "" {
		words += ", for " + r.Holder
	}
	return words
}

// where a right holds, in words; "" for what lies nowhere.
func (p Place) where(r compare.Right) string {
	switch {
	case r.URL != "":
		return ""
	case r.Scope == compare.ScopeCluster:
		return "in all namespaces and of the cluster"
	case !p.Known:
		return "in the namespaces of its operator group, which is not known"
	case p.All:
		return "in all namespaces"
	case len(p.Namespaces) == 0:
		return "in its own namespace, and in those that its operator group will choose"
	}
	return "in " + strings.Join(p.Namespaces, ", ")
}
