package fleetstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/fleet/rolloutstore"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// gateLease is for how long whoever evaluates a gate holds it: longer than an evaluation takes. Who is killed meanwhile
// leaves it to another one after that.
const gateLease = 2 * gate.MaxTimeoutSeconds * time.Second

// GateClaim is a gate that the caller evaluates now, and nobody else.
type GateClaim struct {
	Tenant     string
	Fleet      string
	Number     int
	State      rollout.State
	Gate       events.RolloutGate
	Round      int // of the state
	Evaluation string
	Clusters   []gate.Cluster // of the open wave
}

// loadEvaluated reads what the gates of a rollout said last.
func loadEvaluated(ctx context.Context, tx pgx.Tx, tenant, fleet string, number int) (
	map[string]rollout.Evaluation, error,
) {
	rows, err := tx.Query(ctx, `select gate, result, round, verdict, code, begun_at, ended_at
		from resolver.gate_evaluations where tenant = $1 and fleet = $2 and number = $3 and verdict <> ''`, tenant, fleet,
		number)
	if err != nil {
		return nil, err
	}
	out := map[string]rollout.Evaluation{}
	var name string
	var e rollout.Evaluation
	_, err = pgx.ForEachRow(rows, []any{&name, &e.ID, &e.Round, &e.Verdict, &e.Code, &e.Begun, &e.Ended}, func() error {
		e.Begun, e.Ended = e.Begun.UTC(), e.Ended.UTC()
		out[name] = e
		return nil
	})
	return out, err
}

// ClaimGates takes gates that are due and that nobody evaluates, at most so many. What a rollout is, is read after the
// round that it names was recorded: whatever is evaluated for it has begun after that.
func (f *Fleets) ClaimGates(ctx context.Context, limit int) (out []GateClaim, err error) {
	rows, err := f.pool.Query(ctx, `select tenant, fleet, number from resolver.rollouts where phase = $1
		and gates ? 'due' order by changed_at`, string(rollout.Progressing))
	if err != nil {
		return nil, fmt.Errorf("read which gates are due: %w", pg.Err(err))
	}
	type key struct {
		Tenant, Fleet string
		Number        int
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	if err != nil {
		return nil, fmt.Errorf("read which gates are due: %w", pg.Err(err))
	}
	for _, k := range list {
		if len(out) >= limit {
			break
		}
		err := f.pool.Tx(ctx, func(tx pgx.Tx) error {
			claimed, err := claimGates(ctx, tx, GateClaim{Tenant: k.Tenant, Fleet: k.Fleet, Number: k.Number},
				limit-len(out))
			out = append(out, claimed...)
			return err
		})
		if err != nil {
			return out, fmt.Errorf("claim gates of rollout %s/%d: %w", k.Fleet, k.Number, pg.Err(err))
		}
	}
	return out, nil
}

func claimGates(ctx context.Context, tx pgx.Tx, of GateClaim, limit int) (out []GateClaim, err error) {
	if of.State, err = rolloutstore.Load(ctx, tx, schema, of.Tenant, of.Fleet, of.Number); err != nil {
		return nil, err
	}
	of.Round = of.State.Gates.Round
	for _, g := range of.State.DueGates() {
		if len(out) >= limit {
			break
		}
		one := of
		one.Gate = g
		held, err := one.hold(ctx, tx)
		if err != nil {
			return nil, err
		}
		if !held {
			continue
		}
		if of.Clusters == nil {
			if of.Clusters, err = of.observed(ctx, tx); err != nil {
				return nil, err
			}
		}
		one.Clusters = of.Clusters
		out = append(out, one)
	}
	if len(out) > 0 { // what was asked for rollouts before is of no use any more
		err = exec(ctx, tx, `delete from resolver.gate_evaluations where tenant = $1 and fleet = $2 and number < $3`,
			of.Tenant, of.Fleet, of.Number)
	}
	return out, err
}

// hold takes the gate, unless somebody evaluates it, or did so just now.
func (c *GateClaim) hold(ctx context.Context, tx pgx.Tx) (bool, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return false, errs.Wrap(errs.Internal, err, "draw an id")
	}
	c.Evaluation = id.String()
	tag, err := tx.Exec(ctx, `insert into resolver.gate_evaluations as g
		(tenant, fleet, number, gate, round, evaluation, held_until) values ($1, $2, $3, $4, $5, $6, now() + $7)
		on conflict (tenant, fleet, number, gate) do update set round = excluded.round,
		  evaluation = excluded.evaluation, held_until = excluded.held_until,
		  successes = case when g.round = excluded.round then g.successes else 0 end,
		  verdict = case when g.round = excluded.round then g.verdict else '' end,
		  code = case when g.round = excluded.round then g.code else '' end
		where g.round < excluded.round or g.round = excluded.round and g.held_until < now() and g.next_at <= now()`,
		c.Tenant, c.Fleet, c.Number, c.Gate.Name, c.Round, c.Evaluation, gateLease)
	if err != nil {
		return false, pg.Err(err)
	}
	return tag.RowsAffected() == 1, nil
}

// observed is what is known of the clusters of the open wave.
func (c *GateClaim) observed(ctx context.Context, tx pgx.Tx) ([]gate.Cluster, error) {
	rows, err := tx.Query(ctx, `select r.cluster, r.outcome, r.reason, coalesce(k.labels, '{}'),
		  coalesce(k.kubernetes, ''), coalesce(k.removed or k.cordoned or k.state not in ('', $7), true),
		  coalesce(i.name, ''), coalesce(i.version, ''), coalesce(i.content, ''), coalesce(i.phase, ''),
		  coalesce(i.upgradeable, false)
		from resolver.rollout_clusters r
		left join resolver.clusters k on k.tenant = r.tenant and k.name = r.cluster
		left join lateral (select i.name, i.version, i.content, i.phase, i.upgradeable from resolver.installed i where i.tenant = r.tenant and i.cluster = r.cluster
		  and i.namespace = $5 and i.package = $6 order by (i.name = $8) desc, i.name limit 1) i on true
		where r.tenant = $1 and r.fleet = $2 and r.number = $3 and r.wave = $4 order by r.cluster`,
		c.Tenant, c.Fleet, c.Number, c.State.Wave, c.State.Started.Intent.Namespace, c.State.Started.Target.Package,
		stateConnected, c.State.Started.Target.CSV)
	if err != nil {
		return nil, err
	}
	out := []gate.Cluster{}
	var one gate.Cluster
	var labels json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{
		&one.Name, &one.State, &one.Reason, &labels, &one.Kubernetes, &one.Away, &one.CSV, &one.Version, &one.Content,
		&one.Phase, &one.Upgradeable,
	}, func() error {
		next := one
		err := json.Unmarshal(labels, &next.Labels)
		out = append(out, next)
		return err
	})
	return out, err
}

// EvaluateGate notes what an evaluation came to, and has the fleet subscription looked at where that is news. One that
// somebody else has taken over meanwhile, or for a round that is not the newest, is dropped.
func (f *Fleets) EvaluateGate(ctx context.Context, c GateClaim, r gate.Result, begun, ended time.Time) error {
	err := f.pool.Tx(ctx, func(tx pgx.Tx) error {
		var before, code string
		var successes int
		err := tx.QueryRow(ctx, `select verdict, code, successes from resolver.gate_evaluations where tenant = $1
			and fleet = $2 and number = $3 and gate = $4 and round = $5 and evaluation = $6 for update`, c.Tenant, c.Fleet,
			c.Number, c.Gate.Name, c.Round, c.Evaluation).Scan(&before, &code, &successes)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		verdict, why, now := r.Of(c.Gate, successes)
		if err := exec(ctx, tx, `update resolver.gate_evaluations set held_until = '-infinity', next_at = now() + $5,
			successes = $6, result = evaluation, verdict = $7, code = $8, begun_at = $9, ended_at = $10
			where tenant = $1 and fleet = $2 and number = $3 and gate = $4`, c.Tenant, c.Fleet, c.Number, c.Gate.Name,
			time.Duration(c.Gate.IntervalSeconds)*time.Second, now, verdict, why, begun, ended); err != nil {
			return err
		}
		if verdict == before && why == code {
			return nil
		}
		return due(ctx, tx, c.Tenant, c.Fleet)
	})
	if err != nil {
		return fmt.Errorf("note what gate %s of rollout %s/%d says: %w", c.Gate.Name, c.Fleet, c.Number, pg.Err(err))
	}
	return nil
}
