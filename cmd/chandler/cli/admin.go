package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/dev"
	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.say("chandler %s", service.Version()) },
	}
}

// connections are the two addresses that maintenance needs; none has a default, since the wrong
// database is worse than none.
type connections struct {
	database string
	nats     string
}

func (a *app) connectionFlags(c *cobra.Command, to *connections, withNATS bool) {
	c.Flags().StringVar(&to.database, "database-url", "", "Postgres, with a role that may do this (default CHANDLER_DATABASE_URL)")
	if withNATS {
		c.Flags().StringVar(&to.nats, "nats-url", "", "NATS (default CHANDLER_NATS_URL)")
	}
}

func (a *app) fill(c *connections, withNATS bool) error {
	for _, v := range []struct {
		into *string
		env  string
		need bool
	}{{&c.database, "CHANDLER_DATABASE_URL", true}, {&c.nats, "CHANDLER_NATS_URL", withNATS}} {
		if *v.into == "" {
			*v.into, _ = a.Env(v.env)
		}
		if *v.into == "" && v.need {
			return usagef("set %s", v.env)
		}
	}
	return nil
}

func (a *app) logger() *slog.Logger { return slog.New(slog.NewTextHandler(a.Err, nil)) }

func (a *app) migrateCommand() *cobra.Command {
	var conn connections
	c := &cobra.Command{
		Use:     "migrate",
		Short:   "Make or update the database; safe to repeat",
		Example: "  chandler migrate --database-url postgres://postgres@db.example.test/chandler",
		Long: `Makes roles, schemas and tables, or brings them to this version. It may be repeated, and repairs a
run that failed. The URL needs a role that may create roles.

CHANDLER_GATEWAY_PASSWORD, CHANDLER_RESOLVER_PASSWORD, CHANDLER_INSTALLER_PASSWORD and
CHANDLER_CATALOG_INDEXER_PASSWORD, where set, become the passwords of the services' roles.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.fill(&conn, false); err != nil {
				return err
			}
			o := migrate.Options{Log: a.logger(), Passwords: a.rolePasswords()}
			if err := migrate.Up(cmd.Context(), conn.database, o); err != nil {
				return err
			}
			return a.say("the database is at version %s", service.Version())
		},
	}
	a.connectionFlags(c, &conn, false)
	return c
}

// rolePasswords are those that the environment names, by database role.
func (a *app) rolePasswords() map[string]string {
	found := map[string]string{}
	for _, w := range []events.Writer{events.Gateway, events.Indexer, events.Resolver, events.Installer} {
		if password, ok := a.Env(service.Env(string(w) + "-password")); ok && password != "" {
			found[migrate.Role(w)] = password
		}
	}
	return found
}

func (a *app) busCommand() *cobra.Command {
	c := &cobra.Command{Use: "bus", Short: "Maintain the message bus"}
	var conn connections
	rebuild := &cobra.Command{
		Use:   "rebuild",
		Short: "Fill JetStream again from the record",
		Long: `Makes missing streams and publishes again what the record holds. Services do the same by themselves when they notice
a loss.`,
		Example: "  chandler bus rebuild --database-url postgres://chandler@db.example.test/chandler --nats-url nats://nats.example.test",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.fill(&conn, true); err != nil {
				return err
			}
			return a.rebuild(cmd.Context(), conn)
		},
	}
	a.connectionFlags(rebuild, &conn, true)
	c.AddCommand(rebuild, a.parkedCommand(), a.retryCommand())
	return c
}

// answerBound is how long a command waits for database and bus. A service waits for ever; whoever types wants to know.
const answerBound = 10 * time.Second

// within bounds how long something may take to answer.
func within[T any](ctx context.Context, what string, open func(context.Context) (T, error)) (T, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, answerBound, errs.New(errs.Unavailable, "%s does not answer within %s", what, answerBound))
	defer cancel()
	v, err := open(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = context.Cause(bounded)
	}
	return v, err
}

func (a *app) openDatabase(ctx context.Context, url string) (*pg.Pool, error) {
	return within(ctx, "the database", func(ctx context.Context) (*pg.Pool, error) { return pg.Open(ctx, url, pg.WithLog(a.logger())) })
}

func (a *app) rebuild(ctx context.Context, conn connections) (err error) {
	pool, err := a.openDatabase(ctx, conn.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := within(ctx, "NATS", func(ctx context.Context) (*bus.Bus, error) {
		return bus.Connect(ctx, conn.nats, bus.WithLog(a.logger()))
	})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := bus.Rebuild(ctx, b, eventlog.New(pool), pool); err != nil {
		return err
	}
	return a.say("the bus holds what the record says")
}

func (a *app) devCommand() *cobra.Command {
	o := dev.Options{Version: service.Version()}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run all of Chandler in this process, with its own Postgres and NATS",
		Long: `Runs the four services in one process with an embedded NATS and a private Postgres, until Ctrl-C.
What it records stays in the state folder and is there at the next start; --state "" forgets it.`,
		Example: `  chandler dev
  chandler dev --state '' --listen 127.0.0.1:0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("state") {
				o.State = a.defaultState()
			}
			o.Log, o.Ready = a.Err, a.devReady
			return dev.Run(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.State, "state", "", "folder for data (default ~/.local/state/chandler)")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "address of the API; port 0 takes a free one")
	f.StringVar(&o.LogLevel, "log-level", "warn", "debug, info, warn or error")
	f.DurationVar(&o.Drain, "drain", 10*time.Second, "bound of the ordered stop")
	return c
}

// devReady tells a person what to do next.
func (a *app) devReady(r dev.Running) error {
	return errors.Join(
		a.say("Chandler runs at %s (API document: %s/api/v1/openapi.yaml). In another terminal:", r.URL, r.URL),
		a.say(""),
		a.say("  export CHANDLER_URL=%s CHANDLER_TOKEN=%s", r.URL, r.Token),
		a.say("  chandler cluster add east-1 --kubeconfig FILE"),
		a.say("  chandler catalog add examples --directory PATH"),
		a.say(""),
		a.say("Ctrl-C stops it."),
	)
}

func (a *app) keysCommand() *cobra.Command {
	var secret string
	c := &cobra.Command{
		Use:   "keys",
		Short: "Make the secrets of a new installation",
		Long: `Writes new secrets: the administrator's token, the key pairs that protect kubeconfigs and credentials of
catalogs, the key that signs grants, the key of hooks, and the passwords of database and bus. Without a flag as an
environment file, which docker compose reads as .env; with --secret as a Secret of Kubernetes, which the chart
refers to.

The chart's Secret needs one more key, CHANDLER_ADMIN_DATABASE_URL: the database of the migration.`,
		Example: `  chandler keys > .env
  chandler keys --secret chandler | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.makeKeys(secret) },
	}
	c.Flags().StringVar(&secret, "secret", "", "write a Secret of this name")
	return c
}

func (a *app) makeKeys(secret string) error {
	k, err := keys.Make()
	if err != nil {
		return err
	}
	if wrong := validation.IsDNS1123Subdomain(secret); secret != "" && len(wrong) > 0 {
		return usagef("--secret %q is no name of a Secret: %s", secret, wrong[0])
	}
	if secret == "" {
		for _, v := range k.Variables() {
			if err := a.say("%s=%s", v.Name, v.Value); err != nil {
				return err
			}
		}
		return nil
	}
	s := corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, StringData: map[string]string{}}
	s.Name = secret
	for _, v := range k.Variables() {
		s.StringData[v.Name] = v.Value
	}
	raw, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, string(raw))
	return err
}

// parkedCommand shows what consumers could not take.
func (a *app) parkedCommand() *cobra.Command {
	var conn connections
	o := output{}
	c := &cobra.Command{
		Use:   "parked [CONSUMER]",
		Short: "Show events that a consumer could not take",
		Long: `Shows what is parked: an event that its consumer could not take, and the later events of that stream behind
it. Each is retried with back-off; bus retry does it at once.`,
		Example: `  chandler bus parked
  chandler bus parked gateway-clusters -o yaml`,
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
		Long: `Has a consumer try again what is parked of one of its streams, or of all, without waiting for the next retry.
chandler bus parked names consumers and streams.`,
		Example: "  chandler bus retry gateway-clusters",
		Args:    cobra.RangeArgs(1, 2),
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
	pool, err := a.openDatabase(ctx, conn.database)
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
