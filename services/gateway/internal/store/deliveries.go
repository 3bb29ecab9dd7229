package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// ErrLease says that another process sends for a webhook by now, or that the webhook was changed.
var ErrLease = errs.New(errs.Conflict, "the webhook is not this process's any more")

// Lease is the right of one process to send for a webhook, while the webhook stays as it is.
type Lease struct {
	Owner    string
	Tenant   string
	Name     string
	Stream   string // tells it from another one that was made under its name: revisions begin anew there
	Revision int64
}

// LeaseOf is the lease of a webhook that was claimed.
func LeaseOf(owner string, r WebhookRow) Lease {
	return Lease{Owner: owner, Tenant: r.Tenant, Name: r.Name, Stream: r.Stream, Revision: r.Revision}
}

// Delivery is one message of a webhook that waits, or what became of an attempt.
type Delivery struct {
	ID       string
	Position events.Position
	Type     string
	Subject  string
	State    string
	Attempts int
	Since    time.Time // it may be sent, and its age counts
	First    *time.Time
	Next     *time.Time
	Ended    *time.Time
	Status   int
	Error    string
	Took     time.Duration
}

// States of a delivery.
const (
	DeliveryPending   = "Pending"
	DeliveryDelivered = "Delivered"
	DeliveryFailed    = "Failed"
	DeliveryWithdrawn = "Withdrawn"
)

// Claim takes webhooks that nobody sends for, those first that were let go the longest ago. Each claim is a revision of
// its own: a turn of the same process whose lease ran out holds nothing by it. A webhook whose address does not open is
// left to whoever has the key: it is claimed again when its lease has ended. Since when nobody has sent is kept until
// Begin.
func (w Webhooks) Claim(ctx context.Context, q pg.Querier, owner string, life time.Duration, limit int) (
	list []WebhookRow, failed []error, err error,
) {
	found, err := w.rows(ctx, q, `with free as (select tenant as t, name as n, lease_until as ended from gateway.webhooks
			where active and lease_until < clock_timestamp() order by lease_until limit $3 for update skip locked)
		update gateway.webhooks set lease_owner = $1, lease_until = clock_timestamp() + $2, revision = revision + 1,
			claim = revision + 1, unsent_since = coalesce(unsent_since, nullif(ended, '-infinity'))
		from free where tenant = t and name = n
		returning `+webhookColumns+`, coalesce(clock_timestamp() - unsent_since, interval '0')`, owner, life, limit)
	for i := range found {
		if e := w.open(&found[i]); e != nil {
			failed = append(failed, e)
			continue
		}
		list = append(list, found[i])
	}
	return list, failed, err
}

// Held are the leases of a process that hold, by tenant and name.
func (Webhooks) Held(ctx context.Context, q pg.Querier, owner string) (map[[2]string]Lease, error) {
	rows, err := q.Query(ctx, `select tenant, name, stream, revision from gateway.webhooks
		where lease_owner = $1 and active and lease_until > clock_timestamp()`, owner)
	if err != nil {
		return nil, pg.Err(err)
	}
	out := map[[2]string]Lease{}
	l := Lease{Owner: owner}
	_, err = pgx.ForEachRow(rows, []any{&l.Tenant, &l.Name, &l.Stream, &l.Revision}, func() error {
		out[[2]string{l.Tenant, l.Name}] = l
		return nil
	})
	return out, pg.Err(err)
}

// held is the condition that a lease holds; $1 to $5 are its parts.
const held = `tenant = $1 and name = $2 and lease_owner = $3 and revision = $4 and stream = $5 and active
	and lease_until > clock_timestamp()`

func (l Lease) args(more ...any) []any {
	return append([]any{l.Tenant, l.Name, l.Owner, l.Revision, l.Stream}, more...)
}

func leased(ctx context.Context, q pg.Querier, query string, args []any) error {
	tag, err := q.Exec(ctx, query, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrLease
	}
	return pg.Err(err)
}

// Renew keeps a lease, and where the webhook is in the log: what was passed over is not looked at again.
func (Webhooks) Renew(ctx context.Context, q pg.Querier, l Lease, life time.Duration, at events.Position) error {
	return leased(ctx, q, `update gateway.webhooks set lease_until = clock_timestamp() + $6, epoch = $7, position = $8
		where `+held, l.args(life, at.Epoch, at.N))
}

// Release lets a webhook go, which another process, or this one, takes next. It may have been changed meanwhile, and
// given up; another claim of it is left alone.
func (Webhooks) Release(ctx context.Context, q pg.Querier, l Lease) error {
	_, err := q.Exec(ctx, `update gateway.webhooks set lease_owner = '', lease_until = clock_timestamp()
		where tenant = $1 and name = $2 and lease_owner = $3 and claim = $4 and stream = $5`, l.args()...)
	return pg.Err(err)
}

// Begin says that somebody sends for a webhook from now on, and takes the time in which nobody did from the age of what
// waits, where that is more than life: a shorter one is no outage. Both are one statement: a process that is killed
// before leaves that time to the next claim, and one that is killed behind has counted it once.
func (Webhooks) Begin(
	ctx context.Context, q pg.Querier, l Lease, unsent, life time.Duration, now time.Time,
) error {
	return leased(ctx, q, `with begun as (
			update gateway.webhooks set unsent_since = null where `+held+` returning tenant, name),
		younger as (
			update gateway.webhook_deliveries d set since = least(d.since + $6, $8) from begun b
			where d.tenant = b.tenant and d.webhook = b.name and d.state = 'Pending' and $6::interval > $7)
		select from begun`, l.args(unsent, life, now))
}

// Waiting are the deliveries of a webhook that wait, in the order of the log.
func (Webhooks) Waiting(ctx context.Context, q pg.Querier, l Lease, limit int) ([]Delivery, error) {
	rows, err := q.Query(ctx, `select id, epoch, position, type, subject, attempts, since, first, next, status
		from gateway.webhook_deliveries where tenant = $1 and webhook = $2 and state = 'Pending'
		order by epoch, position limit $3`, l.Tenant, l.Name, limit)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (d Delivery, err error) {
		err = r.Scan(&d.ID, &d.Position.Epoch, &d.Position.N, &d.Type, &d.Subject, &d.Attempts, &d.Since,
			&d.First, &d.Next, &d.Status)
		return d, err
	})
	return list, pg.Err(err)
}

// Enqueue makes deliveries of events, and moves the webhook to where it has looked, in one transaction: an event has
// its delivery or is looked at again. One that was sent before, and is replayed, begins anew.
func (Webhooks) Enqueue(
	ctx context.Context, tx pgx.Tx, l Lease, list []Delivery, at events.Position, now time.Time,
) error {
	if err := leased(ctx, tx, `update gateway.webhooks set epoch = $6, position = $7 where `+held,
		l.args(at.Epoch, at.N)); err != nil {
		return err
	}
	ids, types, subjects := make([]string, len(list)), make([]string, len(list)), make([]string, len(list))
	epochs, positions := make([]int64, len(list)), make([]int64, len(list))
	for i, d := range list {
		ids[i], types[i], subjects[i], epochs[i], positions[i] = d.ID, d.Type, d.Subject, d.Position.Epoch, d.Position.N
	}
	_, err := tx.Exec(ctx, `insert into gateway.webhook_deliveries as d
			(tenant, webhook, id, epoch, position, type, subject, state, created, since)
		select $1, $2, u.id, u.epoch, u.position, u.type, u.subject, 'Pending', $8, $8
		from unnest($3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) u (id, epoch, position, type, subject)
		on conflict (tenant, webhook, id) do update set state = 'Pending', attempts = 0, first = null, next = null,
			ended = null, since = excluded.since`, l.Tenant, l.Name, ids, epochs, positions, types, subjects, now)
	return pg.Err(err)
}

// Record keeps what became of attempts, while the lease holds.
func (Webhooks) Record(ctx context.Context, tx pgx.Tx, l Lease, list []Delivery, success *time.Time) error {
	if err := leased(ctx, tx, `update gateway.webhooks set last_success = coalesce($6, last_success) where `+held,
		l.args(success)); err != nil {
		return err
	}
	n := len(list)
	ids, states, failures := make([]string, n), make([]string, n), make([]string, n)
	attempts, statuses := make([]int, n), make([]int, n)
	first, next, ended, took := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]int64, n)
	for i, d := range list {
		ids[i], states[i], failures[i], attempts[i], statuses[i] = d.ID, d.State, d.Error, d.Attempts, d.Status
		first[i], next[i], ended[i], took[i] = d.First, d.Next, d.Ended, d.Took.Microseconds()
	}
	_, err := tx.Exec(ctx, `update gateway.webhook_deliveries d set state = u.state, error = u.error,
			attempts = u.attempts, status = u.status, first = u.first, next = u.next, ended = u.ended,
			took = u.took * interval '1 microsecond'
		from unnest($3::text[], $4::text[], $5::text[], $6::int[], $7::int[], $8::timestamptz[], $9::timestamptz[],
			$10::timestamptz[], $11::bigint[]) u (id, state, error, attempts, status, first, next, ended, took)
		where d.tenant = $1 and d.webhook = $2 and d.id = u.id`,
		l.Tenant, l.Name, ids, states, failures, attempts, statuses, first, next, ended, took)
	return pg.Err(err)
}

// Crowded ends deliveries that are refused, where others need their places.
func (Webhooks) Crowded(ctx context.Context, tx pgx.Tx, l Lease, ids []string, now time.Time) error {
	// Nobody changes the webhook until this is written.
	if err := leased(ctx, tx, `update gateway.webhooks set updated = updated where `+held, l.args()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update gateway.webhook_deliveries set state = 'Failed', ended = $4, next = null,
			error = error || ', and others needed its place'
		where tenant = $1 and webhook = $2 and state = 'Pending' and id = any($3)`, l.Tenant, l.Name, ids, now)
	return pg.Err(err)
}

// testLock has the tests of one tenant begin one after the other, so that their bound holds.
const testLock = `select pg_advisory_xact_lock(hashtext('gateway.webhook_tests'), hashtext($1))`

// BeginTest keeps other tests of a webhook out for a while, unless another one does, or so many others of the tenant
// do. It goes by names: a webhook that is deleted and made again has no test more.
func (Webhooks) BeginTest(
	ctx context.Context, tx pgx.Tx, tenant, name string, within time.Duration, most int,
) (bool, error) {
	if _, err := tx.Exec(ctx, testLock, tenant); err != nil {
		return false, pg.Err(err)
	}
	if _, err := tx.Exec(ctx, `delete from gateway.webhook_tests where tenant = $1 and until < clock_timestamp()`,
		tenant); err != nil {
		return false, pg.Err(err)
	}
	tag, err := tx.Exec(ctx, `insert into gateway.webhook_tests (tenant, name, until) select $1, $2, clock_timestamp() + $3
		where (select count(*) from gateway.webhook_tests where tenant = $1) < $4 on conflict do nothing`,
		tenant, name, within, most)
	return tag.RowsAffected() == 1, pg.Err(err)
}

// Tested keeps what became of a test, unless its webhook was deleted meanwhile. The next one may be after a pause.
func (Webhooks) Tested(
	ctx context.Context, tx pgx.Tx, r WebhookRow, d Delivery, now time.Time, pause time.Duration,
) error {
	if _, err := tx.Exec(ctx, `update gateway.webhook_tests set until = clock_timestamp() + $3
		where tenant = $1 and name = $2`, r.Tenant, r.Name, pause); err != nil {
		return pg.Err(err)
	}
	_, err := tx.Exec(ctx, `insert into gateway.webhook_deliveries (tenant, webhook, id, epoch, position, type, subject,
			state, attempts, first, ended, status, error, took, created)
		select w.tenant, w.name, $4, 0, 0, $5, $6, $7, 1, $8, $8, $9, $10, $11, $8
		from gateway.webhooks w where w.tenant = $1 and w.name = $2 and w.stream = $3 for key share`,
		r.Tenant, r.Name, r.Stream, d.ID, d.Type, d.Subject, d.State, now, d.Status, d.Error, d.Took)
	return pg.Err(err)
}

// sweepLock keeps all processes but one from sweeping.
const sweepLock = `select pg_try_advisory_xact_lock(hashtext('gateway.webhook_deliveries'))`

// Sweep deletes deliveries that have ended before a time, and of each webhook all but the newest so many. It does
// nothing while another process does it. Webhook by webhook, since their index is in the order of the end.
func (Webhooks) Sweep(ctx context.Context, tx pgx.Tx, before time.Time, keep, limit int) (int64, error) {
	var mine bool
	if err := tx.QueryRow(ctx, sweepLock).Scan(&mine); err != nil || !mine {
		return 0, pg.Err(err)
	}
	tag, err := tx.Exec(ctx, `delete from gateway.webhook_deliveries where (tenant, webhook, id) in (
			select o.tenant, o.webhook, o.id from gateway.webhooks w
			cross join lateral (select greatest($1, (select ended from gateway.webhook_deliveries
				where tenant = w.tenant and webhook = w.name and state <> 'Pending'
				order by ended desc offset $2 limit 1)) as past) p
			cross join lateral (select tenant, webhook, id from gateway.webhook_deliveries
				where tenant = w.tenant and webhook = w.name and state <> 'Pending' and ended <= p.past
				order by ended limit $3) o
			limit $3)
		and state <> 'Pending' -- as it is now: a replay may have put it back`, before, keep, limit)
	return tag.RowsAffected(), pg.Err(err)
}
