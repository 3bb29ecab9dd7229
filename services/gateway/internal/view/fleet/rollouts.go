package fleet

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/fleet/rolloutstore"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// rolloutColumns leave out which clusters are in each wave and have which override: of a list nobody asks for them,
// and there may be thousands.
const rolloutColumns = `select r.fleet, r.number, r.stream_version, r.phase, r.reason, r.wave, r.passed, r.promoted,
	r.gates, r.rollback_to, r.rollback_by, r.rollback_words, r.started_at, r.changed_at, (r.started - 'waves' - 'overrides' - 'conflicts') || jsonb_build_object('waves', coalesce((select
		jsonb_agg(w.one - 'clusters' order by w.i) from jsonb_array_elements(r.started -> 'waves') with ordinality w(one, i)),
		'[]')) as started
	from rollouts r`

type rolloutRow struct {
	Fleet         string
	Number        int
	StreamVersion int64
	Phase         string
	Reason        string
	Wave          int
	Passed        int
	Promoted      bool
	Gates         rollout.Gates
	RollbackTo    int
	RollbackBy    string
	RollbackWords string
	StartedAt     time.Time
	ChangedAt     time.Time
	Started       events.RolloutStarted
}

func (r rolloutRow) state() rollout.State {
	return rollout.State{
		Started: r.Started, Phase: rollout.Phase(r.Phase), Reason: r.Reason, Wave: r.Wave, Passed: r.Passed,
		Promoted: r.Promoted, Gates: r.Gates, RolledBackTo: r.RollbackTo,
	}
}

// dated adds what the state does not know.
func (r rolloutRow) dated(m fleetmodel.Rollout) fleetmodel.Rollout {
	m.StartedAt, m.UpdatedAt, m.Version = r.StartedAt, r.ChangedAt, r.StreamVersion
	if m.RolledBack != nil {
		m.RolledBack.By, m.RolledBack.Body = r.RollbackBy, r.RollbackWords
	}
	return m
}

// rolloutPage reads rollouts with the numbers of their clusters, newest first within a fleet subscription.
func rolloutPage(
	ctx context.Context, tx pgx.Tx, tenant string, w readmodel.Where, limit int,
) (items []fleetmodel.Rollout, more bool, err error) {
	rows, more, err := readmodel.Page[rolloutRow](ctx, tx, rolloutColumns, w, "r.fleet, r.number desc", limit)
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	fleets, numbers := make([]string, len(rows)), make([]int, len(rows))
	counts := map[string][]fleetmodel.RolloutCounts{}
	for i, r := range rows {
		fleets[i], numbers[i] = r.Fleet, r.Number
		counts[fleetmodel.RolloutSubject(r.Fleet, r.Number)] = make([]fleetmodel.RolloutCounts, len(r.Started.Waves))
	}
	counted, err := tx.Query(ctx, `select c.fleet, c.number, c.wave, c.outcome,
		c.directive <> '', count(*)
		from rollout_clusters c join unnest($2::text[], $3::int[]) r(fleet, number) using (fleet, number)
		where c.tenant = $1 group by 1, 2, 3, 4, 5`, tenant, fleets, numbers)
	if err != nil {
		return nil, false, err
	}
	var fleet, outcome string
	var number, wave, n int
	var directed bool
	if _, err = pgx.ForEachRow(counted, []any{&fleet, &number, &wave, &outcome, &directed, &n}, func() error {
		c := rollout.Cluster{Outcome: outcome}
		if directed {
			c.Directive = "directed"
		}
		if of := counts[fleetmodel.RolloutSubject(fleet, number)]; wave < len(of) {
			of[wave].Add(fleetmodel.ClusterState(c), n)
		}
		return nil
	}); err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		items = append(items,
			r.dated(fleetmodel.CountedRollout(r.state(), counts[fleetmodel.RolloutSubject(r.Fleet, r.Number)])))
	}
	return items, more, nil
}

// Rollouts returns rollouts by fleet subscription, newest first, without their clusters.
func (r *Reader) Rollouts(
	ctx context.Context, who model.Caller, f fleetmodel.RolloutFilter,
) (items []fleetmodel.Rollout, next []string, err error) {
	w := readmodel.Tenant("r.tenant", who.Tenant)
	w.Equal("r.fleet", f.FleetSubscription)
	if len(f.After) > 0 {
		if len(f.After) != 2 { //nolint:mnd // fleet subscription and number
			return nil, nil, readmodel.ForeignCursor()
		}
		number, err := strconv.Atoi(f.After[1])
		if err != nil {
			return nil, nil, readmodel.ForeignCursor()
		}
		w.Add("(r.fleet > ? or r.fleet = ? and r.number < ?)", f.After[0], f.After[0], number)
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		if items, more, err = rolloutPage(ctx, tx, who.Tenant, w, f.Limit); err != nil {
			return err
		}
		if more {
			last := items[len(items)-1]
			next = []string{last.FleetSubscription, strconv.Itoa(last.Number)}
		}
		return nil
	})
	return items, next, err
}

// Rollout returns one rollout with its clusters.
func (r *Reader) Rollout(
	ctx context.Context, who model.Caller, fleet string, number int,
) (out fleetmodel.Rollout, err error) {
	w := readmodel.Tenant("r.tenant", who.Tenant)
	w.Add("r.fleet = ? and r.number = ?", fleet, number)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[rolloutRow](ctx, tx, rolloutColumns, w, fleetsubscription.NoRollout(fleet, number))
		if err != nil {
			return err
		}
		s, err := rolloutstore.Load(ctx, tx, Projection().Place(), who.Tenant, fleet, number)
		if err != nil {
			return err
		}
		out = x.dated(fleetmodel.WholeRollout(s))
		if err := r.addRollbackWords(ctx, tx, who.Tenant, &out); err != nil {
			return err
		}
		if err := r.addGateWords(ctx, tx, who.Tenant, &out); err != nil {
			return err
		}
		return r.addWords(ctx, tx, who.Tenant, &out)
	})
	return out, err
}

// addRollbackWords adds what somebody said who had the rollout taken back.
func (r *Reader) addRollbackWords(ctx context.Context, tx pgx.Tx, tenant string, out *fleetmodel.Rollout) error {
	back := out.RolledBack
	if back == nil {
		return nil
	}
	opened, err := r.Bodies.Read(ctx, tx, tenant, back.Body)
	if err != nil {
		return err
	}
	back.Words = string(opened.Text(back.Body, model.PartReason, &back.Unreadable))
	return nil
}

// Before returns the rollouts of a fleet subscription before one, newest first, as far as one can go back.
func (*Reader) Before(ctx context.Context, tx pgx.Tx, tenant, fleet string, number int) ([]rollout.State, error) {
	return rolloutstore.LoadBefore(ctx, tx, Projection().Place(), tenant, fleet, number)
}

// Newest returns the number of the newest rollout of a fleet subscription, as the read model has it; 0 for none.
func (*Reader) Newest(ctx context.Context, q pg.Querier, tenant, fleet string) (number int, err error) {
	err = pg.Err(q.QueryRow(ctx, `select coalesce(max(number), 0) from rollouts where tenant = $1 and fleet = $2`, tenant,
		fleet).Scan(&number))
	return number, err
}

// addGateWords adds what people said who overrode gates.
func (r *Reader) addGateWords(ctx context.Context, tx pgx.Tx, tenant string, out *fleetmodel.Rollout) error {
	var said []*fleetmodel.RolloutGateStatus
	var bodies []string
	for _, wave := range out.Waves {
		for i := range wave.Gates {
			if g := &wave.Gates[i]; g.Body != "" {
				said, bodies = append(said, g), append(bodies, g.Body)
			}
		}
	}
	if len(said) == 0 {
		return nil
	}
	opened, err := r.Bodies.Read(ctx, tx, tenant, bodies...)
	if err != nil {
		return err
	}
	for _, g := range said {
		g.Words = string(opened.Text(g.Body, model.PartReason, &g.Unreadable))
	}
	return nil
}

// skip is what a person said who left a cluster out.
type skip struct{ Cluster, Words, SkippedBy string }

func (r *Reader) addWords(ctx context.Context, tx pgx.Tx, tenant string, out *fleetmodel.Rollout) error {
	rows, err := tx.Query(ctx, `select cluster, words, skipped_by from rollout_clusters
		where tenant = $1 and fleet = $2 and number = $3 and skipped_by <> ''`, tenant, out.FleetSubscription, out.Number)
	if err != nil {
		return err
	}
	skips, err := pgx.CollectRows(rows, pgx.RowToStructByPos[skip])
	if err != nil || len(skips) == 0 {
		return err
	}
	said := make([]string, len(skips))
	for i, s := range skips {
		said[i] = s.Words
	}
	opened, err := r.Bodies.Read(ctx, tx, tenant, said...)
	if err != nil {
		return err
	}
	for _, wave := range out.Waves {
		for i := range wave.Members {
			c := &wave.Members[i]
			at := slices.IndexFunc(skips, func(s skip) bool { return s.Cluster == c.Name })
			if at < 0 {
				continue
			}
			c.SkippedBy, c.Body = skips[at].SkippedBy, skips[at].Words
			c.Words = string(opened.Text(c.Body, model.PartReason, &c.Unreadable))
		}
	}
	return nil
}
