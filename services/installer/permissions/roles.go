package permissions

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// MissingForRoles compares the Roles and ClusterRoles that Chandler itself writes on behalf of an account with what the
// account user holds: every rule of each, where it applies (R-OG-44). The account needs no permission to write them.
func MissingForRoles(roles []render.Object, user string, held Held) (Result, error) {
	p := Plan{Objects: roles}
	brought, err := p.bundledRoles()
	if err != nil {
		return Result{}, err
	}
	c := collector{plan: p, user: user, held: held, seen: map[protocol.MissingPermission]bool{}}
	for _, o := range roles {
		if o.GVK.Group != rbacv1.GroupName || o.GVK.Kind != kindRole && o.GVK.Kind != kindClusterRole {
			continue
		}
		if err := c.rules(o.Namespace, brought[Role{o.Namespace, o.Name}], o); err != nil {
			return Result{}, err
		}
	}
	return c.out.bounded(), nil
}

// bounded is the result in its order and within its bound.
func (r Result) bounded() Result {
	slices.SortFunc(r.Missing, compareMissing)
	if n := len(r.Missing) - MaxMissing; n > 0 {
		r.Missing, r.More = r.Missing[:MaxMissing], r.More+n
	}
	return r
}

// Summary lists what is missing briefly: the verbs of each resource of a namespace together.
func Summary(missing []protocol.MissingPermission) string {
	list := slices.Clone(missing)
	slices.SortFunc(list, func(a, b protocol.MissingPermission) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(resourceName(a), resourceName(b)),
			cmp.Compare(a.Verb, b.Verb))
	})
	var out strings.Builder
	for i, m := range list {
		switch {
		case i > 0 && m.Namespace == list[i-1].Namespace && resourceName(m) == resourceName(list[i-1]):
			out.WriteString("," + m.Verb)
			continue
		case i > 0:
			out.WriteString("; ")
		}
		if i == 0 || m.Namespace != list[i-1].Namespace {
			out.WriteString("in " + cmp.Or(m.Namespace, "the whole cluster") + ": ")
		}
		out.WriteString(resourceName(m) + " " + m.Verb)
	}
	return out.String()
}

// resourceName is a resource as rules name it, or a path.
func resourceName(m protocol.MissingPermission) string {
	if m.URL != "" {
		return m.URL
	}
	text := m.Resource
	if m.Group != "" {
		text += "." + m.Group
	}
	if m.Name != "" {
		text += "/" + m.Name
	}
	return text
}
