package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
)

// connections are the two addresses that maintenance needs; none has a default, since the wrong
// database is worse than none.
type connections struct {
	database string
	nats     natsconn.Settings
	streams  bus.StreamSettings
}

func connectionFlags(c *cobra.Command, to *connections, withNATS bool) {
	c.Flags().StringVar(&to.database, "database-url", "",
		"URL of Postgres, with a role that is allowed to do this (default CHANDLER_DATABASE_URL)")
	if withNATS {
		c.Flags().StringVar(&to.nats.URL, "nats-url", "", "URL of NATS (default CHANDLER_NATS_URL); who this is to NATS, and "+
			"its certificates, come from the same variables as those of a service, such as CHANDLER_NATS_NKEY_SEED")
	}
}

func fill(a *command.Env, c *connections, withNATS bool) error {
	if withNATS {
		url := c.nats.URL
		s := service.NewSettings("chandler")
		service.NATSSettings(&c.nats, s)
		if err := s.Load(nil, service.LookupEnv(a.Env)); err != nil {
			return err
		}
		c.nats.URL = url
		// The same as the installer's, or each would undo what the other one does.
		text, _ := a.Env("CHANDLER_NATS_STREAMS")
		var err error
		if c.streams, err = bus.ParseStreamSettings(text); err != nil {
			return err
		}
	}
	for _, v := range []struct {
		into *string
		env  string
		need bool
		help string
	}{
		{
			&c.database, "CHANDLER_DATABASE_URL", true, "this command works on the database of Chandler itself, not " +
				"through its API. Give --database-url or the variable: the URL of its PostgreSQL, with the role that " +
				"chandler migrate uses",
		},
		{
			&c.nats.URL, "CHANDLER_NATS_URL", withNATS, "this command works on NATS itself. Give --nats-url or the " +
				"variable: the URL that the services have",
		},
	} {
		if *v.into == "" {
			*v.into, _ = a.Env(v.env)
		}
		if *v.into == "" && v.need {
			return command.Usagef("missing %s: %s", v.env, v.help)
		}
	}
	return nil
}

// BusCommand is chandler bus.
func BusCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "bus", Short: "Maintain the message bus"}
	var conn connections
	var replace []string
	rebuild := &cobra.Command{
		Use:   "rebuild",
		Short: "Fill the JetStream streams again from the event log",
		Long: `Creates missing streams and publishes again what the event log holds. Services do the same when they notice that
messages are lost. They never delete a stream: one that is in the way, or that acknowledges nothing although NATS was
restarted, is named by the readiness of the installer, and --replace deletes it first, whosoever it is.

The user of NATS must be the administrator of the installation (chandler keys).`,
		Example: "  chandler bus rebuild --database-url postgres://chandler@db.example.test/chandler --nats-url " +
			"nats://nats.example.test\n" +
			"  chandler bus rebuild --replace CHANDLER_1a2b3c4d_PLANS",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fill(a, &conn, true); err != nil {
				return err
			}
			return rebuild(cmd.Context(), a, conn, replace)
		},
	}
	connectionFlags(rebuild, &conn, true)
	rebuild.Flags().StringSliceVar(&replace, "replace", nil, "delete this stream first, with all that is in it")
	c.AddCommand(rebuild)
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

func rebuild(ctx context.Context, a *command.Env, conn connections, replace []string) (err error) {
	pool, err := openDatabase(ctx, a, conn.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	log := eventlog.New(pool)
	installation, err := log.Installation(ctx)
	if err != nil {
		return err
	}
	b, err := within(ctx, "NATS", func(ctx context.Context) (*bus.Bus, error) {
		return bus.Connect(ctx, conn.nats, bus.WithLog(a.Logger()), bus.WithName(natsauth.Admin),
			bus.WithInstallation(installation.ID), bus.WithStreams(conn.streams))
	})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := bus.Rebuild(ctx, b, log, pool, replace...); err != nil {
		return err
	}
	return a.Say("the streams are filled from the event log")
}
