// Package kinds knows the kinds of objects of the API: how each is named on the command line, listed in a table,
// described for people, and deleted.
package kinds

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Kind is one kind of thing that get, describe and delete know.
type Kind struct {
	Document string   // in documents
	Names    []string // singular, plural, then short names
	// partial says that lists leave out parts of a thing.
	partial bool
	scoped  bool // lives in a namespace of a cluster
	// mixed kinds are scoped or not: a catalog belongs to the hub or to a namespace of a cluster.
	mixed   bool
	columns []printer.Column
	filters []string // flags of get that choose among them
	List    func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error)
	Get     func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error)
	Remove  func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) // nil: cannot be deleted
}

// Flags of get that choose among things of a kind; each kind names its own.
const (
	FlagCluster   = "cluster"
	FlagNamespace = "namespace"
	FlagPackage   = "package"
	FlagCatalog   = "catalog"
	FlagPhase     = "phase"
	FlagState     = "state"
	FlagLabel     = "label"
	FlagBlocked   = "blocked"
	FlagServes    = "serves"
)

// CheckSelection checks that a kind can be chosen by what was said: a flag that chose nothing would look as if it did.
func (r Kind) CheckSelection(s client.Selection) error {
	for _, f := range []struct{ flag, value string }{
		{FlagCluster, s.Cluster},
		{FlagNamespace, s.Namespace},
		{FlagPackage, s.Package},
		{FlagCatalog, s.Catalog},
		{FlagPhase, s.Phase},
		{FlagState, s.State},
		{FlagLabel, s.Label},
		{FlagBlocked, s.Blocked},
		{FlagServes, s.Serves},
	} {
		if f.value == "" || slices.Contains(r.filters, f.flag) {
			continue
		}
		if len(r.filters) == 0 {
			return command.Usagef("%s cannot be selected by --%s: they are always all listed", r.Names[1], f.flag)
		}
		return command.Usagef("%s cannot be selected by --%s: use --%s", r.Names[1], f.flag,
			strings.Join(r.filters, ", --"))
	}
	return nil
}

// Complete reads each item by itself where a list leaves out parts of it that a document must have.
func (r Kind) Complete(ctx context.Context, c *client.Client, items []printer.Item) ([]printer.Item, error) {
	if !r.partial {
		return items, nil
	}
	whole := make([]printer.Item, 0, len(items))
	for _, it := range items {
		_, key, _ := strings.Cut(it.Name, "/")
		ref, err := r.Ref(command.Scope{}, key)
		if err != nil {
			return nil, err
		}
		it, err := r.Get(ctx, c, ref)
		if client.IsStatus(err, http.StatusNotFound) {
			continue // gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		whole = append(whole, it)
	}
	return whole, nil
}

// Singular is the name of one object of the kind.
func (r Kind) Singular() string { return r.Names[0] }

// Table is how a list of the kind is written.
func (r Kind) Table() printer.Table {
	return printer.Table{Kind: r.Document, Plural: r.Names[1], Columns: r.columns}
}

// All are all kinds.
func All(a *command.Env) []Kind {
	return []Kind{
		Clusters(a), Catalogs(a), packages(a), operatorGroups(a), Subscriptions(a), installPlans(a),
		approvalPolicies(a), Operators(a), leftovers(a), operatorHubs(), roles(a), roleBindings(a),
	}
}

// Find finds a kind by any of its names.
func Find(a *command.Env, name string) (Kind, error) {
	all := All(a)
	known, words := make([]string, 0, len(all)), []string{}
	for _, r := range all {
		if slices.Contains(r.Names, strings.ToLower(name)) {
			return r, nil
		}
		known, words = append(known, r.Names[1]), append(words, r.Names...)
	}
	slices.Sort(known)
	return Kind{}, command.Usagef("unknown kind %q%s: use one of %s", name,
		command.DidYouMean(command.Closest(name, words)), strings.Join(known, ", "))
}

// Ref reads "name" within the scope, or "cluster/namespace/name".
func (r Kind) Ref(s command.Scope, name string) (client.Ref, error) {
	parts := strings.Split(name, "/")
	switch {
	case slices.Contains(parts, ""):
		return client.Ref{}, command.Usagef("%q is not a name", name)
	case !r.scoped && !r.mixed && len(parts) == 1:
		return client.Ref{Name: name}, nil
	case len(parts) == 3 && (r.scoped || r.mixed):
		return client.Ref{Cluster: parts[0], Namespace: parts[1], Name: parts[2]}, nil
	case r.mixed && len(parts) == 1 && s.Cluster == "":
		return client.Ref{Name: name}, nil
	case len(parts) == 1 && s.Cluster != "" && s.Namespace != "":
		return client.Ref{Cluster: s.Cluster, Namespace: s.Namespace, Name: name}, nil
	case len(parts) == 1:
		return client.Ref{}, command.Usagef("%s %s needs --cluster and --namespace, or give it as cluster/namespace/%s",
			r.Singular(), name, name)
	default:
		return client.Ref{}, command.Usagef("%q is not a name of a %s", name, r.Singular())
	}
}
