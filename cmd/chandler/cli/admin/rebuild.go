package admin

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// rebuiltEvery is how often the command looks how far a rebuild is.
const rebuiltEvery = 200 * time.Millisecond

// rebuildCommand is chandler log rebuild.
func rebuildCommand(a *command.Env) *cobra.Command {
	var conn connections
	var cancel, noWait bool
	c := &cobra.Command{
		Use:   "rebuild CONSUMER",
		Short: "Rebuild the tables of a consumer from the event log",
		Long: `Has the service of a consumer read the event log again from its beginning into tables beside the live
ones, which serve and decide meanwhile. The result is put in place in one transaction; after that, everything that the
tables know is looked at once more. A rebuild that is interrupted changes nothing and begins anew.

Only what is made of the log is rebuilt. Inputs of decisions, documents, content, keys, kubeconfigs, placements and
grants stay.

The consumers are resolver.scopes, installer.hub, catalog-indexer.intents, catalog-indexer.clusters, and versions of
read models of the gateway, such as projection/gateway.clusters/7: a gateway that has this version does it. The command
waits until the rebuild is done, and fails where it does; the service tries again until --cancel takes the request back.`,
		Example: "  chandler log rebuild resolver.scopes " +
			"--database-url postgres://postgres@db.example.test/chandler\n" +
			"  chandler log rebuild resolver.scopes --cancel",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fill(a, &conn, false); err != nil {
				return err
			}
			pool, err := openDatabase(cmd.Context(), a, conn.database)
			if err != nil {
				return err
			}
			defer pool.Close()
			if cancel {
				return cancelRebuild(cmd.Context(), a, pool, args[0])
			}
			return askRebuild(cmd.Context(), a, pool, args[0], !noWait)
		},
	}
	connectionFlags(c, &conn, false)
	c.Flags().BoolVar(&cancel, "cancel", false, "take the request back")
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until the rebuild is done")
	return c
}

func askRebuild(ctx context.Context, a *command.Env, pool *pg.Pool, consumer string, wait bool) error {
	var known bool
	if err := pool.QueryRow(ctx, `select eventlog.ask_rebuild($1)`, consumer).Scan(&known); err != nil {
		return pg.Err(err)
	}
	if !known {
		return errs.New(errs.NotFound, "there is no consumer %q", consumer)
	}
	if !wait {
		return a.Say("the rebuild of %s is asked for", consumer)
	}
	t := time.NewTicker(rebuiltEvery)
	defer t.Stop()
	for {
		var asked bool
		var failed string
		err := pool.QueryRow(ctx, `select count(*) > 0, coalesce(max(failed), '') from eventlog.rebuilds
			where consumer = $1`, consumer).Scan(&asked, &failed)
		switch {
		case err != nil:
			return pg.Err(err)
		case !asked:
			return a.Say("%s is rebuilt", consumer)
		case failed != "":
			return errs.New(errs.Unavailable, "the service tries again, since it failed: %s", strings.TrimSpace(failed))
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func cancelRebuild(ctx context.Context, a *command.Env, pool *pg.Pool, consumer string) error {
	var was bool
	if err := pool.QueryRow(ctx, `select eventlog.drop_rebuild($1)`, consumer).Scan(&was); err != nil {
		return pg.Err(err)
	}
	if !was {
		return errs.New(errs.NotFound, "no rebuild of %q is asked for", consumer)
	}
	return a.Say("the rebuild of %s is taken back", consumer)
}
