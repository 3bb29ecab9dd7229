package objects

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

// describedEvents is how many of the newest events describe shows.
const describedEvents = 20

// DescribeCommand is chandler describe.
func DescribeCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	c := &cobra.Command{
		Use:   "describe (KIND NAME... | KIND/NAME...)",
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
	targets, err := kinds.ParseTargets(a, s, args)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if len(t.Refs) == 0 {
			return command.Usagef("missing name of the %s", t.Kind.Singular())
		}
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	first := true
	for _, t := range targets {
		for _, ref := range t.Refs {
			if !first {
				if _, err := fmt.Fprintln(a.Out); err != nil {
					return err
				}
			}
			first = false
			if err := describeOne(ctx, a, c, t.Kind, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func describeOne(ctx context.Context, a *command.Env, c *client.Client, k kinds.Kind, ref client.Ref) error {
	it, err := k.Get(ctx, c, ref)
	if err != nil {
		return k.Named(ctx, c, ref, err)
	}
	p := printer.NewPage(a.Out, a.Now)
	it.Describe(p)
	if err := kinds.DescribeSuggestions(ctx, c, p, it); err != nil {
		return err
	}
	if err := kinds.DescribeCheck(ctx, c, p, it); err != nil {
		return err
	}
	if err := kinds.DescribeComments(ctx, c, p, it); err != nil {
		return err
	}
	if it.Subject != "" { // a package has no events of its own
		if err := describeEvents(ctx, c, p, it); err != nil {
			return err
		}
	}
	return p.Flush()
}
