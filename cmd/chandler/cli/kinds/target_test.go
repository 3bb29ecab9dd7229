package kinds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	a := &command.Env{Streams: command.Streams{Env: func(string) (string, bool) { return "", false }}}
	here := command.Scope{Cluster: "c", Namespace: "n"}
	for name, c := range map[string]struct {
		scope command.Scope
		args  []string
		want  string // kind and keys, or a part of the error
	}{
		"all of a kind":          {here, []string{"subs"}, "subscription"},
		"names in a scope":       {here, []string{"sub", "a", "b"}, "subscription c/n/a c/n/b"},
		"a whole key":            {command.Scope{}, []string{"og", "x/y/z"}, "operatorgroup x/y/z"},
		"kind and key":           {command.Scope{}, []string{"CSV/x/y/z"}, "operator x/y/z"},
		"kind and name":          {here, []string{"ip/p"}, "installplan c/n/p"},
		"a cluster has no scope": {here, []string{"cluster", "x"}, "cluster x"},
		"a hub catalog":          {command.Scope{}, []string{"catalog", "x"}, "catalog x"},
		"a cluster's catalog":    {here, []string{"catsrc", "x"}, "catalog c/n/x"},
		"no scope":               {command.Scope{Cluster: "c"}, []string{"sub", "a"}, "needs --cluster"},
		"half a key":             {here, []string{"sub", "a/b"}, "is not a name"},
		"an empty part":          {here, []string{"sub", "a//b"}, "is not a name"},
		"a scoped cluster":       {here, []string{"cluster", "a/b/c"}, "is not a name"},
		"no such kind":           {here, []string{"pods"}, "unknown kind"},
		"a name too many":        {here, []string{"sub/a", "b"}, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, err := ParseTarget(a, c.scope, c.args)
			got := fmt.Sprint(err)
			if err == nil {
				got = target.Kind.Singular()
				for _, r := range target.Refs {
					got += " " + r.String()
				}
			}
			if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
				t.Errorf("target(%v) = %s, want %s", c.args, got, c.want)
			}
		})
	}
}

func TestNotFoundEqualsTheGateways(t *testing.T) {
	t.Parallel()
	err := notFound("install plan", client.Ref{Cluster: "c", Namespace: "n", Name: "x"})
	if !client.IsStatus(err, 404) || err.Error() != "there is no install plan c/n/x" {
		t.Errorf("notFound = %v", err)
	}
}
