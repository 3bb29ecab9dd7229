package objects

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
)

// describedEvents is how many of the newest events describe shows.
const describedEvents = 20

// DescribeCommand is chandler describe.
func DescribeCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	c := &cobra.Command{
		Use:   "describe KIND NAME",
		Short: "Show an object in full, with its newest events",
		Long: `Shows an object in full, with its newest events. A subscription or an operator can be named by its package, its
subscription or its ClusterServiceVersion; an ambiguous name is an error that lists the candidates.`,
		Example: `  chandler describe subscription harbor-master --cluster east-1 -n ports
  chandler describe installplan/east-1/ports/install-7x2kq`,
		Args: command.RequireArgs(command.Unlimited),
		RunE: func(cmd *cobra.Command, args []string) error { return describe(cmd.Context(), a, s, args) },
	}
	s.Flags(c)
	return c
}

func describe(ctx context.Context, a *command.Env, s command.Scope, args []string) error {
	t, err := kinds.ParseTarget(a, s, args)
	if err != nil {
		return err
	}
	if len(t.Refs) == 0 {
		return command.Usagef("missing name of the %s", t.Kind.Singular())
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	for i, ref := range t.Refs {
		it, err := t.Kind.Get(ctx, c, ref)
		if err != nil {
			return command.OrNoCluster(ctx, c, ref.Cluster, err)
		}
		p := printer.NewPage(a.Out, a.Now)
		if i > 0 {
			p.Printf("\n")
		}
		it.Describe(p)
		if err := kinds.DescribeSuggestions(ctx, c, p, it); err != nil {
			return err
		}
		if err := kinds.DescribeCheck(ctx, c, p, it); err != nil {
			return err
		}
		if it.Subject != "" { // a package has no events of its own
			if err := describeEvents(ctx, c, p, it); err != nil {
				return err
			}
		}
		if err := p.Flush(); err != nil {
			return err
		}
	}
	return nil
}
