package eventlog_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// attacks are what a role must not do, whoever has got hold of its credential (DESIGN D7: authority flows one way).
var attacks = map[string]string{
	"move a checkpoint by hand":   `update eventlog.checkpoints set position = 0`,
	"make a checkpoint by hand":   `insert into eventlog.checkpoints values ('x', '*', 1, 9)`,
	"take a checkpoint away":      `delete from eventlog.checkpoints`,
	"park by hand":                `insert into eventlog.parked select * from eventlog.parked`,
	"forget what is parked":       `delete from eventlog.parked`,
	"lead by hand":                `update eventlog.sequencer set leader = 'x', until = now() + interval '1 year'`,
	"use the term of another":     `select eventlog.sequence((select term from eventlog.sequencer), 1000, '2 s', null)`,
	"write an event":              `insert into eventlog.events select * from eventlog.events`,
	"write the inbox":             `insert into eventlog.appended (tenant) values ('x')`,
	"draw ids":                    `select nextval('eventlog.appended_id_seq')`,
	"change a head":               `update eventlog.streams set version = 9`,
	"note another partition":      `insert into eventlog.partitions values (5, 6)`,
	"move a stream":               `update eventlog.stream_parts set first_position = 9`,
	"change an epoch":             `update eventlog.epochs set epoch = 9`,
	"call the inner functions":    `select eventlog.raise_epoch(s, 5, 5, 'x') from eventlog.sequencer s`,
	"settle":                      `select eventlog.settle(s) from eventlog.sequencer s`,
	"raise the epoch absurdly":    `select eventlog.check_epoch(9000000000000000000, 1, 'x')`,
	"raise it by a far position":  `select eventlog.check_epoch(1, 9000000000000000000, 'x')`,
	"claim an absurd event":       `select eventlog.check_event(9000000000000000000, 1, '\x00', 'x')`,
	"write a key by hand":         `insert into eventlog.service_keys values ('\x00', 'gateway', now(), now())`,
	"ask for a rebuild by hand":   `insert into eventlog.rebuilds (consumer) values ('installer.hub')`,
	"end a stop by hand":          `update eventlog.stops set resumed = now()`,
	"forget an incident":          `delete from eventlog.incidents`,
	"name another server":         `update eventlog.server set timeline = 9`,
	"go beyond the head":          `select eventlog.move_checkpoint('anybody', 1, 1000)`,
	"go back":                     `select eventlog.move_checkpoint('anybody', 1, 0)`,
	"register a type for itself":  `insert into eventlog.event_types values ('x.y.v1', 'cluster', 'resolver', false)`,
	"speak for a reader":          `select eventlog.attend('of-somebody', 'gateway', '1', '{a.b.v1}')`,
	"judge the waiting":           `select eventlog.stalled(s, now()) from eventlog.sequencer s`,
	"become the owner":            `set role chandler_owner`,
	"switch row security off":     `alter table eventlog.events disable row level security`,
	"replace a function":          `create or replace function eventlog.own(p text) returns void language sql as ''`,
	"make objects in the schema":  `create table eventlog.mine (n int)`,
	"read kubeconfigs in passing": `select ciphertext from gateway.credentials`,
}

// of each service: a consumer, and what it alone may do.
var owned = map[string]struct{ consumer, only string }{
	"gateway": {
		"projection/gateway.clusters/v1", `select eventlog.resume(1, 'a')`,
	},
	"resolver":        {"resolver.scopes", ""},
	"installer":       {"installer.hub", ""},
	"catalog-indexer": {"catalog-indexer.intents", ""},
}

// A compromised service stays what it is: none of its role's statements changes what others rely on.
func TestRolesCannot(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"))
	b.sequenceAll(t, b.lead(t))
	for _, sql := range []string{ // 'anybody' stands at 1, and somebody else leads
		`insert into eventlog.checkpoints values ('anybody', '*', 1, 1)`,
		`update eventlog.sequencer set role = 'somebody', until = now() + interval '5 s'`,
		`insert into eventlog.parked values ('default', 'anybody', 's', 1, 1, 1, 't', 'r')`,
		`insert into eventlog.readers values ('of-somebody', 'gateway', '1', '{}', now(), clock_timestamp(), 'somebody')`,
		`insert into eventlog.checkpoints select c, '*', 1, 0 from unnest(array['projection/gateway.clusters/v1',
			'resolver.scopes', 'installer.hub', 'catalog-indexer.intents']) c`,
	} {
		if _, err := b.admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for role, own := range owned {
		pool := b.db.Pool(t, role)
		refused := func(what, sql string, args ...any) {
			t.Helper()
			if _, err := pool.Exec(t.Context(), sql, args...); !errs.Is(pg.Err(err), errs.Forbidden) {
				t.Errorf("%s can %s: %v", role, what, err)
			}
		}
		for what, sql := range attacks {
			if role == "gateway" && what == "read kubeconfigs in passing" {
				continue // they are encrypted to the installer, and the gateway stores them
			}
			refused(what, sql)
		}
		if _, err := pool.Exec(t.Context(), `select eventlog.take_checkpoint($1)`, own.consumer); err != nil {
			t.Errorf("%s cannot take its own checkpoint: %v", role, err)
		}
		for other, o := range owned {
			if other == role {
				continue
			}
			refused("speak as "+other, `select eventlog.exchange_keys($1, decode(repeat('ab', 32), 'hex'))`, other)
			refused("take the checkpoint of "+other, `select eventlog.take_checkpoint($1)`, o.consumer)
			refused("move the checkpoint of "+other, `select eventlog.move_checkpoint($1, 1, 1)`, o.consumer)
			refused("set the checkpoint of "+other+" back", `select eventlog.rebuilt($1, 1, 0)`, o.consumer)
			refused("have rebuilt what "+other+" has", `select eventlog.ask_rebuild($1)`, o.consumer)
			refused("take back a rebuild of "+other, `select eventlog.drop_rebuild($1)`, o.consumer)
			refused("note a rebuild of "+other, `select eventlog.note_rebuild($1, 1, null)`, o.consumer)
			for _, prefix := range []string{o.consumer, o.consumer[:3], ""} {
				refused("lock the checkpoints of "+other, `select eventlog.lock_checkpoints('x', $1)`, prefix)
			}
			refused("park for "+other,
				`select eventlog.park('default', $1, 's', 1, 1, 1, 't', 'r', 1, '1 hour', null)`, o.consumer)
			refused("unpark for "+other, `select eventlog.unpark($1, 's', 1)`, o.consumer)
			refused("park again for "+other, `select eventlog.park_again($1, 's', 1, 1, 'r', '1 year', null)`, o.consumer)
			refused("hold what is parked of "+other, `select eventlog.hold_parked($1, 's')`, o.consumer)
			if role != "gateway" { // which knows persons
				refused("retry for "+other, `select eventlog.retry_parked('default', $1, '')`, o.consumer)
				refused("skip for "+other, `select eventlog.skip_parked('default', $1, 's', 1, 'a', 'r')`, o.consumer)
			}
			if o.only != "" {
				refused("do what only "+other+" may", o.only)
			}
		}
	}
}

// A term belongs to the role that was given it, and no lease keeps all others out for long.
func TestTermsBelongToRoles(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	resolver, installer := b.db.Pool(t, "resolver"), b.db.Pool(t, "installer")
	var term *int64
	if err := resolver.QueryRow(t.Context(), `select eventlog.lead('r', interval '1 year')`).Scan(&term); err != nil ||
		term == nil {
		t.Fatalf("lead: %v %v", term, err)
	}
	var left bool
	if err := b.admin.QueryRow(t.Context(), `select until < clock_timestamp() + interval '11 s' from eventlog.sequencer`).
		Scan(&left); err != nil || !left {
		t.Errorf("a lease of a year was given (%v)", err)
	}
	var stolen *int64
	if err := installer.QueryRow(t.Context(), `select eventlog.lead('r', interval '2 s')`).Scan(&stolen); err != nil ||
		stolen != nil {
		t.Errorf("another role took the term by the leader's name: %v (%v)", stolen, err)
	}
	if _, err := installer.Exec(t.Context(), `select eventlog.resign($1)`, *term); err != nil {
		t.Error(err)
	}
	if _, err := resolver.Exec(t.Context(), `select eventlog.sequence($1, 10, '2 s', null)`, *term); err != nil {
		t.Errorf("the term was ended by another role: %v", err)
	}
}

// Who leads and moves nothing is followed by another role, whatever it does to keep the lease.
func TestLeaderThatMovesNothing(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	resolver, installer := b.db.Pool(t, "resolver"), b.db.Pool(t, "installer")
	lead := func(pool *pg.Pool, id string) *int64 {
		t.Helper()
		var term *int64
		if err := pool.QueryRow(t.Context(), `select eventlog.lead($1, interval '10 s')`, id).Scan(&term); err != nil {
			t.Fatal(err)
		}
		return term
	}
	term := lead(resolver, "r")
	if term == nil {
		t.Fatal("nobody leads, and the resolver may not")
	}
	if again := lead(resolver, "r"); again != nil {
		t.Errorf("leading again prolongs the lease without a move: term %d", *again)
	}
	b.mustAppend(t, "east", 0, registered("east"))
	if _, err := resolver.Exec(t.Context(), `select eventlog.sequence($1, 0, '10 s', null)`, *term); err != nil {
		t.Fatal(err) // a move of nothing
	}
	for range 2 { // seen, and seen again
		if stolen := lead(installer, "i"); stolen != nil {
			t.Fatalf("an event that has just come ends term %d", *term)
		}
	}
	if _, err := b.admin.Exec(t.Context(), `update eventlog.sequencer set waiting_since = waiting_since - interval '6 s'`); err != nil {
		t.Fatal(err)
	}
	if another := lead(resolver, "r2"); another != nil {
		t.Error("the role under which nothing moves takes the next term itself")
	}
	next := lead(installer, "i")
	if next == nil || *next <= *term {
		t.Fatalf("an event has waited for 6 seconds, and nobody else may lead: %v", next)
	}
	var moved int
	if err := installer.QueryRow(t.Context(), `select moved from eventlog.sequence($1, 10, '2 s', null)`, *next).
		Scan(&moved); err != nil || moved != 1 {
		t.Errorf("the next term moved %d events: %v", moved, err)
	}
	b.mustAppend(t, "east", 1, replaced(1))
	if stolen := lead(resolver, "r"); stolen != nil {
		t.Error("what was seen waiting before counts for what comes now")
	}
}

// A reader belongs to the role that said it is there: nobody else ends it, so that a type is not let out too early.
func TestReadersBelongToRoles(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	resolver, installer := b.db.Pool(t, "resolver"), b.db.Pool(t, "installer")
	if _, err := resolver.Exec(t.Context(), `select eventlog.attend('r', 'resolver', '1', '{}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := installer.Exec(t.Context(), `select eventlog.leave('r')`); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := installer.Exec(t.Context(), `select eventlog.attend(gen_random_uuid()::text, 'installer', '1', '{}')`); err != nil {
			t.Fatal(err)
		}
	}
	var readers, ours int
	if err := b.admin.QueryRow(t.Context(), `select count(*) filter (where role like '%installer%'),
		count(*) filter (where instance = 'r') from eventlog.readers`).Scan(&readers, &ours); err != nil {
		t.Fatal(err)
	}
	if ours != 1 {
		t.Error("another role ended the reader of the resolver")
	}
	if readers > 256 {
		t.Errorf("a role has %d readers", readers)
	}
}

// The epoch is raised by who has business to compare, and not again and again.
func TestEpochIsRaisedWithinBounds(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	resolver := b.db.Pool(t, "resolver")
	if _, err := resolver.Exec(t.Context(), `select eventlog.check_epoch(1, 9, 'x')`); !errs.Is(pg.Err(err),
		errs.Forbidden) {
		t.Errorf("a resolver that does not lead raised the epoch: %v", err)
	}
	raised := 0
	for i := range 20 {
		if _, err := b.pool.Exec(t.Context(), `select eventlog.check_epoch($1, 9, 'x')`, i+1); err == nil {
			raised++
		}
	}
	if raised != 10 {
		t.Errorf("one role raised the epoch %d times within an hour, want 10", raised)
	}
}
