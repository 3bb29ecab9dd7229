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
		Short: "Show everything about one thing, with its newest events",
		Long: `Shows everything about one thing, with its newest events. A subscription or an operator may be named by its package,
its subscription or its ClusterServiceVersion; what may be several is an error that lists them.`,
		Example: `  chandler describe subscription harbor-master --cluster east-1 -n ports
  chandler describe installplan/east-1/ports/install-7x2kq`,
		Args: command.Needs(command.Many),
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
		return command.Usagef("which %s? say its name", t.Kind.Singular())
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
		if err := kinds.DescribeRemedies(ctx, c, p, it); err != nil {
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
