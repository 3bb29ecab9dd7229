package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// parkedCommand shows what consumers could not take.
func (a *app) parkedCommand() *cobra.Command {
	var conn connections
	o := output{}
	c := &cobra.Command{
		Use:   "parked [CONSUMER]",
		Short: "Show events that a consumer could not take",
		Long: `Shows what is parked: an event that its consumer could not take, and the later events of that stream behind
it. Each is retried with back-off; bus retry does it at once.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.onRecord(cmd.Context(), &conn, func(ctx context.Context, pool *pg.Pool) error {
				return a.showParked(ctx, pool, &o, first(args))
			})
		},
	}
	a.connectionFlags(c, &conn, false)
	o.flags(c)
	return c
}

// retryCommand has a parked stream tried again.
func (a *app) retryCommand() *cobra.Command {
	var conn connections
	c := &cobra.Command{
		Use:   "retry CONSUMER [STREAM]",
		Short: "Have parked events tried again at once",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onRecord(cmd.Context(), &conn, func(ctx context.Context, pool *pg.Pool) error {
				if err := bus.RetryParked(ctx, pool, args[0], first(args[1:])); err != nil {
					return err
				}
				return a.say("%s tries again", args[0])
			})
		},
	}
	a.connectionFlags(c, &conn, false)
	return c
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// onRecord does something with a connection to the database, for all tenants.
func (a *app) onRecord(ctx context.Context, conn *connections, do func(context.Context, *pg.Pool) error) error {
	if err := a.fill(conn, false); err != nil {
		return err
	}
	pool, err := pg.Open(ctx, conn.database, pg.WithLog(a.logger()))
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(ctx, pool)
}

func (a *app) showParked(ctx context.Context, pool *pg.Pool, o *output, consumer string) error {
	parked, err := bus.ListParked(ctx, pool, consumer)
	if err != nil {
		return err
	}
	if len(parked) == 0 && o.format == "" {
		return a.say("nothing is parked")
	}
	items := make([]item, 0, len(parked))
	for _, p := range parked {
		retry := "behind another"
		if p.Attempts > 0 {
			retry = p.NextRetry.UTC().Format("15:04:05")
		}
		items = append(items, item{
			name:  p.Stream,
			cells: []any{p.Consumer, p.Stream, p.Version, string(p.Type), p.Attempts, retry, a.age(p.Since), p.Reason},
			value: p,
		})
	}
	return o.write(a.Out, parkedColumns, items, false)
}

var parkedColumns = []column{
	{name: "CONSUMER"},
	{name: "STREAM"},
	{name: "VERSION"},
	{name: "TYPE"},
	{name: "ATTEMPTS"},
	{name: "NEXT"},
	{name: "AGE"},
	{name: "REASON"},
}
