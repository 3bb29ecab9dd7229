package eventtext

import (
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

// roleSentence says what somebody may do from then on.
func roleSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.RoleDefined:
		parts := make([]string, len(v.Rules))
		for i, r := range v.Rules {
			parts[i] = strings.Join(r.Verbs, ", ") + " on " + strings.Join(r.Resources, ", ")
		}
		return "role " + v.Name + " defined: " + strings.Join(parts, "; ")
	case events.RoleDeleted:
		return "role " + v.Name + " deleted"
	case events.RoleBindingDefined:
		subjects := make([]string, len(v.Subjects))
		for i, s := range v.Subjects {
			subjects[i] = s.Kind + "/" + s.Name
		}
		return "role " + v.Role + " given to " + strings.Join(subjects, ", ") + scopeText(v.Scope) + " (role binding " +
			v.Name + ")"
	case events.RoleBindingDeleted:
		return "role binding " + v.Name + " deleted"
	default:
		return ""
	}
}

func scopeText(s events.AccessScope) string {
	var parts []string
	add := func(word string, list []string) {
		if len(list) > 0 {
			parts = append(parts, word+" "+strings.Join(list, ", "))
		}
	}
	add("clusters", s.Clusters)
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(s.ClusterLabels)) {
		labels = append(labels, k+"="+s.ClusterLabels[k])
	}
	add("clusters labelled", labels)
	add("namespaces", s.Namespaces)
	add("catalogs", s.Catalogs)
	if len(parts) == 0 {
		return " everywhere"
	}
	return " for " + strings.Join(parts, "; ")
}
