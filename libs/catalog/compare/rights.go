package compare

import (
	"cmp"
	"slices"
	"strings"
)

// Where a right holds.
const (
	ScopeCluster   = "Cluster"
	ScopeNamespace = "Namespace" // each target namespace of the operator group
)

// Right is what an operator, or who else the bundle names, may do with one resource.
type Right struct {
	Scope string `json:"scope"`
	// Holder is who has it, such as "Group system:authenticated" or "ServiceAccount ns/name"; "" is the operator.
	// "ClusterRole view" is whoever has that role.
	Holder string `json:"holder,omitempty"`
	// Role is one that the bundle does not bring: what it allows is not known, and counts as everything.
	Role     string   `json:"role,omitempty"`
	Group    string   `json:"group,omitempty"`
	Resource string   `json:"resource,omitempty"`
	Name     string   `json:"name,omitempty"` // "" is every name
	URL      string   `json:"url,omitempty"`  // a path that is no resource
	Verbs    []string `json:"verbs"`
	// Sensitive says why somebody should look twice; "" where there is no such reason.
	Sensitive string `json:"sensitive,omitempty"`
}

// Reasons to look twice at a right.
const (
	GrantedToEveryone = "GrantedToEveryone" // who has it is everybody who reaches the API server
	Everything        = "Everything"        // all verbs on all resources
	UnknownRole       = "UnknownRole"       // it may be everything
	EscalatesRights   = "EscalatesRights"   // can give itself or others more rights
	ReadsSecrets      = "ReadsSecrets"      // sees credentials
	RunsInPods        = "RunsInPods"        // runs programs in containers of others
	ChangesAdmission  = "ChangesAdmission"  // sees and changes what others write
	// ApprovesCertificates can make itself a user of the API server, or a node.
	ApprovesCertificates = "ApprovesCertificates"
	ServesAPIs           = "ServesAPIs" // answers for the API server
	ChangesNodes         = "ChangesNodes"
	LiftsPodSecurity     = "LiftsPodSecurity" // changes what pods may do in a namespace
	ReachesAPIServer     = "ReachesAPIServer" // paths that are no resources, beside those of health and metrics
	ChangesChandler      = "ChangesChandler"  // what Chandler remembers in a cluster
	Wildcard             = "Wildcard"         // all resources of Kubernetes' own, or of groups that are yet to come
	GrantedToOthers      = "GrantedToOthers"  // who has it is not the operator
)

// atom is one right of one verb.
type atom struct{ scope, holder, role, group, resource, name, url, verb string }

// gained returns what rules allow that others did not, verbs of one resource together, sorted.
func gained(others, rules []scopedRule) []Right {
	byPlace := map[atom][]string{}
	left := MaxRights
	for _, r := range rules {
		if slices.ContainsFunc(others, func(o scopedRule) bool { return same(o, r) }) {
			continue
		}
		for _, a := range r.atoms(&left) {
			if slices.ContainsFunc(others, func(o scopedRule) bool { return o.covers(a) }) {
				continue
			}
			verb := a.verb
			a.verb = ""
			byPlace[a] = append(byPlace[a], verb)
		}
	}
	out := make([]Right, 0, len(byPlace))
	for a, verbs := range byPlace {
		slices.Sort(verbs)
		r := Right{
			Scope: a.scope, Holder: a.holder, Role: a.role, Group: a.group, Resource: a.resource, Name: a.name,
			URL: a.url, Verbs: slices.Compact(verbs),
		}
		r.Sensitive = r.sensitive()
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Role, b.Role),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.URL, b.URL))
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

func same(a, b scopedRule) bool {
	return a.scope == b.scope && a.holder == b.holder && a.role == b.role && slices.Equal(a.rule.Verbs, b.rule.Verbs) &&
		slices.Equal(a.rule.APIGroups, b.rule.APIGroups) &&
		slices.Equal(a.rule.Resources, b.rule.Resources) && slices.Equal(a.rule.ResourceNames, b.rule.ResourceNames) &&
		slices.Equal(a.rule.NonResourceURLs, b.rule.NonResourceURLs)
}

// atoms takes a rule apart. Past the bound a rule counts as everything that it could be: a hostile one
// must look worse, never harmless.
func (r scopedRule) atoms(left *int) []atom {
	if r.role != "" {
		return []atom{{scope: r.scope, holder: r.holder, role: r.role, group: "*", resource: "*", verb: "*"}}
	}
	names := r.rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	n := len(r.rule.Verbs) * (len(r.rule.APIGroups)*len(r.rule.Resources)*len(names) + len(r.rule.NonResourceURLs))
	if n > *left {
		return []atom{{scope: r.scope, holder: r.holder, group: "*", resource: "*", verb: "*"}}
	}
	*left -= n
	out := make([]atom, 0, n)
	for _, verb := range r.rule.Verbs {
		for _, g := range r.rule.APIGroups {
			for _, res := range r.rule.Resources {
				for _, name := range names {
					out = append(out, atom{
						scope: r.scope, holder: r.holder, group: g, resource: res, name: name, verb: verb,
					})
				}
			}
		}
		for _, u := range r.rule.NonResourceURLs {
			out = append(out, atom{scope: r.scope, holder: r.holder, url: u, verb: verb})
		}
	}
	return out
}

// covers reports whether a rule allows what an atom asks, with the wildcards of RBAC. A right in the
// whole cluster holds in every namespace, too.
func (r scopedRule) covers(a atom) bool {
	switch {
	case r.holder != a.holder || r.scope != a.scope && r.scope != ScopeCluster:
		return false
	case r.role != "" || a.role != "": // what a role allows is not known: of two, neither holds the other
		return r.role == a.role
	case !has(r.rule.Verbs, a.verb):
		return false
	}
	if a.url != "" {
		return slices.ContainsFunc(r.rule.NonResourceURLs, func(u string) bool {
			prefix, wild := strings.CutSuffix(u, "*")
			return u == a.url || wild && strings.HasPrefix(a.url, prefix)
		})
	}
	if !has(r.rule.APIGroups, a.group) || len(r.rule.ResourceNames) > 0 &&
		!slices.Contains(r.rule.ResourceNames, a.name) {
		return false
	}
	return has(r.rule.Resources, a.resource) || subresource(r.rule.Resources, a.resource)
}

func has(list []string, want string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, want)
}

// subresource: "*/scale" is the scale of everything.
func subresource(list []string, want string) bool {
	_, sub, ok := strings.Cut(want, "/")
	return ok && slices.Contains(list, "*/"+sub)
}
