package namelookup

import (
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// MaxPlans is how many plans of one name are looked at: an error that lists more helps nobody.
const MaxPlans = 20

// RulePlan is the rule that a plan is named so that one alone is meant.
const RulePlan = "plan-name"

// Plan is an install plan that has a name.
type Plan struct{ ID, Cluster, Namespace string }

// FindPlan returns the id of the one plan of a name; cluster and namespace say where it was looked for, "" anywhere.
func FindPlan(name, cluster, namespace string, found []Plan) (id string, err error) {
	switch len(found) {
	case 1:
		return found[0].ID, nil
	case 0:
		return "", errs.New(errs.NotFound, "there is no install plan %q%s that you may see", name,
			place(cluster, namespace)).At("path.id", RulePlan)
	}
	places := make([]string, len(found))
	for i, p := range found {
		places[i] = p.Cluster + "/" + p.Namespace + " (" + p.ID + ")"
	}
	return "", errs.New(errs.Conflict, "there are several install plans %q%s: %s; say which", name,
		place(cluster, namespace), strings.Join(places, ", ")).At("path.id", RulePlan)
}

func place(cluster, namespace string) string {
	out := ""
	if namespace != "" {
		out += " in namespace " + namespace
	}
	if cluster != "" {
		out += " of cluster " + cluster
	}
	return out
}
