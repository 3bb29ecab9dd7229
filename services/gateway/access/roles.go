package access

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Names of the roles that are built in.
const (
	RoleViewer        = "viewer"
	RoleRequester     = "requester"
	RoleApprover      = "approver"
	RoleOperatorAdmin = "operator-admin"
	RoleFleetAdmin    = "fleet-admin"
	RoleCatalogAdmin  = "catalog-admin"
	RoleAuditor       = "auditor"
	RoleSecurityAdmin = "security-admin"
	RoleAdmin         = "admin"
)

// Role is what somebody may do wherever a binding says.
type Role struct {
	Name    string
	Doc     string
	BuiltIn bool
	Rules   []events.AccessRule
}

func allow(resources []Resource, verbs ...Verb) events.AccessRule {
	var r events.AccessRule
	for _, v := range verbs {
		r.Verbs = append(r.Verbs, string(v))
	}
	for _, x := range resources {
		r.Resources = append(r.Resources, string(x))
	}
	return r
}

func on(list ...Resource) []Resource { return list }

// reading is what every role for people may read: all that the system is for, and nothing about who may use it.
func reading() []events.AccessRule {
	return []events.AccessRule{
		allow(on(Clusters, Catalogs, Packages, Subscriptions, OperatorGroups, InstallPlans, Operators,
			ApprovalPolicies, Quotas, FleetSubscriptions, Rollouts),
			Get, List),
		allow(on(CatalogHealth, OperatorHub, Effects, Previews, Hooks, FleetBudget), Get),
		allow(on(CatalogSecrets), List), allow(on(Events), List, Watch),
	}
}

func requesting() []events.AccessRule {
	return []events.AccessRule{
		allow(on(Subscriptions), Create, Update, Delete, Rollback), allow(on(Previews), Create),
		allow(on(InstallPlans), Comment),
	}
}

func operating() []events.AccessRule {
	return slices.Concat(requesting(), []events.AccessRule{
		allow(on(OperatorGroups), Create, Update, Delete), allow(on(Operators), Delete), allow(on(Logs), Get),
		allow(on(InstallPlans), Update, Approve, Reject),
	})
}

// BuiltIn are the roles that are built in, in the order of docs/access.md. They cannot be changed: what people make of
// them would not survive the next version.
func BuiltIn() []Role {
	return []Role{
		{Name: RoleViewer, Doc: "reads", Rules: reading()},
		{
			Name: RoleRequester, Doc: "subscribes, and asks what that would do",
			Rules: slices.Concat(reading(), requesting()),
		},
		{
			Name: RoleApprover, Doc: "approves and rejects plans that others have asked for",
			Rules: append(reading(), allow(on(InstallPlans), Update, Approve, Reject, Comment)),
		},
		{
			Name: RoleOperatorAdmin, Doc: "runs operators: groups, subscriptions, plans of others, uninstalls",
			Rules: slices.Concat(reading(), operating()),
		},
		{
			Name: RoleFleetAdmin,
			Doc:  "runs the fleet: clusters, fleet subscriptions, approval policies, the stop switch, and all operators",
			Rules: slices.Concat(reading(), operating(), []events.AccessRule{
				allow(on(Clusters), Create, Update, Delete),
				allow(on(ApprovalPolicies, FleetSubscriptions), Update, Delete),
				allow(on(Rollouts), Update),
				allow(on(Webhooks), Get, List, Update, Delete),
				// How many clusters may be changed is set by somebody else than who is held to it.
				allow(on(InstallPlans, Operators, FleetBudget),
					Override), allow(on(Effects), Stop, Resume), allow(on(Replicas), List, Update), allow(
					on(Parked), Get, List, Update),
			}),
		},
		{
			Name: RoleCatalogAdmin, Doc: "offers catalogs; as powerful as what their bundles bring",
			Rules: append(reading(), allow(on(Catalogs), Create, Update, Delete, Refresh),
				allow(on(CatalogSecrets), Update, Delete), allow(on(Hooks), Create, Delete),
				allow(on(CatalogHealth, OperatorHub), Update), allow(on(Previews), Create)),
		},
		{
			Name: RoleAuditor, Doc: "reads everything but logs, who may use the system and who did included",
			Rules: append(reading(), allow(on(Roles, RoleBindings, Parked, Webhooks), Get, List),
				allow(on(Tokens), Get),
				allow(on(Tokens, Identities, Keys, Replicas, AccessLog, Questions), List)),
		},
		{
			Name: RoleSecurityAdmin, Doc: "says who may do what, and stops effects; may give roles that it does not have",
			Rules: []events.AccessRule{
				allow(on(Roles), Get, List, Update, Delete, Bind), allow(on(RoleBindings), Get, List, Update, Delete),
				allow(on(Tokens), Get, List, Create, Delete), allow(on(Identities), List, Update),
				allow(on(Keys, AccessLog, Questions), List),
				allow(on(Events), List, Watch), allow(on(Effects), Get, Stop), allow(on(Clusters), Get, List),
			},
		},
		{Name: RoleAdmin, Doc: "everything", Rules: []events.AccessRule{allow(on(All), Every)}},
	}
}

func builtIn(name string) (Role, bool) {
	for _, r := range builtIns {
		if r.Name == name {
			return r, true
		}
	}
	return Role{}, false
}

var builtIns = func() []Role {
	list := BuiltIn()
	for i := range list {
		list[i].BuiltIn = true
	}
	return list
}()

// permissions are the pairs that rules allow.
func permissions(rules []events.AccessRule) map[permission]bool {
	out := map[permission]bool{}
	for _, r := range rules {
		for resource, verbs := range vocabulary {
			if !slices.Contains(r.Resources, string(resource)) && !slices.Contains(r.Resources, string(All)) {
				continue
			}
			for _, v := range verbs {
				if slices.Contains(r.Verbs, string(v)) || slices.Contains(r.Verbs, string(Every)) {
					out[permission{v, resource}] = true
				}
			}
		}
	}
	return out
}
