package store_test

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// TestSealing: while a process of an older release lives, bodies are stored in the clear, as it reads them; afterwards
// they are sealed, those of before in the background, and it is let in no more. Another active key seals them all anew.
// What was erased meanwhile stays so, what no key opens stays as it is, and a second run has nothing to do.
func TestSealing(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	pool, resolver := d.Pool(t, "gateway"), d.Pool(t, "resolver")
	kept := store.Bodies{Keys: bodiestest.Keys(t), Clear: new(atomic.Bool)}
	kept.Clear.Store(true)
	sealer := func(b store.Bodies) *store.Sealer {
		s, err := store.NewSealer(pool, b, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	count := func(where string, args ...any) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `select count(*) from (select key_id, body, salt from gateway.bodies
			union all select key_id, request, '' from gateway.previews) x where `+where, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	commit := func(of string, kind bodies.Kind, text string) (id string) {
		t.Helper()
		in(t, pool, of, func(tx pgx.Tx) (err error) {
			id, err = kept.Commit(t.Context(), tx, of, kind, []byte(text), "")
			return err
		})
		return id
	}
	begin := func(want bool) {
		t.Helper()
		if may, err := sealer(kept).Begin(t.Context()); err != nil || may != want {
			t.Fatalf("bodies may be sealed: %v, %v; want %v", may, err, want)
		}
	}
	attend := func(id string) error {
		_, err := resolver.Exec(t.Context(), `select eventlog.attend($1, 'resolver', '0.1.0', '{}')`, id)
		return err
	}
	if err := attend("old"); err != nil {
		t.Fatal(err)
	}
	begin(false)
	const old = 230 // more than two batches
	ids := map[string]string{}
	for i := range old {
		of := []string{tenant, "other"}[i%2]
		ids[commit(of, bodies.Kinds()[i%len(bodies.Kinds())], "hunter2 "+uuid.NewString())] = of
	}
	asked := preview.Kept{
		Tenant: tenant, ID: uuid.New(), Actor: "ann", Asked: noon, Expires: noon.AddDate(9, 0, 0),
	}
	previews := store.Previews{Bodies: kept}
	in(t, pool, tenant, func(tx pgx.Tx) error { return previews.Put(t.Context(), tx, asked) })
	if n := count(`key_id = '' and position('hunter2' in encode(body, 'escape')) > 0`); n != old {
		t.Fatalf("%d of %d are in the clear while an old process lives", n, old)
	}
	told := func(want int) { // to metrics and chandler doctor, by a role that sees no tenant
		t.Helper()
		var n int
		err := resolver.QueryRow(t.Context(), `select gateway_api.clear_bodies()`).Scan(&n)
		if err != nil || n != want {
			t.Errorf("it is told that %d are in the clear, %v; want %d", n, err, want)
		}
	}
	told(old + 1)
	if _, err := resolver.Exec(t.Context(), `select eventlog.leave('old')`); err != nil {
		t.Fatal(err)
	}
	begin(true)
	if err := attend("old again"); err == nil || !strings.Contains(err.Error(), "sealed-bodies") {
		t.Errorf("a process that cannot open bodies is let in: %v", err)
	}
	if fresh := commit(tenant, bodies.Reason, "hunter2 now"); count(`key_id = ''`) != old+1 {
		t.Errorf("%s is in the clear", fresh)
	}
	gone := commit(tenant, bodies.Annotations, "{}")
	if _, err := pool.Exec(t.Context(), `delete from gateway.bodies where commitment = $1`, gone); err != nil {
		t.Fatal(err)
	}
	if n, err := sealer(kept).Once(t.Context()); err != nil || n != old+1 {
		t.Errorf("sealed %d, %v; want %d", n, err, old+1)
	}
	if n, err := sealer(kept).Once(t.Context()); err != nil || n != 0 {
		t.Errorf("sealed %d again, %v", n, err)
	}
	if n := count(`key_id = '' or length(salt) > 0 or position('hunter2' in encode(body, 'escape')) > 0`); n != 0 {
		t.Errorf("%d rows are in the clear, or show their salt", n)
	}
	told(0)
	// Another key is active; one row is of a key that nobody has.
	settings := bodiestest.Settings()
	for _, kind := range bodies.Kinds() {
		both := "the-next-key-of-the-tests-that-seals-" + string(kind) + "," + *settings[kind]
		settings[kind] = &both
	}
	both, err := settings.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `insert into gateway.bodies (tenant, commitment, kind, key_id, salt, body)
		values ($1, 'c1:lost', 'annotations', 'ffffffffffffffff', '', 'x')`, tenant); err != nil {
		t.Fatal(err)
	}
	next := store.Bodies{Keys: both}
	if n, err := sealer(next).Once(t.Context()); err != nil || n != old+2 {
		t.Errorf("sealed %d by the other key, %v; want %d", n, err, old+2)
	}
	if n := count(`key_id = 'ffffffffffffffff'`); n != 1 {
		t.Errorf("%d rows of a lost key are left, want 1", n)
	}
	for id, of := range ids {
		body, err := next.Body(t.Context(), pool, of, id)
		if err != nil || !strings.HasPrefix(string(body), "hunter2 ") {
			t.Fatalf("opened %q, %v", body, err)
		}
	}
	if _, err := (store.Previews{Bodies: next}).Get(t.Context(), pool, tenant, asked.ID, noon); err != nil {
		t.Error(err)
	}
	if _, err := previews.Get(t.Context(), pool, tenant, asked.ID, noon); err == nil {
		t.Error("the key of before opens what is sealed by the next one")
	}
}

// TestOnlySealed: an hour after sealing has begun, what is in the clear of a kind that was all sealed is refused, by
// whoever reads it, and is not sealed behind the reader's back: who can write to the database and has no key could put
// it there. A kind of which some are in the clear still goes on.
func TestOnlySealed(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	pool, resolver, admin := d.Pool(t, "gateway"), d.Pool(t, "resolver"), d.Pool(t, pgtest.Admin)
	keys := bodiestest.Keys(t)
	kept := store.Bodies{Keys: keys, Clear: new(atomic.Bool)}
	sealer, err := store.NewSealer(pool, kept, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inTheClear := func(kind bodies.Kind, text string) string {
		t.Helper()
		salt := []byte("0123456789abcdef")
		id := digest.Commitment(salt, []byte(text))
		_, err := pool.Exec(t.Context(), `insert into gateway.bodies (tenant, commitment, kind, salt, body)
			values ($1, $2, $3, $4, $5)`, tenant, id, kind, salt, text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	ended := func() (list []string) {
		t.Helper()
		if _, err := sealer.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := resolver.QueryRow(t.Context(), `select gateway_api.sealed_kinds()`).Scan(&list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := inTheClear(bodies.Configuration, `{"before": 1}`)
	damaged := inTheClear(bodies.Annotations, `{"before": 2}`)
	if _, err := pool.Exec(t.Context(), `select gateway.begin_sealing();
		update gateway.bodies set body = 'x' where commitment = '`+damaged+`'`); err != nil {
		t.Fatal(err)
	}
	if got := ended(); len(got) != 0 {
		t.Errorf("at once, %q are ended", got)
	}
	if _, err := admin.Exec(t.Context(), `update eventlog.needs set since = since - interval '61 minutes'`); err != nil {
		t.Fatal(err)
	}
	want := []string{"catalog-source", "plan-reason", "preview-question", "subscription-config"}
	if got := ended(); !slices.Equal(got, want) {
		t.Errorf("with annotations in the clear, %q are ended", got)
	}
	late, other := inTheClear(bodies.Configuration, `{"late": 1}`), inTheClear(bodies.Annotations, `{"late": 2}`)
	ended()
	for _, from := range []struct {
		pool *pg.Pool
		of   string
	}{{pool, bodies.Table}, {resolver, bodies.View}} {
		body, err := keys.Read(t.Context(), from.pool, from.of, tenant, late)
		if body != nil || !bodies.Unopened(err) || !strings.Contains(err.Error(), "in the clear") {
			t.Errorf("%s has %q: %v", from.of, body, err)
		}
		if body, err := keys.Read(t.Context(), from.pool, from.of, tenant, before); err != nil || body == nil {
			t.Errorf("%s has %q of before: %v", from.of, body, err)
		}
	}
	if body, err := keys.Read(t.Context(), pool, bodies.Table, tenant, other); err != nil || body == nil {
		t.Errorf("of a kind that is not ended: %q, %v", body, err)
	}
	asked := preview.Kept{Tenant: tenant, ID: uuid.New(), Actor: "ann", Asked: noon, Expires: noon.AddDate(9, 0, 0)}
	previews := store.Previews{Bodies: store.Bodies{Keys: keys}}
	in(t, pool, tenant, func(tx pgx.Tx) error { return previews.Put(t.Context(), tx, asked) })
	if _, err := previews.Get(t.Context(), pool, tenant, asked.ID, noon); err != nil {
		t.Error(err)
	}
	if _, err := pool.Exec(t.Context(), `update gateway.previews set key_id = '', request = '{}'`); err != nil {
		t.Fatal(err)
	}
	if _, err := previews.Get(t.Context(), pool, tenant, asked.ID, noon); !bodies.Unopened(err) {
		t.Errorf("a question in the clear: %v", err)
	}
	// Nobody but the owner's function says which kinds are ended.
	for _, sql := range []string{
		`delete from gateway.sealed_kinds`, `insert into gateway.sealed_kinds (kind) values ('x')`,
		`update gateway.sealed_kinds set kind = 'x'`, `truncate gateway.sealed_kinds`,
	} {
		if _, err := pool.Exec(t.Context(), sql); !errs.Is(pg.Err(err), errs.Forbidden) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
