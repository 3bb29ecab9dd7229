package store_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
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
