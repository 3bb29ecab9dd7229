package compare

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// everyone are the subjects that stand for all who reach an API server: with or without a name there, and every
// account of every pod.
var everyone = []string{
	"Group system:authenticated", "Group system:unauthenticated", "Group system:serviceaccounts",
	"User system:anonymous",
}

// quietPaths are what people and tools ask of every API server; Kubernetes itself allows most of them to everybody.
var quietPaths = words(`/metrics /metrics/* /healthz /healthz/* /livez /livez/* /readyz /readyz/* /version
	/version/ /api /api/* /apis /apis/* /openapi /openapi/* /.well-known/* /.well-known/openid-configuration
	/openid/v1/jwks`)

// sensitive says why a right deserves a second look: the first of the reasons that holds.
func (r Right) sensitive() string {
	switch {
	case slices.Contains(everyone, r.Holder):
		return GrantedToEveryone
	case r.Role != "":
		return UnknownRole
	case r.URL != "":
		if !quietPaths[r.URL] {
			return ReachesAPIServer
		}
		return r.others()
	}
	for _, d := range dangers {
		if d.holds(r) {
			return d.reason
		}
	}
	return r.others()
}

// others: nothing is the matter with the right itself.
func (r Right) others() string {
	switch {
	case r.URL == "" && r.wildcard():
		return Wildcard
	case r.Holder != "":
		return GrantedToOthers
	}
	return ""
}

// danger is a reason with the rights to which it applies: any of the verbs on any of the resources of a group.
type danger struct {
	reason    string
	group     string
	resources string
	verbs     string
}

// dangers in the order in which they count.
var dangers = []danger{
	{Everything, "*", "*", "*"},
	{EscalatesRights, rbacv1.GroupName, "roles clusterroles", "escalate bind"},
	{
		EscalatesRights, rbacv1.GroupName, "roles clusterroles rolebindings clusterrolebindings",
		"create update patch",
	},
	{EscalatesRights, "", "users groups serviceaccounts", "impersonate"},
	{EscalatesRights, "authentication.k8s.io", "*/* uids", "impersonate"},
	{EscalatesRights, "", "serviceaccounts/token", "create"},
	{
		ApprovesCertificates, "certificates.k8s.io",
		"certificatesigningrequests/approval certificatesigningrequests/status signers",
		"create update patch approve sign attest",
	},
	{ReadsSecrets, "", "secrets", "get list watch"},
	{
		RunsInPods, "", "pods/exec pods/attach pods/portforward pods/proxy services/proxy pods/ephemeralcontainers " +
			"nodes/proxy", "create get update patch",
	},
	{
		ChangesAdmission, "admissionregistration.k8s.io", "mutatingwebhookconfigurations " +
			"validatingwebhookconfigurations mutatingadmissionpolicies validatingadmissionpolicies " +
			"mutatingadmissionpolicybindings validatingadmissionpolicybindings", "create update patch delete",
	},
	{ServesAPIs, "apiregistration.k8s.io", "apiservices", "create update patch"},
	{LiftsPodSecurity, "security.openshift.io", "securitycontextconstraints", "use create update patch"},
	{LiftsPodSecurity, "policy", "podsecuritypolicies", "use create update patch"},
	{LiftsPodSecurity, "", "namespaces", "update patch"},
	{ChangesNodes, "", "nodes nodes/status persistentvolumes", "create update patch delete"},
	{ChangesChandler, "chandler-fleet.io", "*", "create update patch delete deletecollection"},
}

// holds reports whether a right is one of a danger. A wildcard is every resource, and "*/exec" the exec of everything.
func (d danger) holds(r Right) bool {
	if d.reason == Everything {
		return r.Group == "*" && r.Resource == "*" && has(r.Verbs, "*")
	}
	group := r.Group == "*" || r.Group == d.group || d.group == "chandler-fleet.io" &&
		strings.HasSuffix(r.Group, "."+d.group)
	resource := func(want string) bool {
		_, sub, ok := strings.Cut(want, "/")
		return r.Resource == "*" || r.Resource == want || ok && r.Resource == "*/"+sub || d.resources == "*" ||
			want == "*/*" && strings.Contains(r.Resource, "/")
	}
	verb := func(want string) bool { return has(r.Verbs, want) }
	return group && slices.ContainsFunc(strings.Fields(d.resources), resource) &&
		slices.ContainsFunc(strings.Fields(d.verbs), verb)
}

// wildcard: what a star takes in is more with every kind that comes to a cluster.
func (r Right) wildcard() bool {
	return r.Group == "*" || r.Resource == "*" && bundle.Reserved(r.Group)
}
