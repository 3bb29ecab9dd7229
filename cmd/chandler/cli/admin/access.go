package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// accessPage is how many requests are shown without --limit: a screen or two.
	accessPage = 100
	// refusedFrom is the lowest status of an answer that is an error.
	refusedFrom = 400
)

// accessCommand is chandler log access: who asked the API for what.
func accessCommand(a *command.Env) *cobra.Command {
	var (
		o       printer.Output
		f       model.AccessFilter
		limit   int
		refused bool
	)
	c := &cobra.Command{
		Use:   "access",
		Short: "List requests to the API",
		Long: `Lists requests to the API, newest first: who asked for what, with which token, from which address, and the status.
Refused requests of one address within a second are one line with their count. For administrators.`,
		Example: `  chandler log access --actor person-7q2k5xj3m4ra
  chandler log access --refused --limit 500 -o json`,
		Args: cobra.NoArgs,
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			if refused {
				f.MinStatus = refusedFrom
			}
			list, err := c.Access(ctx, f, limit)
			return printer.List(a, &o, printer.Table{
				Plural: "requests", Columns: append(printer.Columns("At", "Actor", "Token", "Address", "Method", "Path",
					"Status", "Took", "Count"), printer.Column{Name: "Via", Wide: true}),
			}, list, err, func(e model.AccessEntry) printer.Item {
				path := e.Path
				if path == "" {
					path = e.Route
				}
				return printer.Item{Name: e.Request, Value: e, Cells: []any{
					e.At.UTC().Format(time.RFC3339), e.Actor, e.Token, e.Address, e.Method, path, e.Status,
					time.Duration(e.TookMicros) * time.Microsecond, e.Count,
					printer.Or(e.Via, printer.None),
				}}
			})
		}),
	}
	o.Flags(c)
	c.Flags().StringVar(&f.Actor, "actor", "", "only of this actor")
	c.Flags().StringVar(&f.Token, "token-id", "", "only with this token")
	c.Flags().StringVar(&f.Address, "address", "", "only from this address")
	c.Flags().BoolVar(&refused, "refused", false, "only requests that were answered with an error")
	c.Flags().IntVar(&limit, "limit", accessPage, "at most so many, up to 500")
	return c
}

// eraseCommand is chandler log erase: what stands outside the log can go, and the log says so.
func eraseCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "erase COMMITMENT",
		Short: "Erase a configuration, annotations, a source or a reason, for good",
		Long: `Erases what events have a commitment to: the configuration of a subscription, annotations, the source
of a catalog, or the reason of an approver. chandler events -o json shows the commitments (c1:...). Events stay as
they are, and one more says who erased what. A decision that rested on it cannot be recomputed. Refused under a legal
hold, and while a subscription or catalog works with it. For administrators.`,
		Example: "  chandler log erase c1:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			e, err := c.EraseBody(ctx, args[0])
			if err != nil {
				return err
			}
			return a.Say("%s %s erased at %s by %s", e.Kind, e.ID, e.ErasedAt.UTC().Format(time.RFC3339), e.ErasedBy)
		}),
	}
}
