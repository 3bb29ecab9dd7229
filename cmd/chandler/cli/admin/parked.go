package admin

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// parkedCommand is chandler log parked: what consumers could not take, and the ways to go on.
func parkedCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "parked", Short: "Show events that a consumer could not process, and go on"}
	c.AddCommand(parkedListCommand(a), parkedShowCommand(a), parkedRetryCommand(a), parkedSkipCommand(a),
		parkedSkippedCommand(a))
	return c
}

func parkedListCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use:   "list [CONSUMER]",
		Short: "List events that a consumer could not process",
		Long: `Lists parked events: those that a consumer could not process, and the later events of the same streams, which wait
behind them. Other streams continue. Parked events are retried with back-off; chandler log parked retry does it at once.`,
		Example: `  chandler log parked list
  chandler log parked list resolver.scopes -o yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.Parked(ctx, command.First(args))
			return printer.List(a, &o, printer.Table{
				Plural: "parked events", Columns: printer.Columns("Consumer", "Stream", "Version", "Type", "Attempts",
					"Next", "Age", "Reason"),
			}, list, err, func(p model.ParkedEvent) printer.Item {
				retry := "behind another"
				if p.Attempts > 0 {
					retry = p.NextRetry.UTC().Format("15:04:05")
				}
				return printer.Item{Name: p.Stream, Value: p, Cells: []any{
					p.Consumer, p.Stream, p.Version, p.Type, p.Attempts, retry, printer.Age(a.Now(), p.Since), p.Reason,
				}}
			})
		}),
	}
	o.Flags(c)
	return c
}

func parkedShowCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "show CONSUMER STREAM VERSION",
		Short:   "Show the bytes of a parked event",
		Long:    "Shows the bytes of a parked event as the record held them. Control characters are escaped.",
		Example: "  chandler log parked show resolver.scopes csv:0d7d5b0e-8a43-5c0f-a5a6-6f5a2f3f9b22:1 3",
		Args:    cobra.ExactArgs(3), //nolint:mnd // CONSUMER STREAM VERSION
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			ref, err := parkedRef(args)
			if err != nil {
				return err
			}
			p, err := c.ParkedEvent(ctx, ref)
			if err != nil {
				return err
			}
			if p.Body == nil {
				return a.Say("%s: %s", p.Type, p.Reason)
			}
			return a.Say("%s: %s\n%s", p.Type, p.Reason, strconv.QuoteToGraphic(string(p.Body)))
		}),
	}
}

func parkedRef(args []string) (model.ParkedRef, error) {
	version, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil || version < 1 {
		return model.ParkedRef{}, command.Usagef("VERSION must be a number from 1, not %q", args[2])
	}
	return model.ParkedRef{Consumer: args[0], Stream: args[1], Version: version}, nil
}

func parkedRetryCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "retry CONSUMER [STREAM]",
		Short: "Retry parked events at once",
		Long: `Makes a consumer retry the parked events of one of its streams, or of all, without waiting for the next retry.
chandler log parked list shows consumers and streams.`,
		Example: "  chandler log parked retry resolver.scopes",
		Args:    cobra.RangeArgs(1, 2),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			in := model.RetryParked{Consumer: args[0], Stream: command.First(args[1:])}
			if err := c.RetryParked(ctx, in); err != nil {
				return err
			}
			return a.Say("%s retries its parked events", in.Consumer)
		}),
	}
}

func parkedSkipCommand(a *command.Env) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "skip CONSUMER STREAM VERSION",
		Short: "Have a consumer go on without an event, for good",
		Long: `Has a consumer go on without an event that it cannot process: the first parked one of its stream. The event stays in
the log, and what the consumer shows lacks it for good, also after a rebuild. The reason is kept with your actor id;
chandler log parked skipped shows it.`,
		Example: `  chandler log parked skip resolver.scopes csv:0d7d5b0e-8a43-5c0f-a5a6-6f5a2f3f9b22:1 3 --reason "broken disk"`,
		Args:    cobra.ExactArgs(3), //nolint:mnd // CONSUMER STREAM VERSION
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			ref, err := parkedRef(args)
			if err != nil {
				return err
			}
			if reason == "" {
				return command.Usagef("missing --reason")
			}
			if err := c.SkipParked(ctx, model.SkipParked{ParkedRef: ref, Reason: reason}); err != nil {
				return err
			}
			return a.Say("%s goes on without %s@%d", ref.Consumer, ref.Stream, ref.Version)
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "why; kept with your actor id")
	return c
}

func parkedSkippedCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use:     "skipped [CONSUMER]",
		Short:   "List events that consumers went on without",
		Long:    "Lists skipped events, the last first, with who decided that and why.",
		Example: "  chandler log parked skipped",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.Skipped(ctx, command.First(args))
			return printer.List(a, &o, printer.Table{
				Plural: "skipped events", Columns: printer.Columns("Consumer", "Stream", "Version", "Type", "By", "Age",
					"Why", "Reason"),
			}, list, err, func(p model.SkippedEvent) printer.Item {
				return printer.Item{Name: p.Stream, Value: p, Cells: []any{
					p.Consumer, p.Stream, p.Version, p.Type, p.SkippedBy, printer.Age(a.Now(), p.SkippedAt), p.Why,
					p.Reason,
				}}
			})
		}),
	}
	o.Flags(c)
	return c
}
