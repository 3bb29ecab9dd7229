package csv

import (
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// Statuses of a dependent (R-CSV-5).
const (
	Satisfied    = "Satisfied"
	NotSatisfied = "NotSatisfied"
)

// Dependent is one rule that a service account must hold.
type Dependent struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// Accounts returns the service accounts that the permissions name, sorted, each once.
func Accounts(spec bundle.CSVSpec) []string {
	var names []string
	for _, p := range append(slices.Clone(spec.Install.Spec.Permissions), spec.Install.Spec.ClusterPermissions...) {
		names = append(names, p.ServiceAccountName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Scopes returns the namespaces in which it must be known what an account may do: the targets where it has
// permissions, "" (the whole cluster) where it has cluster permissions.
func Scopes(spec bundle.CSVSpec, account string, targets []string) []string {
	of := func(p bundle.Permissions) bool { return p.ServiceAccountName == account && len(p.Rules) > 0 }
	var scopes []string
	if slices.ContainsFunc(spec.Install.Spec.Permissions, of) {
		scopes = append(scopes, targets...)
	}
	if slices.ContainsFunc(spec.Install.Spec.ClusterPermissions, of) {
		scopes = append(scopes, "")
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

func checkAccounts(spec bundle.CSVSpec, f Facts) []Requirement {
	var rows []Requirement
	for _, name := range Accounts(spec) {
		r := Requirement{Version: "v1", Kind: "ServiceAccount", Name: name, Status: Present}
		a, ok := f.Accounts[name]
		r.UUID = a.UID
		switch {
		case !ok:
			r.Status, r.Message = NotPresent, "Service account does not exist"
		case a.ForeignOwner != "":
			r.Status, r.Message = PresentNotSatisfied, "Service account is owned by another ClusterServiceVersion"
		default:
			r.Dependents = rulesOf(spec, name, a, f.Targets)
			if slices.ContainsFunc(r.Dependents, func(d Dependent) bool { return d.Status == NotSatisfied }) {
				r.Status, r.Message = PresentNotSatisfied, "Policy rule not satisfied for service account"
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// rulesOf are the rules of one account in the order in which they are declared.
func rulesOf(spec bundle.CSVSpec, name string, a AccountFact, targets []string) []Dependent {
	var out []Dependent
	add := func(list []bundle.Permissions, sort string, scopes []string) {
		for _, p := range list {
			if p.ServiceAccountName != name {
				continue
			}
			for _, rule := range p.Rules {
				out = append(out, dependent(rule, sort, a, scopes))
			}
		}
	}
	add(spec.Install.Spec.Permissions, "namespaced", targets)
	add(spec.Install.Spec.ClusterPermissions, "cluster", []string{""})
	return out
}

func dependent(rule rbacv1.PolicyRule, sort string, a AccountFact, scopes []string) Dependent {
	text, err := json.Marshal(rule)
	if err != nil {
		text = []byte("{}") // a rule is strings alone: it always encodes
	}
	d := Dependent{
		Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "PolicyRule", Status: Satisfied,
		Message: sort + " rule:" + string(text),
	}
	if slices.ContainsFunc(scopes, func(ns string) bool {
		return len(
			a.Held.Lacks(ns, []rbacv1.PolicyRule{rule})) > 0
	}) {
		d.Status = NotSatisfied
	}
	return d
}

// Brief leaves out the dependents that are satisfied: what is told of an operator is to stay small.
func Brief(rows []Requirement) []Requirement {
	out := slices.Clone(rows)
	for i := range out {
		out[i].Dependents = slices.DeleteFunc(slices.Clone(out[i].Dependents),
			func(d Dependent) bool { return d.Status == Satisfied })
	}
	return out
}
