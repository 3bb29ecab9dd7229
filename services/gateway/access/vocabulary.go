// Package access decides who may do what: verbs on resources, within a scope. It is pure. Roles say what, bindings say
// who and where, and what no binding allows is denied.
//
//	role      verbs on resources; nine are built in, others are defined by people
//	binding   gives a role to users, groups and service accounts, within a scope
//	a scope   clusters by name, prefix or label, namespaces, catalogs; what is left out is not limited
//	target    what a request is about: the fleet, a cluster, a namespace, a catalog
//	Rights    what one identity may do, made ready: the one place that decides
//
// The roles and bindings of a tenant are one aggregate (State, Decide, Evolve), so that nobody can grant more than they
// have, and the last administrator cannot go, whatever happens at the same moment.
package access

import (
	"maps"
	"slices"
)

// Verb is what somebody wants to do.
type Verb string

// The verbs. Those of Kubernetes mean what they mean there.
const (
	Get        Verb = "get"
	List       Verb = "list"
	Watch      Verb = "watch"
	Create     Verb = "create"
	Update     Verb = "update"
	Delete     Verb = "delete"
	Approve    Verb = "approve"
	ApproveOwn Verb = "approve-own" // a plan that oneself has asked for; approve is needed beside it
	// Override settles an obstacle of a plan: whose object counts, a definition that hurts, a bundle that binds
	// cluster-admin. What it touches is the cluster's, so that it is asked for the whole cluster. Of an operator it
	// sets what counts in the place of its own conditions, in its namespace.
	Override Verb = "override"
	Reject   Verb = "reject"
	Comment  Verb = "comment"
	Rollback Verb = "rollback"
	Refresh  Verb = "refresh"
	Stop     Verb = "stop"
	Resume   Verb = "resume"
	Bind     Verb = "bind" // give others a role that one does not have
	// Impersonate lets a service account ask for the person who stands behind it.
	Impersonate Verb = "impersonate"
	Escalate    Verb = "escalate" // define a role that allows more than one may
	Every       Verb = "*"
)

// Resource is a kind of thing.
type Resource string

// The resources.
const (
	Clusters       Resource = "clusters"
	Catalogs       Resource = "catalogs"
	Packages       Resource = "packages"
	Hooks          Resource = "hooks"
	CatalogHealth  Resource = "cataloghealth"
	CatalogSecrets Resource = "catalogsecrets"
	OperatorHub    Resource = "operatorhub"
	Subscriptions  Resource = "subscriptions"
	OperatorGroups Resource = "operatorgroups"
	InstallPlans   Resource = "installplans"
	Operators      Resource = "operators"
	// Logs are what pods of operators write, which may hold secrets: who sees operators does not see them by that.
	Logs             Resource = "logs"
	ApprovalPolicies Resource = "approvalpolicies"
	// FleetSubscriptions are asked for on the whole tenant: a placement may choose any cluster.
	FleetSubscriptions Resource = "fleetsubscriptions"
	Rollouts           Resource = "rollouts"
	FleetBudget        Resource = "fleetbudget"
	Effects            Resource = "effects"
	Previews           Resource = "previews"
	Events             Resource = "events"
	Bodies             Resource = "bodies"
	Tokens             Resource = "tokens"
	Identities         Resource = "identities"
	People             Resource = "people"
	Roles              Resource = "roles"
	RoleBindings       Resource = "rolebindings"
	Keys               Resource = "keys"
	Parked             Resource = "parked"
	Replicas           Resource = "replicas"
	AccessLog          Resource = "accesslog"
	Questions          Resource = "questions"
	Webhooks           Resource = "webhooks"
	Quotas             Resource = "quotas"
	All                Resource = "*"
)

// vocabulary is every resource with the verbs that it knows: a rule that names another pair would never allow anything.
var vocabulary = map[Resource][]Verb{
	Clusters:           {Get, List, Create, Update, Delete},
	Catalogs:           {Get, List, Create, Update, Delete, Refresh},
	Packages:           {Get, List},
	Hooks:              {Get, Create, Delete},
	CatalogHealth:      {Get, Update},
	CatalogSecrets:     {List, Update, Delete},
	OperatorHub:        {Get, Update},
	Subscriptions:      {Get, List, Create, Update, Delete, Rollback},
	OperatorGroups:     {Get, List, Create, Update, Delete},
	InstallPlans:       {Get, List, Update, Approve, ApproveOwn, Override, Reject, Comment},
	Operators:          {Get, List, Delete, Override},
	Logs:               {Get},
	ApprovalPolicies:   {Get, List, Update, Delete},
	FleetSubscriptions: {Get, List, Update, Delete},
	Rollouts:           {Get, List, Update},
	FleetBudget:        {Get, Update, Override},
	Effects:            {Get, Stop, Resume},
	Previews:           {Get, Create},
	Events:             {List, Watch},
	Bodies:             {Delete},
	Tokens:             {Get, List, Create, Delete},
	Identities:         {List, Update},
	People:             {Impersonate},
	Roles:              {Get, List, Update, Delete, Bind, Escalate},
	RoleBindings:       {Get, List, Update, Delete},
	Keys:               {List},
	Parked:             {Get, List, Update},
	Replicas:           {List, Update},
	AccessLog:          {List},
	Questions:          {List},
	Webhooks:           {Get, List, Update, Delete},
	Quotas:             {Get, List, Update},
}

// AllResources are the resources by name.
func AllResources() []Resource { return slices.Sorted(maps.Keys(vocabulary)) }

// VerbsOf are the verbs that a resource knows, none for one that does not exist.
func VerbsOf(r Resource) []Verb { return slices.Clone(vocabulary[r]) }

// Known says whether a resource exists and knows a verb.
func Known(v Verb, r Resource) bool { return slices.Contains(vocabulary[r], v) }

// permission is one verb on one resource.
type permission struct {
	verb     Verb
	resource Resource
}
