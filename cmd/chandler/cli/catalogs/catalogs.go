// Package catalogs holds the commands about catalogs of the fleet and what they offer: chandler catalog and chandler
// packages.
package catalogs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/objects"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/sources"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Command is chandler catalog.
func Command(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "catalog", Short: "Manage catalogs of the fleet, and inspect their content"}
	c.AddCommand(catalogAddCommand(a), objects.ListCommand(a, "catalogs"), catalogRefreshCommand(a),
		catalogRemoveCommand(a),
		catalogSwitchCommand(a, "disable", "Stop offering a catalog", disableHelp, true),
		catalogSwitchCommand(a, "enable", "Offer a catalog again", enableHelp, false),
		catalogPackagesCommand(a), findingsCommand(a), revisionsCommand(a), blobsCommand(a), secretCommand(a),
		hookCommand(a), healthCommand(a))
	addCatalogTools(a, c)
	return c
}

// What switching a catalog off and on does.
const (
	disableHelp = `Stops offering a catalog until chandler catalog enable: nothing is installed or upgraded from it. Operators that are
installed from it stay, and the catalog is still polled.`
	enableHelp = "Offers a catalog again that chandler catalog disable or an OperatorHub has disabled."
)

func catalogAddCommand(a *command.Env) *cobra.Command {
	var in model.AddCatalog
	var flags sources.Flags
	var strict bool
	c := &cobra.Command{
		Use: "add NAME (--directory | --archive | --git | --image | --template | --layout | --grpc | --configmap | " +
			"--sqlite) PLACE",
		Short: "Add a catalog for the fleet, or for one namespace of one cluster",
		Long: `Adds a catalog from exactly one source. The indexer reads it at once, and again at every --poll interval. Without
--cluster it is a catalog of the whole fleet; with --cluster and -n one of that namespace. The indexer reads the
source: a directory or file must be on its machine. --secret names stored credentials; they can be stored later, and
until then the catalog reports what is missing.`,
		Example: `  chandler catalog add examples --directory /srv/catalogs/examples --priority 10
  chandler catalog add fleet --image registry.example.test/fleet:v1 --secret dock-pull --poll 30m
  chandler catalog add own --git https://git.example.test/catalog.git --reference main --secret git-bot`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name, in.Display = args[0], flags.Display()
			var err error
			if in.Source, err = flags.Source(); err != nil {
				return command.BadFlags(err)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			validate := model.ValidateDefault
			if strict {
				validate = model.ValidateStrict
			}
			out, err := c.AddCatalog(cmd.Context(), in, validate)
			if err != nil {
				return err
			}
			return a.Say("catalog/%s added", kinds.CatalogRef(out))
		},
	}
	flags.Register(c)
	f := c.Flags()
	f.Int32Var(&in.Priority, "priority", 0, "higher is preferred")
	f.StringVar(&in.Cluster, "cluster", "", "add it to this cluster only, with -n")
	f.StringVarP(&in.Namespace, "namespace", "n", "", "namespace of a cluster's catalog")
	f.StringVar(&in.Visibility, "visibility", "",
		"who sees a cluster's catalog: cluster or namespace (default: by the gateway's setting "+
			"global-catalog-namespaces)")
	f.BoolVar(&in.Disabled, "disabled", false, "add it without offering it yet")
	f.BoolVar(&strict, "strict", false, "refuse secrets that are not stored yet")
	return c
}

// onCatalog makes of a command with its texts one that does one thing with one catalog.
func onCatalog(a *command.Env, texts cobra.Command,
	do func(ctx context.Context, c *client.Client, r client.Ref) error,
) *cobra.Command {
	texts.Use += " NAME"
	texts.Args = command.RequireArgs(1)
	texts.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := kinds.Catalogs(a).Ref(command.Scope{}, args[0])
		if err != nil {
			return err
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, ref)
	}
	return &texts
}

func catalogRefreshCommand(a *command.Env) *cobra.Command {
	return onCatalog(a, cobra.Command{
		Use: "refresh", Short: "Poll the source now",
		Long: `Makes the indexer poll the source of a catalog at once. chandler describe catalog shows the result. A catalog of a
namespace is named cluster/namespace/name.`,
		Example: `  chandler catalog refresh fleet
  chandler catalog refresh east-1/ports/own`,
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if _, err := c.RefreshCatalog(ctx, r); err != nil {
			return err
		}
		return a.Say("catalog/%s is being polled", r)
	})
}

func catalogSwitchCommand(a *command.Env, use, short, long string, disabled bool) *cobra.Command {
	return onCatalog(a, cobra.Command{Use: use, Short: short, Long: long, Example: "  chandler catalog " + use +
		" fleet"}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if _, err := c.PatchCatalog(ctx, r, map[string]any{"disabled": disabled}); err != nil {
			return err
		}
		return a.Say("catalog/%s %sd", r, use)
	})
}

func catalogRemoveCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a catalog; operators installed from it stay", Args: command.RequireArgs(1),
		Long: `Removes a catalog for good. Operators that are installed from it stay and are kept up; subscriptions to it report
that their catalog is missing. A catalog of a namespace is named cluster/namespace/name.`,
		Example: `  chandler catalog remove fleet
  chandler catalog remove east-1/ports/own`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return objects.Remove(cmd.Context(), a, kinds.Catalogs(a), args[0])
		},
	}
}

// addCatalogTools puts the commands for authors beside those that ask Chandler, and what a catalog at hand
// holds below "catalog list".
func addCatalogTools(a *command.Env, parent *cobra.Command) {
	const groupAsk, groupTools = "ask", "tools"
	parent.AddGroup(&cobra.Group{ID: groupAsk, Title: "Catalogs of the fleet:"},
		&cobra.Group{ID: groupTools, Title: "Writing and curating catalogs, without a server:"})
	for _, c := range parent.Commands() {
		c.GroupID = groupAsk
		if c.Name() == "list" {
			c.AddCommand(author.ListCommands(authorEnv(a))...)
		}
	}
	for _, c := range author.Commands(authorEnv(a)) {
		c.GroupID = groupTools
		parent.AddCommand(c)
	}
}

func authorEnv(a *command.Env) author.Env {
	return author.Env{In: a.In, Out: a.Out, Err: a.Err, Lookup: a.Env}
}
