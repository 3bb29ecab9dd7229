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

// Target is what a command line names: a kind and perhaps things of it.
type Target struct {
	Kind Kind
	Refs []client.Ref
}

// ParseTarget reads "kind", "kind name...", or "kind/name".
func ParseTarget(a *command.Env, s command.Scope, args []string) (Target, error) {
	kind, first, slash := strings.Cut(args[0], "/")
	names := args[1:]
	if slash {
		if len(names) > 0 {
			return Target{}, command.Usagef("unexpected argument %q: %s names an object already", names[0], args[0])
		}
		names = []string{first}
	}
	r, err := Find(a, kind)
	if err != nil {
		return Target{}, err
	}
	t := Target{Kind: r}
	for _, n := range names {
		ref, err := r.Ref(s, n)
		if err != nil {
			return Target{}, err
		}
		t.Refs = append(t.Refs, ref)
	}
	return t, nil
}
