package access

import (
	"fmt"
	"regexp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Names of rules that only roles and bindings have.
const (
	RulePattern    = "name-or-prefix"
	RuleVerb       = "verb-of-resource"
	RuleEscalation = "no-more-than-own"
	RuleBuiltIn    = "built-in"
	RuleInUse      = "not-in-use"
	RuleRoleKnown  = "role-known"
	RuleLastAdmin  = "last-administrator"
	RuleSubject    = "subject-name"
	RuleAllowed    = "allowed"
)

const (
	// MaxRoles bounds the roles that a tenant defines: who needs more means a scope.
	MaxRoles = 200
	// MaxBindings bounds the bindings of a tenant. A gateway holds all of them in memory, and a change of one reads
	// all; who needs more binds groups.
	MaxBindings = 2000
	// MaxRules bounds the rules of a role: one for each resource, and some more.
	MaxRules = 50
	// MaxSubjects bounds the subjects of a binding: who needs more binds a group.
	MaxSubjects = 100
	// MaxPatterns bounds each list of a scope: who means more names means a label or a prefix.
	MaxPatterns = 100
	// maxSubject is the length of the name of a group, which others give.
	maxSubject = 253
	// maxPattern is the length of namespace/name.
	maxPattern = rule.MaxLabel + 1 + rule.MaxSubdomain
)

// rePattern is a name, or the beginning of one followed by "*".
var rePattern = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_./]*)?\*?$`)

// reSubject is what others call people and groups: printable, without control characters.
var reSubject = regexp.MustCompile(`^[^\x00-\x1f\x7f]+$`)

func checkRole(name string, rules []events.AccessRule) error {
	var v rule.Violations
	v.DNSSubdomainName("path.name", name)
	switch {
	case len(rules) == 0:
		v.Addf("/rules", rule.Required, "/rules is empty: a role allows something")
	case len(rules) > MaxRules:
		v.Addf("/rules", rule.MaxItems, "/rules has %d entries, %d are allowed", len(rules), MaxRules)
		return v.Err()
	}
	for i, r := range rules {
		checkRule(&v, fmt.Sprintf("/rules/%d", i), r)
	}
	return v.Err()
}

// checkRule wants that every verb is known to one of the resources at least, and every resource knows one of the verbs:
// a slip in a name would allow nothing, silently.
func checkRule(v *rule.Violations, at string, r events.AccessRule) {
	if len(r.Verbs) == 0 || len(r.Resources) == 0 {
		v.Addf(at, rule.Required, "%s needs verbs and resources", at)
		return
	}
	one := permissions([]events.AccessRule{r})
	verbs, resources := map[string]bool{string(Every): true}, map[string]bool{string(All): true}
	for p := range one {
		verbs[string(p.verb)], resources[string(p.resource)] = true, true
	}
	for i, x := range r.Resources {
		if !resources[x] {
			v.Addf(fmt.Sprintf("%s/resources/%d", at, i), RuleVerb,
				"%s/resources/%d is %q, which is no resource that knows one of the verbs: %s", at, i, x, choices(x))
		}
	}
	for i, x := range r.Verbs {
		if !verbs[x] {
			v.Addf(fmt.Sprintf("%s/verbs/%d", at, i), RuleVerb,
				"%s/verbs/%d is %q, which none of the resources knows", at, i, x)
		}
	}
}

func choices(resource string) string {
	if verbs := VerbsOf(Resource(resource)); len(verbs) > 0 {
		return fmt.Sprintf("it knows %v", verbs)
	}
	return fmt.Sprintf("want one of %v", AllResources())
}

func checkBinding(b events.RoleBindingDefined) error {
	var v rule.Violations
	v.DNSSubdomainName("path.name", b.Name)
	v.DNSSubdomainName("/role", b.Role)
	switch {
	case len(b.Subjects) == 0:
		v.Addf("/subjects", rule.Required, "/subjects is empty: a binding gives somebody a role")
	case len(b.Subjects) > MaxSubjects:
		v.Addf("/subjects", rule.MaxItems, "/subjects has %d entries, %d are allowed: bind a group", len(b.Subjects),
			MaxSubjects)
		return v.Err()
	}
	for i, s := range b.Subjects {
		at := fmt.Sprintf("/subjects/%d", i)
		v.OneOf(at+"/kind", s.Kind, KindUser, KindGroup, KindServiceAccount)
		if len(s.Name) > maxSubject || !reSubject.MatchString(s.Name) {
			v.Addf(at+"/name", RuleSubject, "%s/name must have 1 to %d characters, none of them a control character", at,
				maxSubject)
		}
	}
	CheckScope(&v, b.Scope)
	return v.Err()
}

// CheckScope checks the form of a scope, which stands at /scope of the input.
func CheckScope(v *rule.Violations, s events.AccessScope) {
	for _, l := range []struct {
		field string
		list  []string
	}{{"clusters", s.Clusters}, {"namespaces", s.Namespaces}, {"catalogs", s.Catalogs}} {
		at := "/scope/" + l.field
		if len(l.list) > MaxPatterns {
			v.Addf(at, rule.MaxItems, "%s has %d entries, %d are allowed", at, len(l.list), MaxPatterns)
			continue
		}
		for i, p := range l.list {
			if p == "" || len(p) > maxPattern || !rePattern.MatchString(p) {
				v.Addf(fmt.Sprintf("%s/%d", at, i), RulePattern,
					"%s/%d is %q: want a name, or the beginning of names followed by '*'", at, i, p)
			}
		}
	}
	v.Labels("/scope/clusterLabels", s.ClusterLabels)
}
