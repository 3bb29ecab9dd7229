// Package rolloutstore keeps rollouts in tables, folded from their events by the rules of libs/fleet/rollout. The
// schemas of the resolver and the gateway have the same two tables, rollouts and rollout_clusters.
package rolloutstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Subject takes the subject of a rollout apart: fleet subscription/number.
func Subject(subject string) (fleet string, number int, err error) {
	fleet, text, ok := strings.Cut(subject, "/")
	number, err = strconv.Atoi(text)
	if !ok || err != nil || number < 1 {
		return "", 0, errs.New(errs.Internal, "subject %q is not fleet subscription/number", subject)
	}
	return fleet, number, nil
}

// Fold folds an event of a rollout into the tables of a schema. One that is in them already changes nothing.
func Fold(ctx context.Context, tx pgx.Tx, schema string, e eventlog.Recorded) error {
	fleet, number, err := Subject(e.Subject)
	if err != nil {
		return err
	}
	t := table{tx: tx, schema: schema, tenant: e.Tenant, fleet: fleet, number: number}
	version, err := t.lock(ctx)
	if err != nil || e.Version <= version {
		return err
	}
	before, err := t.load(ctx, touched(e.Payload))
	if err != nil {
		return err
	}
	after, err := rollout.Evolve(before, e.Payload, e.Time)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "fold event %s of rollout %s", e.ID, e.Subject)
	}
	return t.put(ctx, before, after, e)
}

// Load reads a rollout whole; its phase is "" where there is none.
func Load(ctx context.Context, tx pgx.Tx, schema, tenant, fleet string, number int) (rollout.State, error) {
	return table{tx: tx, schema: schema, tenant: tenant, fleet: fleet, number: number}.load(ctx, every)
}

// LoadBefore reads the rollouts of a fleet subscription before one, whole, newest first, as far as one can go back.
func LoadBefore(ctx context.Context, tx pgx.Tx, schema, tenant, fleet string, number int) ([]rollout.State, error) {
	t := table{tx: tx, schema: schema, tenant: tenant, fleet: fleet, number: number}
	rows, err := tx.Query(ctx, t.sql(`select number from @rollouts where tenant = $1 and fleet = $2 and number < $3
		order by number desc limit $4`), t.key(rollout.MaxBack)...)
	if err != nil {
		return nil, t.wrap(err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, t.wrap(err)
	}
	out := make([]rollout.State, len(numbers))
	for i, n := range numbers {
		if out[i], err = Load(ctx, tx, schema, tenant, fleet, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// HoldNewest has nobody begin another rollout of a fleet subscription, or have the newest one taken back, until the
// transaction ends. Who begins one, and who asks for a rollback, holds it and looks which one is the newest then.
func HoldNewest(ctx context.Context, tx pgx.Tx, tenant, fleet string) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, "rollouts/"+tenant+"/"+fleet)
	return pg.Err(err)
}

// every stands for all clusters of a rollout; no cluster has the name.
const every = "*"

// touched is the cluster that an event is about, every where it may be about all, "" where it is about none. An event
// of one cluster must not cost what a thousand do.
func touched(p events.Payload) string {
	switch e := p.(type) {
	case events.RolloutClusterDirected:
		return e.Cluster
	case events.RolloutClusterSettled:
		return e.Cluster
	case events.RolloutClusterSkipped:
		return e.Cluster
	case events.RolloutClusterRetried:
		return e.Cluster
	case events.RolloutResumed:
		return every
	default:
		return ""
	}
}

// table is one rollout in the tables of a schema.
type table struct {
	tx             pgx.Tx
	schema, tenant string
	fleet          string
	number         int
}

// sql puts the schema, which is a name of this program, in the place of @.
func (t table) sql(text string) string { return strings.ReplaceAll(text, "@", t.schema+".") }

func (t table) key(more ...any) []any { return append([]any{t.tenant, t.fleet, t.number}, more...) }

// lock returns the version of the stream that is folded; 0 for none.
func (t table) lock(ctx context.Context) (version int64, err error) {
	err = t.tx.QueryRow(ctx, t.sql(`select stream_version from @rollouts where tenant = $1 and fleet = $2 and number = $3
		for update`), t.key()...).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return version, t.wrap(err)
}

func (t table) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rollout %s/%d: %w", t.fleet, t.number, pg.Err(err))
}

// load reads a rollout with one of its clusters, with every one, or with none.
func (t table) load(ctx context.Context, cluster string) (s rollout.State, err error) {
	var started, gates json.RawMessage
	var phase string
	err = t.tx.QueryRow(ctx, t.sql(`select phase, reason, wave, passed, promoted, rollback_to, started, gates
		from @rollouts
		where tenant = $1 and fleet = $2 and number = $3`), t.key()...).
		Scan(&phase, &s.Reason, &s.Wave, &s.Passed, &s.Promoted, &s.RolledBackTo, &started, &gates)
	if errors.Is(err, pgx.ErrNoRows) {
		return rollout.State{}, nil
	}
	if err == nil {
		err = errors.Join(json.Unmarshal(started, &s.Started), json.Unmarshal(gates, &s.Gates))
	}
	if err != nil {
		return s, t.wrap(err)
	}
	s.Phase, s.Clusters = rollout.Phase(phase), map[string]rollout.Cluster{}
	if cluster == "" {
		return s, nil
	}
	rows, err := t.tx.Query(ctx, t.sql(`select cluster, wave, attempt, directive, outcome, reason, since, forgiven
		from @rollout_clusters where tenant = $1 and fleet = $2 and number = $3 and ($4 = '*' or cluster = $4)`),
		t.key(cluster)...)
	if err != nil {
		return s, t.wrap(err)
	}
	var name string
	var c rollout.Cluster
	_, err = pgx.ForEachRow(rows, []any{
		&name, &c.Wave, &c.Attempt, &c.Directive, &c.Outcome, &c.Reason, &c.Since, &c.Forgiven,
	}, func() error {
		s.Clusters[name] = c
		return nil
	})
	return s, t.wrap(err)
}

// put writes what an event made of a rollout.
func (t table) put(ctx context.Context, before, after rollout.State, e eventlog.Recorded) error {
	b := &pgx.Batch{}
	gates, err := json.Marshal(after.Gates)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode the gates of rollout %s/%d", t.fleet, t.number)
	}
	if before.Phase == "" {
		started, err := json.Marshal(after.Started)
		if err != nil {
			return errs.Wrap(errs.Internal, err, "encode rollout %s/%d", t.fleet, t.number)
		}
		b.Queue(t.sql(`insert into @rollouts (tenant, fleet, number, stream_version, phase, wave, passed, started,
			started_at, changed_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)`),
			t.key(e.Version, string(after.Phase), after.Wave, after.Passed, started, e.Time)...)
	} else {
		b.Queue(t.sql(`update @rollouts set stream_version = $4, phase = $5, reason = $6, wave = $7, passed = $8,
			promoted = $9, changed_at = $10, gates = $11, rollback_to = $12
			where tenant = $1 and fleet = $2 and number = $3`),
			t.key(e.Version, string(after.Phase), after.Reason, after.Wave, after.Passed, after.Promoted, e.Time,
				gates, after.RolledBackTo)...)
	}
	for name, c := range after.Clusters {
		if was, there := before.Clusters[name]; there && same(was, c) {
			continue
		}
		b.Queue(t.sql(`insert into @rollout_clusters (tenant, fleet, number, cluster, wave, attempt, directive, outcome,
			reason, since, forgiven) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			on conflict (tenant, fleet, number, cluster) do update set attempt = excluded.attempt,
			directive = excluded.directive, outcome = excluded.outcome, reason = excluded.reason,
			since = excluded.since, forgiven = excluded.forgiven`),
			t.key(name, c.Wave, c.Attempt, c.Directive, c.Outcome, c.Reason, c.Since, c.Forgiven)...)
	}
	return t.wrap(t.tx.SendBatch(ctx, b).Close())
}

func same(a, b rollout.Cluster) bool {
	sameTime := a.Since.Equal(b.Since)
	a.Since, b.Since = time.Time{}, time.Time{}
	return sameTime && a == b
}
