package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// connections are the two addresses that maintenance needs; none has a default, since the wrong
// database is worse than none.
type connections struct {
	database string
	nats     string
}

func connectionFlags(c *cobra.Command, to *connections, withNATS bool) {
	c.Flags().StringVar(&to.database, "database-url", "",
		"URL of Postgres, with a role that is allowed to do this (default CHANDLER_DATABASE_URL)")
	if withNATS {
		c.Flags().StringVar(&to.nats, "nats-url", "", "URL of NATS (default CHANDLER_NATS_URL)")
	}
}

func fill(a *command.Env, c *connections, withNATS bool) error {
	for _, v := range []struct {
		into *string
		env  string
		need bool
	}{{&c.database, "CHANDLER_DATABASE_URL", true}, {&c.nats, "CHANDLER_NATS_URL", withNATS}} {
		if *v.into == "" {
			*v.into, _ = a.Env(v.env)
		}
		if *v.into == "" && v.need {
			return command.Usagef("missing %s", v.env)
		}
	}
	return nil
}

// BusCommand is chandler bus.
func BusCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "bus", Short: "Maintain the message bus"}
	var conn connections
	rebuild := &cobra.Command{
		Use:   "rebuild",
		Short: "Fill the JetStream streams again from the event log",
		Long: `Creates missing streams and publishes again what the event log holds. Services do the same when they notice that
messages are lost.`,
		Example: "  chandler bus rebuild --database-url postgres://chandler@db.example.test/chandler --nats-url " +
			"nats://nats.example.test",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fill(a, &conn, true); err != nil {
				return err
			}
			return rebuild(cmd.Context(), a, conn)
		},
	}
	connectionFlags(rebuild, &conn, true)
	c.AddCommand(rebuild, parkedCommand(a), retryCommand(a))
	return c
}

// answerBound is how long a command waits for database and bus. A service waits for ever; whoever types wants to know.
const answerBound = 10 * time.Second

// within bounds how long something may take to answer.
func within[T any](ctx context.Context, what string, open func(context.Context) (T, error)) (T, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, answerBound,
		errs.New(errs.Unavailable, "%s does not answer within %s", what, answerBound))
	defer cancel()
	v, err := open(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = context.Cause(bounded)
	}
	return v, err
}

func openDatabase(ctx context.Context, a *command.Env, url string) (*pg.Pool, error) {
	return within(ctx, "the database", func(ctx context.Context) (*pg.Pool, error) {
		return pg.Open(
			ctx, url, pg.WithLog(a.Logger()))
	})
}

func rebuild(ctx context.Context, a *command.Env, conn connections) (err error) {
	pool, err := openDatabase(ctx, a, conn.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := within(ctx, "NATS", func(ctx context.Context) (*bus.Bus, error) {
		return bus.Connect(ctx, conn.nats, bus.WithLog(a.Logger()))
	})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := bus.Rebuild(ctx, b, eventlog.New(pool), pool); err != nil {
		return err
	}
	return a.Say("the streams are filled from the event log")
}

// parkedCommand shows what consumers could not take.
func parkedCommand(a *command.Env) *cobra.Command {
	var conn connections
	o := printer.Output{}
	c := &cobra.Command{
		Use:   "parked [CONSUMER]",
		Short: "List events that a consumer could not process",
		Long: `Lists parked events: those that a consumer could not process, and the later events of the same streams, which wait
behind them. They are retried with back-off; chandler bus retry does it at once.`,
		Example: `  chandler bus parked
  chandler bus parked gateway-clusters -o yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onRecord(cmd.Context(), a, &conn, func(ctx context.Context, pool *pg.Pool) error {
				return showParked(ctx, a, pool, &o, command.First(args))
			})
		},
	}
	connectionFlags(c, &conn, false)
	o.Flags(c)
	return c
}

// retryCommand has a parked stream tried again.
func retryCommand(a *command.Env) *cobra.Command {
	var conn connections
	c := &cobra.Command{
		Use:   "retry CONSUMER [STREAM]",
		Short: "Retry parked events at once",
		Long: `Makes a consumer retry the parked events of one of its streams, or of all, without waiting for the next retry.
chandler bus parked lists consumers and streams.`,
		Example: "  chandler bus retry gateway-clusters",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onRecord(cmd.Context(), a, &conn, func(ctx context.Context, pool *pg.Pool) error {
				if err := bus.RetryParked(ctx, pool, args[0], command.First(args[1:])); err != nil {
					return err
				}
				return a.Say("%s retries its parked events", args[0])
			})
		},
	}
	connectionFlags(c, &conn, false)
	return c
}

// onRecord does something with a connection to the database, for all tenants.
func onRecord(ctx context.Context, a *command.Env, conn *connections, do func(context.Context, *pg.Pool) error) error {
	if err := fill(a, conn, false); err != nil {
		return err
	}
	pool, err := openDatabase(ctx, a, conn.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(ctx, pool)
}

func showParked(ctx context.Context, a *command.Env, pool *pg.Pool, o *printer.Output, consumer string) error {
	parked, err := bus.ListParked(ctx, pool, consumer)
	if err != nil {
		return err
	}
	if len(parked) == 0 && o.Format == "" {
		return a.Say("no parked events")
	}
	items := make([]printer.Item, 0, len(parked))
	for _, p := range parked {
		retry := "behind another"
		if p.Attempts > 0 {
			retry = p.NextRetry.UTC().Format("15:04:05")
		}
		items = append(items, printer.Item{
			Name: p.Stream,
			Cells: []any{
				p.Consumer, p.Stream, p.Version, string(p.Type), p.Attempts, retry,
				printer.Age(a.Now(), p.Since), p.Reason,
			},
			Value: p,
		})
	}
	return o.Write(a.Out, parkedColumns, items, false)
}

var parkedColumns = []printer.Column{
	{Name: "CONSUMER"},
	{Name: "STREAM"},
	{Name: "VERSION"},
	{Name: "TYPE"},
	{Name: "ATTEMPTS"},
	{Name: "NEXT"},
	{Name: "AGE"},
	{Name: "REASON"},
}
