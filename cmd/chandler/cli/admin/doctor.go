package admin

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
)

// DoctorCommand is chandler doctor.
func DoctorCommand(a *command.Env) *cobra.Command {
	var conn connections
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether an installation is fit for production",
		Long: `Checks database and bus of an installation, one line for each check: ok, warn or fail, and what to do. It
changes nothing. It fails where a check fails: acknowledged changes may be lost, or services cannot work. Without
--nats-url and CHANDLER_NATS_URL the bus is left out. Some settings of PostgreSQL are shown to administrators and
members of pg_monitor only.`,
		Example: "  chandler doctor --database-url postgres://postgres@db.example.test/chandler",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, named := a.Env("CHANDLER_NATS_URL")
			withNATS := named || conn.nats.URL != ""
			if err := fill(a, &conn, withNATS); err != nil {
				return err
			}
			pool, err := openDatabase(cmd.Context(), a, conn.database)
			if err != nil {
				return err
			}
			defer pool.Close()
			return doctor(cmd.Context(), a, pool, conn)
		},
	}
	connectionFlags(c, &conn, true)
	return c
}

// verdict of a check.
type verdict string

const (
	fine    verdict = "ok"
	warning verdict = "warn"
	failure verdict = "fail"
)

// finding is one line: what was checked, how it is, and what to do if it is not as it should be.
type finding struct {
	check   string
	verdict verdict
	is      string
	todo    string
}

// doctor runs all checks. One that cannot be carried out is a failure, and the others go on.
func doctor(ctx context.Context, a *command.Env, pool *pg.Pool, conn connections) error {
	findings := []finding{schema(ctx, pool)}
	f, err := readFacts(ctx, pool)
	if err != nil {
		findings = append(findings, finding{
			"database", failure, err.Error(), "give the URL of an administrator, or of a role of Chandler",
		})
	} else {
		findings = append(findings, judge(f, a.Now())...)
	}
	if conn.nats.URL != "" {
		findings = append(findings, judgeNATS(ctx, a, conn.nats)...)
	}
	failed := 0
	for _, f := range findings {
		line := fmt.Sprintf("%-5s %-22s %s", f.verdict, f.check, f.is)
		if f.todo != "" && f.verdict != fine {
			line += ": " + f.todo
		}
		if err := a.Say("%s", line); err != nil {
			return err
		}
		if f.verdict == failure {
			failed++
		}
	}
	if failed > 0 {
		return command.Refusedf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

func schema(ctx context.Context, pool *pg.Pool) finding {
	if err := migrate.Check(ctx, pool, service.Version()); err != nil {
		return finding{"schema", failure, err.Error(), "chandler migrate"}
	}
	return finding{"schema", fine, "fits this release", ""}
}

// facts are what the checks of the database judge.
type facts struct {
	settings  map[string]string
	super     []string // roles of services that may do everything
	sync      int      // standbys that a commit waits for
	clock     time.Time
	stopped   int
	parked    int
	incidents int // of the last week
	models    int // versions of read models that have tables
	unused    int // those of them that no process uses just now
	mayMake   bool
	clear     int64 // bodies that are not sealed
	sealing   bool  // every live process opens sealed bodies
}

const factsSQL = `select
  (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')),
  clock_timestamp(),
  (select count(*) from eventlog.stops where resumed is null),
  (select count(*) from eventlog.parked p where not exists (select from eventlog.models m
    where m.consumer = p.consumer and m.used < now() - interval '10 minutes')),
  (select count(*) from eventlog.models),
  (select count(*) from eventlog.models m where not exists (select from eventlog.readers r
    where r.seen > now() - interval '1 minute' and m.consumer = any (r.types))),
  has_database_privilege('chandler_owner', current_database(), 'create'),
  gateway_api.clear_bodies(),
  exists (select from eventlog.needs where what = 'sealed-bodies'),
  (select count(*) from eventlog.incidents where at > now() - interval '7 days'),
  (select coalesce(array_agg(rolname::text order by rolname), '{}') from pg_roles
    where rolname like 'chandler\_%' and (rolsuper or rolbypassrls or rolcreaterole))`

func readFacts(ctx context.Context, pool *pg.Pool) (facts, error) {
	f := facts{settings: map[string]string{}}
	rows, err := pool.Query(ctx, `select name, setting from pg_settings where name = any ($1)`, []string{
		"fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "archive_mode",
		"max_connections", "superuser_reserved_connections",
	})
	if err != nil {
		return f, pg.Err(err)
	}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return f, pg.Err(err)
		}
		f.settings[name] = value
	}
	if err := rows.Err(); err != nil {
		return f, pg.Err(err)
	}
	err = pool.QueryRow(ctx, factsSQL).Scan(&f.sync, &f.clock, &f.stopped, &f.parked, &f.models, &f.unused,
		&f.mayMake, &f.clear, &f.sealing, &f.incidents, &f.super)
	return f, pg.Err(err)
}

const (
	// clockApart is how far the clock of the database may be from that of whoever asks.
	clockApart = 5 * time.Second
	// smallest is what two replicas of each service need of max_connections, with migration, backup and people.
	smallest = 2*(3*pg.MaxConns+pg.WorkConns+pg.RequestConns) + 10
)

// judge compares facts of the database with what production needs.
func judge(f facts, now time.Time) []finding {
	on := func(setting, todo string) finding {
		if v := f.settings[setting]; v != "on" {
			return finding{setting, failure, setting + " is " + orUnknown(v), todo}
		}
		return finding{setting, fine, "on", ""}
	}
	list := []finding{
		on("fsync", "set it to on: a crash loses acknowledged changes and may destroy the database"),
		on("full_page_writes", "set it to on, unless the file system writes pages whole"),
		commits(f.settings["synchronous_commit"]),
		standby(f),
		archive(f.settings["archive_mode"]),
		connectionsFit(f),
	}
	if apart := f.clock.Sub(now).Abs(); apart > clockApart {
		list = append(list, finding{
			"clock", warning, fmt.Sprintf("the clock of the database is %s away from this machine's", apart.Round(time.Second)),
			"let a time service keep both",
		})
	} else {
		list = append(list, finding{"clock", fine, "agrees with this machine's", ""})
	}
	return append(list,
		none("roles", failure, len(f.super), fmt.Sprintf("roles of services with rights beyond their own: %v", f.super),
			"alter role … nosuperuser nobypassrls nocreaterole"),
		none("effects", failure, f.stopped, "the record has lost commits, and effects are stopped",
			"compare the clusters with the record, then chandler effects resume"),
		none("parked events", warning, f.parked, fmt.Sprintf("%d events wait because one could not be taken", f.parked),
			"chandler log parked"),
		readModels(f),
		sealed(f),
		none("incidents", warning, f.incidents,
			fmt.Sprintf("%d in the last 7 days: fail-overs, restores or jumps of the clock", f.incidents),
			"select at, role, kind, detail from eventlog.incidents"))
}

func commits(v string) finding {
	switch v {
	case "on", "remote_apply":
		return finding{"synchronous_commit", fine, v, ""}
	case "remote_write":
		return finding{
			"synchronous_commit", warning, v, "set it to on: a standby that crashes with the server loses changes",
		}
	}
	return finding{
		"synchronous_commit", failure, "synchronous_commit is " + orUnknown(v),
		"set it to on: acknowledged changes may be lost",
	}
}

// standby fails without a synchronous standby: a fail-over to another loses acknowledged changes.
func standby(f facts) finding {
	const check = "synchronous standby"
	names := f.settings["synchronous_standby_names"]
	switch {
	case names == "":
		return finding{
			check, failure, "synchronous_standby_names is empty",
			"name a synchronous standby: a fail-over without one loses acknowledged changes, which stops all effects",
		}
	case f.sync == 0:
		return finding{
			check, warning, fmt.Sprintf("%q is configured, and none is connected or shown to this role", names),
			"look at pg_stat_replication as an administrator: without one, writes wait",
		}
	}
	return finding{check, fine, fmt.Sprintf("%d connected", f.sync), ""}
}

func archive(v string) finding {
	if v == "on" || v == "always" {
		return finding{"archiving", fine, v, ""}
	}
	return finding{
		"archiving", warning, "archive_mode is " + orUnknown(v),
		"archive the write-ahead log, or know that a restore goes back to the last backup",
	}
}

func connectionsFit(f facts) finding {
	const check = "max_connections"
	most, err := strconv.Atoi(f.settings[check])
	reserved, reservedErr := strconv.Atoi(f.settings["superuser_reserved_connections"])
	if err != nil || reservedErr != nil {
		return finding{check, warning, "is not shown to this role", "ask as an administrator"}
	}
	if most-reserved < smallest {
		return finding{
			check, failure, fmt.Sprintf("%d are left to services, two replicas of each need %d", most-reserved, smallest),
			"raise max_connections",
		}
	}
	return finding{check, fine, fmt.Sprintf("%d, two replicas of each service need %d", most, smallest), ""}
}

// readModels fails where no new version of a read model can be made. What another release has left goes by itself.
func readModels(f facts) finding {
	const check = "read models"
	if !f.mayMake {
		return finding{
			check, failure, "chandler_owner may not make schemas in this database, as after a restore",
			"chandler migrate, as the owner of the database",
		}
	}
	return finding{check, fine, fmt.Sprintf("%d versions have tables, %d of them are in use", f.models, f.models-f.unused), ""}
}

// sealed warns while bodies are in the clear: what sealing waits for is for a person to see to.
func sealed(f facts) finding {
	const check = "bodies at rest"
	switch {
	case f.clear == 0 && f.sealing:
		return finding{check, fine, "all are sealed", ""}
	case f.clear == 0:
		return finding{check, fine, "there are none yet", ""}
	case f.sealing:
		return finding{
			check, warning, fmt.Sprintf("%d are in the clear", f.clear),
			"the gateway seals them within minutes; where it does not, its log says why",
		}
	}
	return finding{
		check, warning, fmt.Sprintf("%d are in the clear, since a process of an older release runs, or no gateway", f.clear),
		"end processes of older releases (table eventlog.readers), and start a gateway",
	}
}

// none is fine where there is nothing of something.
func none(check string, bad verdict, n int, is, todo string) finding {
	if n == 0 {
		return finding{check, fine, "none", ""}
	}
	return finding{check, bad, is, todo}
}

func orUnknown(v string) string {
	if v == "" {
		return "not shown to this role"
	}
	return v
}

// judgeNATS checks whether the bus answers, and lets in whoever comes.
func judgeNATS(ctx context.Context, a *command.Env, address natsconn.Settings) []finding {
	b, err := within(ctx, "NATS", func(ctx context.Context) (*bus.Bus, error) {
		return bus.Connect(ctx, address, bus.WithLog(a.Logger()))
	})
	if err != nil {
		return []finding{{"NATS", failure, err.Error(), "look at its address and credentials"}}
	}
	defer b.Close()
	list := []finding{{"NATS", fine, "answers", ""}}
	if !b.Conn().AuthRequired() {
		host := ""
		if u, err := url.Parse(address.URL); err == nil {
			host = u.Hostname()
		}
		list = append(list, finding{
			"NATS authentication", failure, host + " lets in whoever can reach it",
			"give it accounts, and each service a user",
		})
	} else {
		list = append(list, finding{"NATS authentication", fine, "required", ""})
	}
	if err := b.Check(ctx); err != nil {
		kind := failure
		if errs.Is(err, errs.Unavailable) {
			kind = warning
		}
		list = append(list, finding{"NATS connection", kind, err.Error(), "look at the log of NATS"})
	}
	return list
}
