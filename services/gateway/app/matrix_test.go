package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// where is the place of a request of the matrix; empty fields are those that it does not name.
type where struct{ cluster, namespace, catalog string }

// scopeKind is one kind of scope with a rule of its own for what lies in it: the words of docs/access.md once more, and
// not the code that decides.
type scopeKind struct {
	name  string
	scope model.AccessScope
	holds func(w where) bool
}

func scopeKinds() []scopeKind {
	east := func(w where) bool { return strings.HasPrefix(w.cluster, "east") }
	return []scopeKind{
		{"whole", model.AccessScope{}, func(where) bool { return true }},
		{"cluster", model.AccessScope{Clusters: []string{"east*"}}, east},
		{
			"namespace",
			model.AccessScope{Namespaces: []string{"ops"}},
			func(w where) bool { return w.namespace == "ops" },
		},
		{
			"both",
			model.AccessScope{Clusters: []string{"east*"}, Namespaces: []string{"ops"}},
			func(w where) bool { return east(w) && w.namespace == "ops" },
		},
		{
			"label",
			model.AccessScope{ClusterLabels: map[string]string{"stage": "production"}},
			func(w where) bool { return w.cluster == "east-1" },
		},
		{"catalog", model.AccessScope{Catalogs: []string{"fleet*"}}, func(w where) bool {
			if w.catalog != "" {
				return strings.HasPrefix(w.catalog, "fleet")
			}
			return w.namespace != ""
		}},
	}
}

// identity is somebody of the matrix.
type identity struct {
	name, bearer, role string
	kind               scopeKind
}

// documentedRoles reads the table of docs/access.md: what each role may do, by resource.
func documentedRoles(t *testing.T) map[string]map[string][]string {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]map[string][]string{}
	var names []string
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		first := strings.Trim(cells[0], " `")
		switch {
		case first == "resource":
			for _, c := range cells[1:] {
				names = append(names, strings.Trim(c, " `"))
				roles[names[len(names)-1]] = map[string][]string{}
			}
		case len(cells) == len(names)+1 && len(names) > 0 && first != "---":
			for i, c := range cells[1:] {
				if c = strings.TrimSpace(c); c != "" {
					roles[names[i]][first] = strings.Split(c, ", ")
				}
			}
		}
	}
	if len(roles) != 9 {
		t.Fatalf("docs/access.md documents %d roles", len(roles))
	}
	return roles
}

// What a request of the matrix is about.
const (
	ofFleet     = "fleet"     // the fleet as a whole
	ofCluster   = "cluster"   // a cluster
	ofNamespace = "namespace" // a namespace of a cluster
	ofHub       = "hub"       // a catalog of the hub, which is changed
	ofOffer     = "offer"     // a catalog that is read where it can be seen
	ofPlan      = "plan"      // a plan, by its id
	ofAnything  = "anything"  // what may be seen
	ofEverybody = "everybody" // the same for all who are known
)

// probe is what the matrix knows of one operation.
type probe struct {
	verb, resource, about string
	query                 string
	body                  any
	// gone has the request name what is not there, so that nothing is taken away from those who come later.
	gone bool
}

// probes are all operations but push-catalog and get-auth-config, which want no bearer token.
// A body passes the form of the route and is
// refused, or changes nothing, after rights were looked at.
func probes() map[string]probe {
	cluster := model.RegisterCluster{Name: "east-gone", Kubeconfig: "none"}
	spec := subscribe("s", "tidegauge").SubscriptionSpec
	spec.Catalog = "fleet"
	unreadable := wantedEverywhere() // refused before the resolver is asked, which does not run here
	unreadable.Placement.Selector = "a in"
	created := subscribe("s", "tidegauge")
	created.SubscriptionSpec = spec
	group := model.CreateOperatorGroup{Name: "g"}
	secret := model.SetCatalogSecret{Kind: "token", Value: json.RawMessage(`{"none": "t"}`)}
	source := model.ChangeCatalog{Source: model.CatalogSource{Type: "directory", Path: "/a"}}
	return map[string]probe{
		"list-access":            {verb: "list", resource: "accesslog", about: ofFleet},
		"list-approval-policies": {verb: "list", resource: "approvalpolicies", about: ofFleet},
		"delete-approval-policy": {verb: "delete", resource: "approvalpolicies", about: ofFleet},
		"get-approval-policy":    {verb: "get", resource: "approvalpolicies", about: ofFleet},
		"set-approval-policy": {
			verb: "update", resource: "approvalpolicies", about: ofFleet, body: map[string]any{},
		},
		"erase-body":         {verb: "delete", resource: "bodies", about: ofFleet},
		"get-catalog-health": {verb: "get", resource: "cataloghealth", about: ofNamespace, query: "cluster={cluster}&namespace={namespace}"},
		"set-catalog-health": {verb: "update", resource: "cataloghealth", about: ofNamespace, query: "cluster={cluster}&namespace={namespace}", body: model.SetCatalogHealth{Mode: "Strict"}},
		"list-catalogs":      {verb: "list", resource: "catalogs", about: ofAnything},
		"add-catalog": {
			verb: "create", resource: "catalogs", about: ofFleet,
			body: model.AddCatalog{Name: "other", Source: model.CatalogSource{Type: "image"}},
		},
		"remove-catalog": {verb: "delete", resource: "catalogs", about: ofHub, gone: true},
		"get-catalog":    {verb: "get", resource: "catalogs", about: ofOffer},
		"patch-catalog": {
			verb: "update", resource: "catalogs", about: ofHub, gone: true, body: map[string]any{},
		},
		"change-catalog":        {verb: "update", resource: "catalogs", about: ofHub, gone: true, body: source},
		"list-blobs":            {verb: "list", resource: "packages", about: ofOffer},
		"list-bundles":          {verb: "list", resource: "packages", about: ofOffer},
		"list-findings":         {verb: "get", resource: "catalogs", about: ofOffer},
		"end-catalog-hook":      {verb: "delete", resource: "hooks", about: ofHub, gone: true},
		"get-catalog-hook":      {verb: "get", resource: "hooks", about: ofHub},
		"make-catalog-hook":     {verb: "create", resource: "hooks", about: ofHub, gone: true},
		"list-packages":         {verb: "list", resource: "packages", about: ofOffer},
		"get-package":           {verb: "get", resource: "packages", about: ofOffer},
		"list-channels":         {verb: "get", resource: "packages", about: ofOffer},
		"get-package-icon":      {verb: "get", resource: "packages", about: ofOffer},
		"list-upgrades":         {verb: "get", resource: "packages", about: ofOffer},
		"refresh-catalog":       {verb: "refresh", resource: "catalogs", about: ofHub, gone: true},
		"list-revisions":        {verb: "get", resource: "catalogs", about: ofOffer},
		"list-catalog-secrets":  {verb: "list", resource: "catalogsecrets", about: ofFleet},
		"delete-catalog-secret": {verb: "delete", resource: "catalogsecrets", about: ofFleet},
		"set-catalog-secret":    {verb: "update", resource: "catalogsecrets", about: ofFleet, body: secret},
		"list-clusters":         {verb: "list", resource: "clusters", about: ofAnything},
		"register-cluster":      {verb: "create", resource: "clusters", about: ofCluster, gone: true, body: cluster},
		"remove-cluster":        {verb: "delete", resource: "clusters", about: ofCluster, gone: true},
		"get-cluster":           {verb: "get", resource: "clusters", about: ofCluster},
		"configure-cluster":     {verb: "update", resource: "clusters", about: ofCluster, body: map[string]any{}},
		"replace-credentials": {
			verb: "update", resource: "clusters", about: ofCluster,
			body: model.ReplaceCredentials{Kubeconfig: "none"},
		},
		"issue-agent-config": {
			verb: "create", resource: "clusters", about: ofCluster, body: model.AgentConfigRequest{Recipient: "age1"},
		},
		"issue-join-token": {
			verb: "create", resource: "clusters", about: ofCluster,
			body: model.IssueJoinToken{Key: "U" + strings.Repeat("A", 55)},
		},
		"get-agent": {verb: "get", resource: "clusters", about: ofCluster},
		"decide-agent": {
			verb: "update", resource: "clusters", about: ofCluster, body: model.DecideAgent{Action: "Revoke"},
		},
		"find-named": {
			verb: "get", resource: "subscriptions", about: ofNamespace, query: "kind=subscription",
		},
		"list-operatorgroups":  {verb: "list", resource: "operatorgroups", about: ofNamespace},
		"create-operatorgroup": {verb: "create", resource: "operatorgroups", about: ofNamespace, body: group},
		"delete-operatorgroup": {verb: "delete", resource: "operatorgroups", about: ofNamespace, gone: true},
		"get-operatorgroup":    {verb: "get", resource: "operatorgroups", about: ofNamespace},
		"change-operatorgroup": {
			verb: "update", resource: "operatorgroups", about: ofNamespace, body: group.Intent(),
		},
		"uninstall-operator":     {verb: "delete", resource: "operators", about: ofNamespace, gone: true},
		"get-operator":           {verb: "get", resource: "operators", about: ofNamespace},
		"get-operator-logs":      {verb: "get", resource: "logs", about: ofNamespace},
		"get-operator-overrides": {verb: "get", resource: "operators", about: ofNamespace},
		"set-operator-overrides": {
			verb: "override", resource: "operators", about: ofNamespace, body: overrides,
		},
		"remove-operator-overrides": {verb: "override", resource: "operators", about: ofNamespace, gone: true},
		"why-operator":              {verb: "get", resource: "operators", about: ofNamespace},
		"list-subscriptions":        {verb: "list", resource: "subscriptions", about: ofNamespace},
		"create-subscription":       {verb: "create", resource: "subscriptions", about: ofNamespace, body: created},
		"delete-subscription":       {verb: "delete", resource: "subscriptions", about: ofNamespace, gone: true},
		"get-subscription":          {verb: "get", resource: "subscriptions", about: ofNamespace},
		"get-subscription-badge":    {verb: "get", resource: "subscriptions", about: ofNamespace},
		"change-subscription":       {verb: "update", resource: "subscriptions", about: ofNamespace, body: spec},
		"patch-subscription": {
			verb: "update", resource: "subscriptions", about: ofNamespace, body: map[string]any{"catalog": "fleet"},
		},
		"explain-subscription": {verb: "get", resource: "subscriptions", about: ofNamespace},
		"rollback-subscription": {
			verb: "rollback", resource: "subscriptions", about: ofNamespace, body: model.RollBack{},
		},
		"get-effects": {verb: "get", resource: "effects", about: ofCluster, query: "cluster={cluster}"},
		"set-effects": {verb: "stop", resource: "effects", about: ofFleet, body: model.EffectsRequest{Action: "stop"}},
		"list-events": {verb: "list", resource: "events", about: ofAnything},
		"stream-events": {
			verb: "watch", resource: "events", about: ofAnything, query: "after=9-9",
		}, // beyond the log
		"make-stream-ticket": {about: ofEverybody, body: model.AskTicket{URL: "/none"}},
		"list-installplans":  {verb: "list", resource: "installplans", about: ofAnything},
		"get-installplan":    {verb: "get", resource: "installplans", about: ofPlan},
		"approve-installplan": {
			verb: "approve", resource: "installplans", about: ofPlan,
			body: model.ApprovePlan{Digest: "sha256:another"},
		},
		"check-installplan":   {verb: "get", resource: "installplans", about: ofPlan},
		"explain-installplan": {verb: "get", resource: "installplans", about: ofPlan},

		"list-installplan-objects":  {verb: "get", resource: "installplans", about: ofPlan},
		"list-installplan-comments": {verb: "get", resource: "installplans", about: ofPlan},
		"comment-installplan": {
			verb: "comment", resource: "installplans", about: ofPlan, body: model.CommentPlan{Text: " "},
		},
		"get-installplan-rights": {verb: "get", resource: "installplans", about: ofPlan},
		"get-installplan-diff":   {verb: "get", resource: "installplans", about: ofPlan},
		"note-installplan":       {verb: "update", resource: "installplans", about: ofPlan, body: map[string]any{}},
		"reject-installplan": {
			verb: "reject", resource: "installplans", about: ofPlan, body: model.RejectPlan{Digest: "sha256:another"},
		},
		"list-key-uses":      {verb: "list", resource: "keys", about: ofFleet},
		"list-leftovers":     {verb: "list", resource: "operators", about: ofAnything},
		"list-parked-events": {verb: "list", resource: "parked", about: ofFleet},
		"get-parked-event": {
			verb: "get", resource: "parked", about: ofFleet, query: "consumer=a&stream=a&version=1",
		},
		"retry-parked-events": {
			verb: "update", resource: "parked", about: ofFleet, body: model.RetryParked{Consumer: "a"},
		},
		"skip-parked-event": {
			verb: "update", resource: "parked", about: ofFleet,
			body: model.SkipParked{ParkedRef: model.ParkedRef{Consumer: "a", Stream: "a", Version: 1}, Reason: "a"},
		},
		"list-skipped-events": {verb: "list", resource: "parked", about: ofFleet},

		"list-all-operatorgroups": {verb: "list", resource: "operatorgroups", about: ofAnything},
		"get-operator-hub":        {verb: "get", resource: "operatorhub", about: ofFleet},
		"set-operator-hub":        {verb: "update", resource: "operatorhub", about: ofFleet, body: map[string]any{}},
		"list-operators":          {verb: "list", resource: "operators", about: ofAnything},
		"search-packages":         {verb: "list", resource: "packages", about: ofAnything},
		"create-preview": {
			verb: "create", resource: "previews", about: ofFleet,
			body: model.PreviewRequest{Changes: []model.PreviewChange{{}}},
		},
		"get-preview":    {verb: "get", resource: "previews", about: ofAnything},
		"apply-preview":  {verb: "create", resource: "previews", about: ofAnything},
		"list-questions": {verb: "list", resource: "questions", about: ofFleet},
		"list-replicas":  {verb: "list", resource: "replicas", about: ofFleet},
		"drain-replica": {
			verb: "update", resource: "replicas", about: ofFleet, body: model.DrainReplica{Replica: "a"},
		},
		"list-rules": {about: ofEverybody},
		"shadow": {
			verb: "get", resource: "previews", about: ofFleet, body: map[string]any{"from": "none"},
		},
		"list-all-subscriptions": {verb: "list", resource: "subscriptions", about: ofAnything},
		"summarize":              {verb: "list", resource: "subscriptions", about: ofAnything},
		"get-fleet-matrix":       {verb: "list", resource: "operators", about: ofAnything},
		"list-tokens":            {verb: "list", resource: "tokens", about: ofFleet},
		"add-token": {
			verb: "create", resource: "tokens", about: ofFleet,
			body: model.AddToken{Name: "a", Role: model.RoleNone, Actor: "nobody"},
		},
		"get-token":                 {verb: "get", resource: "tokens", about: ofFleet},
		"rotate-token":              {verb: "create", resource: "tokens", about: ofFleet, body: map[string]any{}},
		"revoke-token":              {verb: "delete", resource: "tokens", about: ofFleet},
		"list-fleet-subscriptions":  {verb: "list", resource: "fleetsubscriptions", about: ofFleet},
		"get-fleet-subscription":    {verb: "get", resource: "fleetsubscriptions", about: ofFleet},
		"delete-fleet-subscription": {verb: "delete", resource: "fleetsubscriptions", about: ofFleet},
		"get-fleet-preview":         {verb: "get", resource: "fleetsubscriptions", about: ofFleet},
		"create-fleet-preview": {
			verb: "update", resource: "fleetsubscriptions", about: ofFleet, body: unreadable,
		},
		"set-fleet-subscription": {
			verb: "update", resource: "fleetsubscriptions", about: ofFleet, body: wantedEverywhere(),
			query: "dryRun=true",
		},
		"rollback-fleet-subscription": {
			verb: "update", resource: "rollouts", about: ofFleet, body: fleetmodel.RollBackRollout{Reason: "x"},
		},
		"list-rollouts":         {verb: "list", resource: "rollouts", about: ofFleet},
		"get-rollout":           {verb: "get", resource: "rollouts", about: ofFleet},
		"pause-rollout":         {verb: "update", resource: "rollouts", about: ofFleet},
		"resume-rollout":        {verb: "update", resource: "rollouts", about: ofFleet},
		"abort-rollout":         {verb: "update", resource: "rollouts", about: ofFleet},
		"promote-rollout":       {verb: "update", resource: "rollouts", about: ofFleet, body: map[string]any{}},
		"retry-rollout-cluster": {verb: "update", resource: "rollouts", about: ofFleet},
		"pass-rollout-gate": {
			verb: "update", resource: "rollouts", about: ofFleet, body: fleetmodel.PassGate{Reason: "x"},
		},
		"skip-rollout-cluster": {
			verb: "update", resource: "rollouts", about: ofFleet, body: fleetmodel.SkipCluster{Reason: "x"},
		},
		"get-fleet-budget": {verb: "get", resource: "fleetbudget", about: ofFleet},
		"set-fleet-budget": {
			verb: "update", resource: "fleetbudget", about: ofFleet, body: fleetmodel.SetFleetBudget{},
		},
		"allow-fleet-budget": {
			verb: "override", resource: "fleetbudget", about: ofFleet,
			body: fleetmodel.AllowFleetBudget{Changed: 1, Reason: "x"},
		},
		"list-quotas":        {verb: "list", resource: "quotas", about: ofFleet},
		"get-quota":          {verb: "get", resource: "quotas", about: ofFleet},
		"set-quota":          {verb: "update", resource: "quotas", about: ofFleet, body: model.SetQuota{}},
		"get-break-glass":    {verb: "list", resource: "tokens", about: ofFleet},
		"create-break-glass": {verb: "escalate", resource: "roles", about: ofFleet},
		"revoke-break-glass": {verb: "delete", resource: "tokens", about: ofFleet},
		"open-break-glass":   {about: ofEverybody, body: model.OpenBreakGlass{Reason: "a"}},

		"list-identities": {verb: "list", resource: "identities", about: ofFleet},
		"configure-identity": {
			verb: "update", resource: "identities", about: ofFleet, gone: true, body: map[string]any{},
		},
		"list-roles": {verb: "list", resource: "roles", about: ofFleet},
		"get-role":   {verb: "get", resource: "roles", about: ofFleet},
		"set-role": {
			verb: "update", resource: "roles", about: ofFleet, body: map[string]any{"rules": []any{}},
		},
		"delete-role":        {verb: "delete", resource: "roles", about: ofFleet},
		"list-role-bindings": {verb: "list", resource: "rolebindings", about: ofFleet},
		"get-role-binding":   {verb: "get", resource: "rolebindings", about: ofFleet},
		"set-role-binding": {
			verb: "update", resource: "rolebindings", about: ofFleet,
			body: model.RoleBindingSpec{Role: "unknown", Subjects: []model.AccessSubject{{Kind: "User", Name: "a"}}},
		},
		"list-webhooks":           {verb: "list", resource: "webhooks", about: ofFleet},
		"get-webhook":             {verb: "get", resource: "webhooks", about: ofFleet},
		"set-webhook":             {verb: "update", resource: "webhooks", about: ofFleet, body: map[string]any{}},
		"delete-webhook":          {verb: "delete", resource: "webhooks", about: ofFleet},
		"list-webhook-deliveries": {verb: "get", resource: "webhooks", about: ofFleet},
		"test-webhook":            {verb: "update", resource: "webhooks", about: ofFleet},
		"replay-webhook": {
			verb: "update", resource: "webhooks", about: ofFleet, body: model.ReplayWebhook{After: "1-0"},
		},
		"rotate-webhook":      {verb: "update", resource: "webhooks", about: ofFleet},
		"delete-role-binding": {verb: "delete", resource: "rolebindings", about: ofFleet},
		"get-operation":       {about: ofEverybody},
		"who-am-i":            {about: ofEverybody},
		"can-i":               {about: ofEverybody, query: "verb=get&resource=clusters"},
		"who-can": {
			verb: "list", resource: "rolebindings", about: ofFleet, query: "verb=get&resource=clusters",
		},
	}
}

// matrix is a gateway with two clusters of two namespaces each, and everybody who asks.
type matrix struct {
	*bench

	plans map[where]string
	who   []identity
	roles map[string]map[string][]string
}

var matrixPlaces = []where{
	{cluster: "east-1", namespace: "ops"},
	{cluster: "east-1", namespace: "sea"},
	{cluster: "west-1", namespace: "ops"},
	{cluster: "west-1", namespace: "sea"},
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{bench: setup(t), plans: map[where]string{}, roles: documentedRoles(t)}
	for cluster, stage := range map[string]string{"east-1": "production", "west-1": "test"} {
		must[model.Cluster](m.bench, 201, m.do("POST", "/api/v1/clusters", model.RegisterCluster{
			Name: cluster, Kubeconfig: kubeconfig, Labels: map[string]string{"stage": stage},
		}))
	}
	m.catalog("fleet")
	for _, p := range matrixPlaces {
		m.seed(p)
	}
	m.people(t)
	return m
}

// seed puts one of each into a namespace.
func (m *matrix) seed(p where) {
	at := "/api/v1/clusters/" + p.cluster + "/namespaces/" + p.namespace
	in := subscribe("s", "tidegauge")
	in.Catalog = "fleet"
	must[model.Subscription](m.bench, 201, m.do("POST", at+"/subscriptions", in))
	must[model.OperatorGroup](m.bench, 201, m.do("POST", at+"/operatorgroups", model.CreateOperatorGroup{Name: "g"}))
	if p.cluster[:4] == map[string]string{"ops": "east", "sea": "west"}[p.namespace] { // one of each cluster
		must[model.Catalog](m.bench, 201, m.do("POST", "/api/v1/catalogs", model.AddCatalog{
			Name: "own", Cluster: p.cluster, Namespace: p.namespace,
			Source: model.CatalogSource{Type: "directory", Path: "/a"},
		}))
	}
	csv := p.cluster + "/" + p.namespace + "/tidegauge.v1.0.0"
	m.fact(events.Installer, events.KindCSV, csv, csv, events.CSVPhaseChanged{Phase: "Succeeded", Package: "tidegauge"})
	id := uuid.NewString()
	plan := proposed(id, "install-"+p.cluster+"-"+p.namespace, "tidegauge.v2.0.0", "s")
	plan.Cluster, plan.Namespace = p.cluster, p.namespace
	m.fact(events.Resolver, events.KindInstallPlan, id, p.cluster+"/"+p.namespace+"/"+plan.Name, plan)
	m.plans[p] = id
}

// people makes one person for each role in each kind of scope, one without any, and an administrator of another tenant
// in which nothing is.
func (m *matrix) people(t *testing.T) {
	t.Helper()
	add := func(tenant, name, role string) string {
		bearer := "matrix-token-of-" + name
		m.exec("gateway", `insert into gateway.tokens (tenant, id, hash, role) values ('`+tenant+`', '`+name+
			`', sha256('`+bearer+`'), '`+role+`')`)
		return bearer
	}
	m.who = append(m.who, identity{name: "nobody", bearer: add("default", "nobody", "none")})
	for role := range m.roles {
		for _, kind := range scopeKinds() {
			name := role + "." + kind.name
			m.who = append(m.who, identity{name, add("default", name, "none"), role, kind})
			must[model.RoleBinding](m.bench, 200, m.do("PUT", "/api/v1/rolebindings/"+name, model.RoleBindingSpec{
				Role: role, Subjects: []model.AccessSubject{{Kind: "User", Name: name}}, Scope: kind.scope,
			}))
		}
	}
	add("other", "token-other", "admin")
}

// places are where an operation is tried.
func (p probe) places() []where {
	switch p.about {
	case ofCluster:
		if p.gone {
			return []where{{cluster: "east-gone"}, {cluster: "west-gone"}}
		}
		return []where{{cluster: "east-1"}, {cluster: "west-1"}}
	case ofNamespace, ofPlan:
		return matrixPlaces
	case ofHub:
		return []where{{catalog: "fleet-gone"}, {catalog: "other-gone"}}
	case ofOffer:
		return []where{
			{catalog: "fleet"},
			{cluster: "east-1", namespace: "ops", catalog: "ops/own"},
			{cluster: "west-1", namespace: "sea", catalog: "sea/own"},
		}
	default:
		return []where{{}}
	}
}

// Outcomes of a request.
const (
	outcomeDone   = "let through"
	outcomeDenied = "403"
	outcomeHidden = "404"
)

// want is what docs/access.md says becomes of a request.
func (m *matrix) want(who identity, p probe, w where) string {
	has := func(verb string) bool { return slices.Contains(m.roles[who.role][p.resource], verb) }
	switch p.about {
	case ofEverybody:
		return outcomeDone
	case ofAnything:
		if has(p.verb) {
			return outcomeDone
		}
		return outcomeDenied
	case ofOffer:
		switch offered := w.cluster == "" || who.role != "" && m.seesOffer(who.kind, w); {
		case !has(p.verb):
			return outcomeDenied
		case offered && (who.kind.name != "catalog" || strings.HasPrefix(w.catalog, "fleet")):
			return outcomeDone
		}
		return outcomeHidden
	case ofPlan:
		switch {
		case !has(p.verb):
			return outcomeDenied
		case who.kind.holds(w):
			return outcomeDone
		}
		return outcomeHidden
	}
	if p.about == ofNamespace && p.resource == "subscriptions" && slices.Contains([]string{"create", "update"},
		p.verb) {
		w.catalog = "fleet"
	}
	if has(p.verb) && who.kind.holds(w) {
		return outcomeDone
	}
	sees := has("get") && who.kind.holds(w)
	if p.resource == "logs" { // who sees the operator is told what is lacking
		sees = slices.Contains(m.roles[who.role]["operators"], "get") && who.kind.holds(w)
	}
	aboutOne := slices.Contains([]string{"get", "update", "delete", "override", "rollback", "refresh"}, p.verb)
	known := len(m.roles["admin"][p.resource]) > 0 && slices.Contains(m.roles["admin"][p.resource], "get")
	if p.about != ofFleet && aboutOne && known && !sees {
		return outcomeHidden
	}
	return outcomeDenied
}

// seesOffer says whether a namespace's own catalog can be seen in a kind of scope.
func (m *matrix) seesOffer(kind scopeKind, w where) bool {
	return kind.name == "catalog" || kind.holds(where{cluster: w.cluster, namespace: w.namespace})
}

// outcome reads an answer. What is not there for those who may look for it is let through.
func outcome(p probe, a answer) string {
	switch {
	case a.status == http.StatusForbidden:
		return outcomeDenied
	case a.status != http.StatusNotFound, strings.Contains(string(a.body), `"plan-content"`): // seen, and not kept
		return outcomeDone
	case strings.Contains(string(a.body), "that you may see"), p.about == ofPlan,
		p.about == ofOffer && strings.Contains(string(a.body), "is known"):
		return outcomeHidden
	default:
		return outcomeDone
	}
}

// request fills the pattern of a route.
func (m *matrix) request(path string, p probe, w where) (string, any) {
	name, object := "s", "a"
	switch p.resource {
	case "operatorgroups":
		name = "g"
	case "operators":
		name = "tidegauge.v1.0.0"
	case "approvalpolicies", "fleetsubscriptions", "roles", "rolebindings", "catalogsecrets":
		name = "absent"
	}
	if p.gone && p.about == ofNamespace {
		name = "gone"
	}
	id := uuid.NewString()
	if p.about == ofPlan {
		id = m.plans[w]
	}
	catalog := w.catalog[strings.LastIndex(w.catalog, "/")+1:]
	query := p.query
	if p.about == ofOffer && w.cluster != "" {
		query = "cluster={cluster}&namespace={namespace}"
	}
	if query != "" {
		path += "?" + query
	}
	body := p.body
	if c, ok := body.(model.RegisterCluster); ok {
		c.Name = w.cluster
		body = c
	}
	return strings.NewReplacer("/bodies/{id}", "/bodies/c1:"+strings.Repeat("0", 64), "/tokens/{id}", "/tokens/absent",
		"{tenant}", "default", "{subscription}", "absent", "{number}", "1", "{gate}", "absent",
		"/clusters/{cluster}/skip", "/clusters/east-1/skip", "/clusters/{cluster}/retry", "/clusters/east-1/retry",
		"{cluster}", w.cluster, "{namespace}", w.namespace, "{name}", name, "{catalog}", catalog, "{package}", object,
		"{id}", id).Replace("/api/v1" + path), body
}

// TestMatrix walks every route of the OpenAPI document with every built-in role in every kind of scope, with somebody
// without a role, and with an administrator of another tenant (D10). A route that it does not know fails it.
func TestMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	known := probes()
	var tasks []func()
	for path, methods := range m.operations(t) {
		for method, id := range methods {
			p, ok := known[id]
			if !ok {
				t.Errorf("%s %s (%s): the matrix does not know this route: add it to probes", method, path, id)
				continue
			}
			delete(known, id)
			for _, w := range p.places() {
				for _, who := range m.who {
					tasks = append(tasks, func() {
						url, body := m.request(path, p, w)
						a := m.as(who.bearer, method, url, body)
						got, want := outcome(p, a), m.want(who, p, w)
						if got != want || a.status == 401 || a.status == 500 {
							t.Errorf("%s: %s %s: %s, want %s: %d %.200s", who.name, method, url, got, want, a.status,
								a.body)
						}
					})
				}
				tasks = append(tasks, func() { m.asAnotherTenant(method, path, p, w) })
			}
		}
	}
	for id := range known {
		t.Errorf("the matrix knows operation %s, which the document does not have", id)
	}
	m.all(tasks)
}

// all carries out tasks, some at a time.
func (m *matrix) all(tasks []func()) {
	const atOnce = 8
	var done sync.WaitGroup
	next := make(chan func())
	for range atOnce {
		done.Go(func() {
			for do := range next {
				do()
			}
		})
	}
	for _, do := range tasks {
		next <- do
	}
	close(next)
	done.Wait()
}

// operations are the routes of the document but the one that has no bearer token: path, method, operation.
func (m *matrix) operations(t *testing.T) map[string]map[string]string {
	t.Helper()
	doc := must[struct {
		Paths map[string]map[string]struct{ OperationID string }
	}](m.bench, 200, m.do("GET", "/api/v1/openapi.json", nil))
	out := map[string]map[string]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "push-catalog" || op.OperationID == "get-auth-config" {
				continue
			}
			if out[path] == nil {
				out[path] = map[string]string{}
			}
			out[path][strings.ToUpper(method)] = op.OperationID
		}
	}
	if len(out) < 60 {
		t.Fatalf("the document has only %d paths", len(out))
	}
	return out
}

// asAnotherTenant: nothing of the first tenant is there for the administrator of another one.
func (m *matrix) asAnotherTenant(method, path string, p probe, w where) {
	url, body := m.request(path, p, w)
	if method != http.MethodGet || p.about == ofEverybody || p.about == ofFleet || p.about == ofAnything {
		return // what it writes is its own; what its lists hold is looked at by TestListsHoldWhatIsSeen
	}
	a := m.as("matrix-token-of-token-other", method, url, body)
	for _, word := range []string{"tidegauge.v1.0.0", "install-east", `"stage"`} {
		if strings.Contains(string(a.body), word) && !strings.Contains(url, word) {
			m.t.Errorf("another tenant: %s %s: %d %.200s", method, url, a.status, a.body)
		}
	}
}

// TestListsHoldWhatIsSeen: lists hold exactly what lies in the scope, page by page with full pages, and so do events;
// for
// another tenant nothing.
func TestListsHoldWhatIsSeen(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	type item struct {
		Name, Cluster, Namespace, Subject string
		Spec                              struct{ Catalog string }
	}
	type page struct {
		Items []item
		Next  string
	}
	at := func(kind string, i item) where {
		switch kind {
		case "clusters":
			return where{cluster: i.Name}
		case "events":
			parts := append(strings.Split(i.Subject, "/"), "", "")
			return where{cluster: parts[0], namespace: parts[1]}
		default:
			return where{cluster: i.Cluster, namespace: i.Namespace}
		}
	}
	kinds := map[string]string{
		"clusters": "", "subscriptions": "", "operatorgroups": "", "installplans": "", "operators": "",
		"events": "type=subscription.*&type=installplan.*&type=csv.*",
	}
	for kind, query := range kinds {
		everything := must[page](m.bench, 200, m.do("GET", "/api/v1/"+kind+"?limit=500&"+query, nil)).Items
		if len(everything) < 2 {
			t.Fatalf("%s: %d items are seeded", kind, len(everything))
		}
		for _, who := range m.who {
			if who.role != "viewer" {
				continue
			}
			var want, got []string
			for _, i := range everything {
				if w := at(kind, i); who.kind.holds(w) && (who.kind.name != "catalog" || kind != "events" ||
					!strings.HasSuffix(i.Subject, "/s")) {
					want = append(want, fmt.Sprint(i))
				}
			}
			cursor := ""
			for { // pages of one: each is full but the last, which says that it is
				q := "limit=1&" + query
				switch {
				case kind == "events" && cursor != "":
					q += "&after=" + cursor
				case cursor != "":
					q += "&cursor=" + cursor
				}
				p := must[page](m.bench, 200, m.as(who.bearer, "GET", "/api/v1/"+kind+"?"+q, nil))
				for _, i := range p.Items {
					got = append(got, fmt.Sprint(i))
				}
				if p.Next == "" || kind == "events" && len(p.Items) == 0 {
					break
				}
				if len(p.Items) != 1 && kind != "events" {
					t.Errorf("%s of %s: a page of %d with another one behind", kind, who.name, len(p.Items))
				}
				cursor = p.Next
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Errorf("%s of %s:\n got %v\nwant %v", kind, who.name, got, want)
			}
		}
		other := must[page](m.bench, 200, m.as("matrix-token-of-token-other", "GET", "/api/v1/"+kind+"?"+query, nil))
		if len(other.Items) > 0 {
			t.Errorf("another tenant sees %s %v", kind, other.Items)
		}
	}
}
