// Package fleetstore keeps what the fleet controller looks at, folded from the log, and writes what it decides. Its
// tables are those of the resolver's schema: a subscription that a rollout asks for is one of the resolver's.
package fleetstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/fleet/rolloutstore"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
)

// Fleets reads fleet subscriptions and writes what the fleet controller decides about them.
type Fleets struct {
	pool *pg.Pool
	log  *eventlog.Log
	now  func() time.Time
	in   Surroundings
}

// Surroundings are what the tables around have to do with it.
type Surroundings struct {
	// Consumer is whose checkpoint the tables follow.
	Consumer string
	// Refer is the statement that refers to content: of a tenant, a kind, a holder, digests.
	Refer string
	// Content and Package are kinds of what is referred to.
	Content, Package string
}

// New returns the fleets on a pool of the resolver's role. now is the clock of decisions.
func New(pool *pg.Pool, log *eventlog.Log, now func() time.Time, in Surroundings) *Fleets {
	return &Fleets{pool: pool, log: log, now: now, in: in}
}

// Name is the name of a fleet subscription.
type Name struct{ Tenant, Name string }

// Due are the fleet subscriptions of which something changed; with all, also those with a rollout that waits for time
// to pass, and those that wait for an image: a scope that asked for it, too, may have withdrawn the request.
func (f *Fleets) Due(ctx context.Context, all bool) ([]Name, error) {
	rows, err := f.pool.Query(ctx, `select tenant, name from resolver.fleet_subscriptions s
		where due or $1 and (waits in ($2, $3) or held is not null or exists (select from resolver.rollouts r where r.tenant = s.tenant
		  and r.fleet = s.name and r.phase in ('Progressing', 'Paused', 'Halted'))) order by tenant, name`, all,
		fleet.WaitsForContent, fleet.WaitsForPlan)
	if err != nil {
		return nil, fmt.Errorf("read which fleet subscriptions are due: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Name])
	if err != nil {
		return nil, fmt.Errorf("read which fleet subscriptions are due: %w", pg.Err(err))
	}
	return list, nil
}

// Decision is what is to be written about a fleet subscription.
type Decision struct {
	// Rollout are events of the newest rollout; one that begins is the first event of the next.
	Rollout []events.Payload
	// Release are the subscriptions that are let go.
	Release []fleet.Release
	// Waits is a code of why no rollout can begin; "" where none has to.
	Waits string
	// Held are clusters that the budget of mass changes holds back; nil for none.
	Held *fleet.Held
	// Wanted is a bundle image that has to be fetched before one can.
	Wanted *decide.Wanted
}

// Decide decides about one fleet subscription, in one transaction: what is asked of clusters is appended with the
// events of the rollout that say so, or neither is. Another replica that is at it goes first. A conflict
// (errs.Conflict) says that something moved on meanwhile.
func (f *Fleets) Decide(ctx context.Context, name Name,
	decide func(ctx context.Context, s fleet.State) (Decision, error),
) (made Decision, err error) {
	err = f.pool.Tx(ctx, func(tx pgx.Tx) error {
		var atWork bool
		err := tx.QueryRow(ctx, `select eventlog.hold_work($1)`, f.in.Consumer).Scan(&atWork)
		if err != nil || !atWork {
			return pg.Err(err)
		}
		s, there, err := f.load(ctx, tx, name)
		if err != nil || !there {
			return err
		}
		if made, err = decide(ctx, s); err != nil {
			return err
		}
		w := writer{Fleets: f, tx: tx, s: s}
		if w.command, err = uuid.NewRandom(); err != nil {
			return errs.Wrap(errs.Internal, err, "draw a command id")
		}
		return w.write(ctx, made)
	})
	return made, err
}

// load reads all that a decision looks at, and holds the fleet subscription until the transaction ends.
func (f *Fleets) load(ctx context.Context, tx pgx.Tx, name Name) (s fleet.State, there bool, err error) {
	s = fleet.State{Tenant: name.Tenant, Name: name.Name}
	var spec, held json.RawMessage
	var incarnation int
	err = tx.QueryRow(ctx, `select incarnation, version, spec, deleted, held from resolver.fleet_subscriptions
		where tenant = $1 and name = $2 for update skip locked`, name.Tenant, name.Name).
		Scan(&incarnation, &s.Version, &spec, &s.Deleted, &held)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, false, nil
	}
	if err == nil {
		err = json.Unmarshal(spec, &s.Spec)
	}
	if err == nil && held != nil {
		err = json.Unmarshal(held, &s.Held)
	}
	if err != nil {
		return s, false, fmt.Errorf("read fleet subscription %s: %w", name.Name, pg.Err(err))
	}
	s.Stream = streamOf(name, incarnation)
	for _, part := range []func(context.Context, pgx.Tx, *fleet.State) error{
		holdOperator, loadClusters, loadPlaced, loadAsked, loadRollout, loadTried,
	} {
		if err := part(ctx, tx, &s); err != nil {
			return s, false, fmt.Errorf("read what fleet subscription %s looks at: %w", name.Name, pg.Err(err))
		}
	}
	if err := loadBudget(ctx, tx, &s, f.now()); err != nil { // last: others wait for it from here on
		return s, false, fmt.Errorf("read the budget that fleet subscription %s has: %w", name.Name, pg.Err(err))
	}
	return s, true, nil
}

func streamOf(name Name, incarnation int) string {
	return events.StreamID{
		Kind: events.KindFleetSubscription, Incarnation: incarnation,
		Key: events.Key(name.Tenant, events.KindFleetSubscription, name.Name),
	}.String()
}

// holdOperator has decisions of several fleet subscriptions about the same operator go one after the other, so that the
// second one sees which clusters the first one asks.
func holdOperator(ctx context.Context, tx pgx.Tx, s *fleet.State) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`,
		"fleet/"+s.Tenant+"/"+s.Spec.Namespace+"/"+s.Spec.Package)
	return err
}

func loadClusters(ctx context.Context, tx pgx.Tx, s *fleet.State) error {
	rows, err := tx.Query(ctx, `select name, labels, taints, facts, minor, cordoned or state not in ('', $2) from resolver.clusters
		where tenant = $1 and not removed`, s.Tenant, stateConnected)
	if err != nil {
		return err
	}
	s.Clusters = map[string]fleet.Cluster{}
	var name string
	var labels, taints map[string]string
	var facts events.ClusterFacts
	var minor string
	var away bool
	_, err = pgx.ForEachRow(rows, []any{&name, &labels, &taints, &facts, &minor, &away}, func() error {
		s.Clusters[name] = fleet.Cluster{
			Cluster: placement.Cluster{Name: name, Labels: placement.Labels(labels, facts, minor), Taints: taints},
			Away:    away,
		}
		labels, taints, facts = nil, nil, events.ClusterFacts{}
		return nil
	})
	return err
}

// loadPlaced reads the subscriptions that it owns, and those of others that are in its way.
func loadPlaced(ctx context.Context, tx pgx.Tx, s *fleet.State) error {
	rows, err := tx.Query(ctx, `select cluster, namespace, name, owner, spec, target from resolver.subscriptions
		where tenant = $1 and (owner = $2 or namespace = $3 and (name = $2 or spec ->> 'package' = $4))`,
		s.Tenant, s.Name, s.Spec.Namespace, s.Spec.Package)
	if err != nil {
		return err
	}
	s.Placed, s.Taken = map[string]fleet.Placed{}, map[string]string{}
	var cluster, namespace, name, owner string
	var spec, target json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{&cluster, &namespace, &name, &owner, &spec, &target}, func() error {
		switch {
		case owner == s.Name && namespace == s.Spec.Namespace:
			var placed fleet.Placed
			err := errors.Join(json.Unmarshal(spec, &placed.Spec), json.Unmarshal(target, &placed.Target))
			if err != nil {
				return err
			}
			s.Placed[cluster] = placed
		case owner == s.Name:
			s.Strays = append(s.Strays, fleet.Place{Cluster: cluster, Namespace: namespace})
		case owner == "" && name == s.Name && (s.Spec.Adopt || follows(target)):
		default:
			s.Taken[cluster] = name
		}
		return nil
	})
	return err
}

// loadAsked reads the clusters that the rollouts of other fleet subscriptions have asked for the same operator: the log
// may not have brought their subscriptions yet.
func loadAsked(ctx context.Context, tx pgx.Tx, s *fleet.State) error {
	rows, err := tx.Query(ctx, `select c.cluster, r.fleet from resolver.rollouts r join resolver.rollout_clusters c
		  on c.tenant = r.tenant and c.fleet = r.fleet and c.number = r.number
		where r.tenant = $1 and r.fleet <> $2 and r.phase in ('Progressing', 'Paused', 'Halted') and c.directive <> ''
		and r.started #>> '{intent,namespace}' = $3 and r.started #>> '{target,package}' = $4`,
		s.Tenant, s.Name, s.Spec.Namespace, s.Spec.Package)
	if err != nil {
		return err
	}
	var cluster, other string
	_, err = pgx.ForEachRow(rows, []any{&cluster, &other}, func() error {
		if _, own := s.Placed[cluster]; !own {
			s.Taken[cluster] = other
		}
		return nil
	})
	return err
}

// follows says whether a subscription without an owner still has the target of a rollout, as one that was let go has,
// and that nobody changed since: a cluster that comes back is not in its own way.
func follows(target json.RawMessage) bool {
	var t decide.Target
	return json.Unmarshal(target, &t) == nil && t.CSV != ""
}

// loadRollout reads the newest rollout, and what is known of its clusters.
func loadRollout(ctx context.Context, tx pgx.Tx, s *fleet.State) error {
	var number int
	err := tx.QueryRow(ctx, `select number, stream_version from resolver.rollouts where tenant = $1 and fleet = $2
		order by number desc limit 1`, s.Tenant, s.Name).Scan(&number, &s.LastVersion)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.Last, err = rolloutstore.Load(ctx, tx, schema, s.Tenant, s.Name, number); err != nil {
		return err
	}
	if s.TakenBack() {
		if s.Before, err = rolloutstore.LoadBefore(ctx, tx, schema, s.Tenant, s.Name, number); err != nil {
			return err
		}
	}
	rows, err := tx.Query(ctx, `select d.cluster, d.directive, d.outcome, d.reason, d.content, d.cause
		from resolver.directives d join resolver.rollout_clusters c on c.tenant = d.tenant and c.fleet = d.fleet
		  and c.number = d.number and c.cluster = d.cluster and c.directive = d.directive
		where d.tenant = $1 and d.fleet = $2 and d.number = $3`, s.Tenant, s.Name, number)
	if err != nil {
		return err
	}
	s.Seen = map[string]rollout.Seen{}
	var cluster string
	var seen rollout.Seen
	if _, err = pgx.ForEachRow(rows, []any{
		&cluster, &seen.Directive, &seen.Outcome, &seen.Reason, &seen.Content, &seen.Cause,
	}, func() error {
		s.Seen[cluster] = seen
		return nil
	}); err != nil {
		return err
	}
	s.Evaluated, err = loadEvaluated(ctx, tx, s.Tenant, s.Name, number)
	return err
}

// loadTried reads the newest rollout of each cluster, once no rollout goes on.
func loadTried(ctx context.Context, tx pgx.Tx, s *fleet.State) error {
	if s.Last.Phase == "" || !s.Last.Phase.Ended() {
		return nil
	}
	return loadTries(ctx, tx, s)
}

func loadTries(ctx context.Context, tx pgx.Tx, s *fleet.State) error {
	rollouts := map[int]fleet.Try{}
	frozen := map[int]events.RolloutStarted{} // as far as overrides go
	clusters := map[string]fleet.Try{}
	rows, err := tx.Query(ctx, `select number, started ->> 'stream', (started ->> 'version')::bigint, started -> 'target',
		jsonb_build_object('overrides', started -> 'overrides', 'conflicts', started -> 'conflicts')
		from resolver.rollouts r where tenant = $1 and fleet = $2 and number in (select max(number)
		  from resolver.rollout_clusters where tenant = $1 and fleet = $2 group by cluster)`, s.Tenant, s.Name)
	if err != nil {
		return err
	}
	var number int
	var target, overrides json.RawMessage
	var try fleet.Try
	if _, err = pgx.ForEachRow(rows, []any{&number, &try.Stream, &try.Version, &target, &overrides}, func() error {
		one := try
		var of events.RolloutStarted
		err := errors.Join(json.Unmarshal(target, &one.Target), json.Unmarshal(overrides, &of))
		rollouts[number], frozen[number] = one, of
		return err
	}); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `select distinct on (cluster) cluster, number, outcome, attempt > 0
		from resolver.rollout_clusters
		where tenant = $1 and fleet = $2 order by cluster, number desc`, s.Tenant, s.Name)
	if err != nil {
		return err
	}
	var cluster, outcome string
	var asked bool
	_, err = pgx.ForEachRow(rows, []any{&cluster, &number, &outcome, &asked}, func() error {
		one := rollouts[number]
		one.Outcome, one.Asked, one.Choice = outcome, asked, override.Of(frozen[number], cluster)
		clusters[cluster] = one
		return nil
	})
	s.Tried = clusters
	return err
}

// writer is one transaction of the fleet controller.
type writer struct {
	*Fleets

	tx      pgx.Tx
	s       fleet.State
	command uuid.UUID
}

func (w writer) write(ctx context.Context, made Decision) error {
	if err := w.rollout(ctx, made.Rollout); err != nil {
		return err
	}
	for _, r := range made.Release {
		if err := w.release(ctx, r); err != nil {
			return err
		}
	}
	if err := w.hold(ctx, made.Held); err != nil {
		return err
	}
	if x := made.Wanted; x != nil {
		if err := exec(ctx, w.tx, `insert into resolver.wanted_images (tenant, subject, image, package, bundle)
			values ($1, $2, $3, $4, $5) on conflict do nothing`, w.s.Tenant, x.Catalog.Name, x.Image, x.Package,
			x.Bundle); err != nil {
			return err
		}
	}
	// What was decided may lead to more at once.
	due := len(made.Rollout)+len(made.Release) > 0
	return exec(ctx, w.tx, `update resolver.fleet_subscriptions set due = $3, waits = $4
		where tenant = $1 and name = $2`, w.s.Tenant, w.s.Name, due, made.Waits)
}

func (w writer) meta(correlation, causation string) events.Meta {
	return events.Meta{
		Tenant: w.s.Tenant, Source: events.Fleet, Command: w.command, Correlation: correlation, Causation: causation,
		Time: w.now().UTC(),
	}
}

// rollout appends events of the newest rollout, or of the one that they begin, and asks of clusters what they say.
func (w writer) rollout(ctx context.Context, list []events.Payload) error {
	if len(list) == 0 {
		return nil
	}
	started, version := w.s.Last.Started, w.s.LastVersion
	if first, begins := list[0].(events.RolloutStarted); begins {
		started, version = first, 0
		if err := w.begins(ctx); err != nil {
			return err
		}
		if err := w.keep(ctx, started); err != nil {
			return err
		}
	}
	subject := w.s.Name + "/" + strconv.Itoa(started.Number)
	stream := events.StreamID{
		Kind: events.KindRollout, Key: events.Key(w.s.Tenant, events.KindRollout, subject), Incarnation: 1,
	}
	done, err := w.log.Append(ctx, w.tx, w.meta(stream.Key.String(), ""), stream, subject, version, list...)
	if err != nil {
		return err
	}
	for i, p := range list {
		e := eventlog.Recorded{Envelope: done.Events[i], Payload: p, StreamID: stream}
		if err := foldRollout(ctx, w.tx, e); err != nil {
			return err
		}
		if directed, ok := p.(events.RolloutClusterDirected); ok {
			if err := w.place(ctx, started, directed, e.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// begins refuses to begin a rollout where somebody has said something of the one before that the decision has not seen:
// who asks for a rollback asks it of the newest one.
func (w writer) begins(ctx context.Context) error {
	if err := rolloutstore.HoldNewest(ctx, w.tx, w.s.Tenant, w.s.Name); err != nil || w.s.LastVersion == 0 {
		return err
	}
	before := w.s.Name + "/" + strconv.Itoa(w.s.Last.Started.Number)
	head, err := w.log.Latest(ctx, w.tx, w.s.Tenant, events.KindRollout, before)
	if err == nil && head.Version != w.s.LastVersion {
		err = errs.New(errs.Conflict, "rollout %s went on meanwhile", before)
	}
	return err
}

// keep keeps what a rollout brings in the catalog, for as long as a subscription follows it, and for as long as one can
// go back to it.
func (w writer) keep(ctx context.Context, p events.RolloutStarted) error {
	const prefix = "rollout "
	of := prefix + w.s.Name + "/"
	kept := make([]string, 0, rollout.MaxBack+1)
	for n := p.Number; n >= max(1, p.Number-rollout.MaxBack); n-- {
		kept = append(kept, of+strconv.Itoa(n))
	}
	if err := exec(ctx, w.tx, `delete from resolver.content_references r where tenant = $1
		and holder like $2 || '%' and not holder = any ($3) and not exists (select from resolver.subscriptions s
		  where s.tenant = $1 and $4 || (s.target ->> 'rollout') = r.holder)`,
		w.s.Tenant, of, kept, prefix); err != nil {
		return err
	}
	holder := of + strconv.Itoa(p.Number)
	for kind, digest := range map[string]string{w.in.Content: p.Target.Content, w.in.Package: p.Target.Document} {
		if err := exec(ctx, w.tx, w.in.Refer, w.s.Tenant, kind, holder, []string{digest}); err != nil {
			return err
		}
	}
	return nil
}

// place asks a cluster for what the rollout brings. Whatever comes of it carries the directive.
func (w writer) place(ctx context.Context, r events.RolloutStarted, d events.RolloutClusterDirected, cause string,
) error {
	if err := w.placeGroup(ctx, r, d, cause); err != nil {
		return err
	}
	subject := d.Cluster + "/" + r.Intent.Namespace + "/" + w.s.Name
	head, err := w.log.Latest(ctx, w.tx, w.s.Tenant, events.KindSubscription, subject)
	if err != nil {
		return err
	}
	stream, version := head.ID, head.Version
	if !head.Exists() {
		stream, version = head.Create(), 0
	} else if err := w.mayPlace(ctx, r, stream); err != nil {
		return err
	}
	_, err = w.log.Append(ctx, w.tx, w.meta(d.Directive, cause), stream, subject, version, fleet.Ask(r, d.Cluster))
	return err
}

// mayPlace refuses to replace what somebody has made or changed since the tables that this was decided by: the log is
// ahead of them, and brings it.
func (w writer) mayPlace(ctx context.Context, r events.RolloutStarted, stream events.StreamID) error {
	if r.Intent.Adopt {
		return nil
	}
	life, err := w.log.ReadStream(ctx, w.tx, w.s.Tenant, stream, 0)
	if err != nil {
		return err
	}
	switch lastWord(life).(type) {
	case events.SubscriptionPlaced, events.SubscriptionReleased:
		return nil
	default:
		return errs.New(errs.Conflict, "subscription %s of rollout %s/%d was changed meanwhile", life[0].Subject,
			w.s.Name, r.Number)
	}
}

// placeGroup makes the operator group of a namespace that has none.
func (w writer) placeGroup(ctx context.Context, r events.RolloutStarted, d events.RolloutClusterDirected,
	cause string,
) error {
	group := r.Intent.OperatorGroup
	if group.Name == "" {
		return nil
	}
	var there bool
	if err := w.tx.QueryRow(ctx, `select exists (select from resolver.operator_groups where tenant = $1 and cluster = $2
		and namespace = $3)`, w.s.Tenant, d.Cluster, r.Intent.Namespace).Scan(&there); err != nil || there {
		return pg.Err(err)
	}
	subject := d.Cluster + "/" + r.Intent.Namespace + "/" + group.Name
	head, err := w.log.Latest(ctx, w.tx, w.s.Tenant, events.KindOperatorGroup, subject)
	if err != nil || head.Exists() { // made meanwhile: the log brings it
		return err
	}
	_, err = w.log.Append(ctx, w.tx, w.meta(d.Directive, cause), head.Create(), subject, 0, events.OperatorGroupPlaced{
		Cluster: d.Cluster, Namespace: r.Intent.Namespace, Name: group.Name, Spec: group.Spec, Owner: w.s.Name,
	})
	return err
}

// Catalog is the revision of a catalog of the hub that is in service; "" where there is none.
func (f *Fleets) Catalog(ctx context.Context, tenant, name string) (revision string, err error) {
	err = f.pool.QueryRow(ctx, `select r.revision from resolver.catalogs c join resolver.catalog_revisions r
		on r.tenant = c.tenant and r.subject = c.subject and r.variant = ''
		where c.tenant = $1 and c.subject = $2 and not c.disabled`, tenant, name).Scan(&revision)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the revision of catalog %s: %w", name, pg.Err(err))
	}
	return revision, nil
}

func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return pg.Err(err)
}
