package command

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/rules"
	"github.com/chandler-fleet/chandler/libs/spelling"
)

// Hint says on standard error how the rules are explained that a table names.
func (a *Env) Hint(named []string) error {
	hint := rules.Hint(strings.Join(named, " "))
	if hint == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.Err, hint)
	return err
}

// CheckCluster wants clusters that are known: a list of one that is not would be empty, as if it had nothing.
func CheckCluster(ctx context.Context, c *client.Client, names ...string) error {
	for _, name := range names {
		_, err := c.Cluster(ctx, name)
		if !client.IsStatus(err, http.StatusNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		all, err := c.Clusters(ctx, client.Selection{})
		if err != nil {
			return err
		}
		known := make([]string, len(all))
		for i := range all {
			known[i] = all[i].Name
		}
		return &client.Problem{
			Status: http.StatusNotFound,
			Detail: fmt.Sprintf("there is no cluster %s%s", name, spelling.DidYouMean(name, known)),
		}
	}
	return nil
}

// OrNoCluster says that the cluster is not known where that is why something in it is not.
func OrNoCluster(ctx context.Context, c *client.Client, cluster string, err error) error {
	if cluster == "" || !client.IsStatus(err, http.StatusNotFound) {
		return err
	}
	if other := CheckCluster(ctx, c, cluster); client.IsStatus(other, http.StatusNotFound) {
		return other
	}
	return err
}
