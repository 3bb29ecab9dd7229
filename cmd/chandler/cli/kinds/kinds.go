// Package kinds knows the kinds of objects of the API: how each is named on the command line, listed in a table,
// described for people, and deleted.
package kinds

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/spelling"
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
	sorts   []string // what the server sorts by
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
	FlagFields    = "field-selector"
	FlagClusters  = "cluster-selector"
	FlagSort      = "sort-by"
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
		{FlagFields, s.FieldSelector},
		{FlagClusters, s.ClusterSelector},
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

// sortWords are what the server sorts by, where a kind knows them. The others that it knows are paths of documents,
// too.
var sortWords = []string{"created", "changed"}

// ServerSort is what --sort-by says where the server is to sort by it, "" where it is a path of documents.
func (r Kind) ServerSort(by string) (string, error) {
	word, down := strings.CutPrefix(by, "-")
	switch {
	case !down && !slices.Contains(sortWords, by):
		return "", nil
	case slices.Contains(r.sorts, word):
		return by, nil
	case len(r.sorts) == 0:
		return "", command.Usagef("the server does not sort %s: give --sort-by a path such as .name", r.Names[1])
	default:
		return "", command.Usagef(
			"the server does not sort %s by %q: use one of %s, with - the other way round, or a path such as .name",
			r.Names[1], word, strings.Join(r.sorts, ", "))
	}
}

// maxAtOnce bounds the requests that complete a list at a time: enough to hide the way to a server, and few beside
// those of others.
const maxAtOnce = 16

// Complete reads each item by itself where a list leaves out parts of it that a document must have.
func (r Kind) Complete(ctx context.Context, c *client.Client, items []printer.Item) ([]printer.Item, error) {
	if !r.partial {
		return items, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	whole := make([]*printer.Item, len(items))
	var all sync.WaitGroup
	places := make(chan struct{}, maxAtOnce)
	for i := range items {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			it, err := r.whole(ctx, c, items[i].Name)
			switch {
			case client.IsStatus(err, http.StatusNotFound): // gone meanwhile
			case err != nil:
				cancel(err)
			default:
				whole[i] = &it
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out := make([]printer.Item, 0, len(items))
	for _, it := range whole {
		if it != nil {
			out = append(out, *it)
		}
	}
	return out, nil
}

func (r Kind) whole(ctx context.Context, c *client.Client, name string) (printer.Item, error) {
	_, key, _ := strings.Cut(name, "/")
	ref, err := r.Ref(command.Scope{}, key)
	if err != nil {
		return printer.Item{}, err
	}
	return r.Get(ctx, c, ref)
}

// Singular is the name of one object of the kind.
func (r Kind) Singular() string { return r.Names[0] }

// One is one object of the kind in a sentence, with its article.
func (r Kind) One() string {
	if strings.ContainsRune("aeiou", rune(r.Singular()[0])) {
		return "an " + r.Singular()
	}
	return "a " + r.Singular()
}

// Everywhere says that lists of a cluster hold what is not of that cluster: one that is not known has them, too.
func (r Kind) Everywhere() bool { return r.mixed }

// cutFirst is the importance of a column that says the same in every row.
const cutFirst = 100

// Table is how a list of the kind is written. What the scope says already need not be said in a column.
func (r Kind) Table(s command.Scope) printer.Table {
	columns := slices.Clone(r.columns)
	for i := range columns {
		if columns[i].Name == "Cluster" && s.Cluster != "" || columns[i].Name == "Namespace" && s.Namespace != "" {
			columns[i].Cut = cutFirst
		}
	}
	return printer.Table{Kind: r.Document, Plural: r.Names[1], Columns: columns}
}

// All are all kinds.
func All(a *command.Env) []Kind {
	return []Kind{
		Clusters(a), Catalogs(a), packages(a), operatorGroups(a), Subscriptions(a), installPlans(a),
		approvalPolicies(a), Operators(a), leftovers(a), operatorHubs(), roles(a), roleBindings(a), webhooks(a),
		fleetSubscriptions(a),
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
		spelling.DidYouMean(name, words), strings.Join(known, ", "))
}

// Within is where the names of the kind are looked for. Of the whole fleet are only those kinds that live in no
// namespace, and a catalog where no flag says otherwise.
func (r Kind) Within(a *command.Env, s command.Scope) (command.Scope, error) {
	if !r.scoped {
		return s, nil
	}
	return a.InContext(s)
}

// InContext reads a name of the command line, in the current context.
func (r Kind) InContext(a *command.Env, s command.Scope, name string) (client.Ref, error) {
	if strings.Contains(name, "/") { // it says where it is
		return r.Ref(s, name)
	}
	s, err := r.Within(a, s)
	if err != nil {
		return client.Ref{}, err
	}
	return r.Ref(s, name)
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
		return client.Ref{}, command.Usagef("%q is not a name of %s", name, r.One())
	}
}
