package kinds

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

// Kinds of things that people name by package, subscription or ClusterServiceVersion alike.
const (
	KindSubscription = "subscription"
	KindOperator     = "operator"
	KindCluster      = "cluster"
)

// Resolve is where the one thing is that a name means. What may be several is an error that lists them.
func Resolve(ctx context.Context, c *client.Client, kind string, r client.Ref) (client.Ref, error) {
	n, err := c.Named(ctx, kind, r)
	if err != nil {
		return r, command.OrNoCluster(ctx, c, r.Cluster, err)
	}
	r.Name = n.Name
	return r, nil
}

func notFound(kind string, r client.Ref) error {
	return &client.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no %s %s", kind, r)}
}

// Misspelt says that there is no cluster where an object is looked for, with the names that come near; nil where the
// cluster is known.
func (r Kind) Misspelt(ctx context.Context, c *client.Client, ref client.Ref) error {
	cluster := ref.Cluster
	if r.Singular() == KindCluster {
		cluster = ref.Name
	}
	if cluster == "" {
		return nil
	}
	return command.CheckCluster(ctx, c, cluster)
}

// Named is the error of an object that was asked for by its name; where its cluster is not known, it says so.
func (r Kind) Named(ctx context.Context, c *client.Client, ref client.Ref, err error) error {
	if !client.IsStatus(err, http.StatusNotFound) {
		return err
	}
	if other := r.Misspelt(ctx, c, ref); client.IsStatus(other, http.StatusNotFound) {
		return other
	}
	return err
}

// Target is what a command line names: a kind and perhaps things of it.
type Target struct {
	Kind Kind
	Refs []client.Ref
}

// ParseTarget reads "kind", "kind name...", or "kind/name": one kind.
func ParseTarget(a *command.Env, s command.Scope, args []string) (Target, error) {
	all, err := ParseTargets(a, s, args)
	switch {
	case err != nil:
		return Target{}, err
	case len(all) > 1:
		return Target{}, command.Usagef("%s: want objects of one kind", strings.Join(args, " "))
	}
	return all[0], nil
}

// ParseTargets reads "kind,kind", "kind name...", or "kind/name...".
func ParseTargets(a *command.Env, s command.Scope, args []string) ([]Target, error) {
	if strings.Contains(args[0], "/") {
		return slashTargets(a, s, args)
	}
	var all []Target
	for name := range strings.SplitSeq(args[0], ",") {
		found, err := findKinds(a, name)
		if err != nil {
			return nil, err
		}
		for _, k := range found {
			t := Target{Kind: k}
			for _, n := range args[1:] {
				ref, err := k.InContext(a, s, n)
				if err != nil {
					return nil, err
				}
				t.Refs = append(t.Refs, ref)
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// slashTargets reads "kind/name...", and keeps objects of one kind together that stand together.
func slashTargets(a *command.Env, s command.Scope, args []string) ([]Target, error) {
	var all []Target
	for _, arg := range args {
		kind, name, slash := strings.Cut(arg, "/")
		if !slash {
			return nil, command.Usagef("unexpected argument %q: after %s, all are KIND/NAME", arg, args[0])
		}
		k, err := Find(a, kind)
		if err != nil {
			return nil, err
		}
		ref, err := k.InContext(a, s, name)
		if err != nil {
			return nil, err
		}
		if n := len(all); n > 0 && all[n-1].Kind.Singular() == k.Singular() {
			all[n-1].Refs = append(all[n-1].Refs, ref)
			continue
		}
		all = append(all, Target{Kind: k, Refs: []client.Ref{ref}})
	}
	return all, nil
}

// kindsAll are those that "all" means: what was asked for in a namespace, and what came of it.
var kindsAll = []string{KindSubscription, KindOperator, "installplan", "operatorgroup"}

func findKinds(a *command.Env, name string) ([]Kind, error) {
	names := []string{name}
	if strings.EqualFold(name, "all") {
		names = kindsAll
	}
	var found []Kind
	for _, n := range names {
		k, err := Find(a, n)
		if err != nil {
			return nil, err
		}
		found = append(found, k)
	}
	return found, nil
}
