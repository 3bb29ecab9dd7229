package store_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorhub"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

const tenant = events.DefaultTenant

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func gateway(t *testing.T) *pg.Pool {
	t.Helper()
	return pgtest.DB(t).Pool(t, "gateway", pg.WithSearchPath("gateway"))
}

// in runs do in a transaction of the tenant.
func in(t *testing.T, pool *pg.Pool, of string, do func(tx pgx.Tx) error) {
	t.Helper()
	if err := pool.TenantTx(t.Context(), of, do); err != nil {
		t.Fatal(err)
	}
}

// TestRepeatedBodyKeepsItsCommitment: the same body again is no change, another one has another commitment, and no
// tenant reads another's.
func TestRepeatedBodyKeepsItsCommitment(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	bodies := store.Bodies{Keys: bodiestest.Keys(t)}
	var first, same, other string
	in(t, pool, tenant, func(tx pgx.Tx) (err error) {
		if first, err = bodies.Commit(t.Context(), tx, tenant, store.KindAnnotations, []byte(`{"a":"1"}`),
			""); err != nil {
			return err
		}
		if same, err = bodies.Commit(t.Context(), tx, tenant, store.KindAnnotations, []byte(`{"a":"1"}`),
			first); err != nil {
			return err
		}
		other, err = bodies.Commit(t.Context(), tx, tenant, store.KindAnnotations, []byte(`{"a":"2"}`), first)
		return err
	})
	if same != first || other == first {
		t.Errorf("commitments %s, %s and %s: want the second like the first, and the third another", first, same, other)
	}
	in(t, pool, tenant, func(tx pgx.Tx) error {
		body, err := bodies.Body(t.Context(), tx, tenant, other)
		if string(body) != `{"a":"2"}` {
			t.Errorf("read %q", body)
		}
		return err
	})
	in(t, pool, "other", func(tx pgx.Tx) error {
		body, err := bodies.Body(t.Context(), tx, tenant, other)
		if body != nil {
			t.Errorf("another tenant reads %q", body)
		}
		return err
	})
}

// TestPushesBecomeOnePoll: pushes in a row are due once, after the delay and not sooner than the quiet time after the
// last poll, and one gateway alone takes them.
func TestPushesBecomeOnePoll(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	var hooks store.Hooks
	h := cataloghook.Hook{Tenant: tenant, Subject: "fleet", Nonce: []byte("0123456789abcdef"), Created: noon}
	const delay, quiet = time.Second, 10 * time.Second
	push := func(at time.Time) {
		in(t, pool, tenant, func(tx pgx.Tx) error { return hooks.Pushed(t.Context(), tx, h, at, delay, quiet) })
	}
	due := func(at time.Time) int {
		list, err := hooks.Due(t.Context(), pool, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	take := func(at time.Time) (taken bool) {
		in(t, pool, tenant, func(tx pgx.Tx) (err error) {
			taken, err = hooks.Take(t.Context(), tx, h, at)
			return err
		})
		return taken
	}
	in(t, pool, tenant, func(tx pgx.Tx) error { return hooks.Put(t.Context(), tx, h) })
	push(noon)
	push(noon.Add(delay / 2)) // does not put the poll off
	if n := due(noon.Add(delay / 2)); n != 0 {
		t.Errorf("%d hooks are due before the delay", n)
	}
	if n := due(noon.Add(delay)); n != 1 {
		t.Errorf("%d hooks are due after the delay, want 1", n)
	}
	polled := noon.Add(delay)
	if !take(polled) || take(polled) {
		t.Error("want the push taken exactly once")
	}
	push(polled.Add(time.Second))
	if n := due(polled.Add(quiet - time.Millisecond)); n != 0 {
		t.Errorf("%d hooks are due in the quiet time", n)
	}
	if n := due(polled.Add(quiet)); n != 1 {
		t.Errorf("%d hooks are due after the quiet time, want 1", n)
	}
}

// TestHookHasOneNonce: another secret for a hook ends the one before.
func TestHookHasOneNonce(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	var hooks store.Hooks
	first := cataloghook.Hook{Tenant: tenant, Subject: "fleet", Nonce: []byte("aaaaaaaaaaaaaaaa"), Created: noon}
	second := first
	second.Nonce = []byte("bbbbbbbbbbbbbbbb")
	in(t, pool, tenant, func(tx pgx.Tx) error {
		return errors.Join(hooks.Put(t.Context(), tx, first), hooks.Put(t.Context(), tx, second))
	})
	for _, c := range []struct {
		nonce []byte
		want  int
	}{{first.Nonce, 0}, {second.Nonce, 1}} {
		list, err := hooks.ByNonce(t.Context(), pool, c.nonce)
		if err != nil || len(list) != c.want {
			t.Errorf("nonce %s: %d hooks, %v; want %d", c.nonce, len(list), err, c.want)
		}
	}
}

// TestOperatorHub: what was put last is read, and a tenant that never put anything has all default catalogs (R-CFG-10).
func TestOperatorHub(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	var hub store.OperatorHub
	in(t, pool, tenant, func(tx pgx.Tx) error {
		got, err := hub.Lock(t.Context(), tx, tenant, noon)
		if got.DisableAll || len(got.Sources) > 0 {
			t.Errorf("a new hub is %+v", got)
		}
		if err != nil {
			return err
		}
		return hub.Put(t.Context(), tx, tenant, operatorhub.Hub{
			DisableAll: true, Sources: map[string]bool{"fleet": false},
		}, noon)
	})
	in(t, pool, tenant, func(tx pgx.Tx) error {
		got, err := hub.Get(t.Context(), tx, tenant)
		if !got.Disabled("other") || got.Disabled("fleet") {
			t.Errorf("read %+v, want all disabled but fleet", got)
		}
		return err
	})
}

// TestPreviewsExpire: an expired preview is not found, is not counted, and is swept with the bodies that only it had;
// those of an applied one stay, since its events refer to them.
func TestPreviewsExpire(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	bodies := store.Bodies{Keys: bodiestest.Keys(t)}
	previews := store.Previews{Bodies: bodies}
	commitments := map[string]string{}
	var ids []uuid.UUID
	for _, name := range []string{"expired", "applied", "alive"} {
		in(t, pool, tenant, func(tx pgx.Tx) error {
			c, err := bodies.Commit(t.Context(), tx, tenant, store.KindAnnotations, []byte(`{}`), "")
			if err != nil {
				return err
			}
			commitments[name] = c
			p := preview.Kept{
				Tenant: tenant, ID: uuid.New(), Actor: "ann", Asked: noon, Expires: noon.Add(time.Hour),
				Bodies: []string{c},
			}
			if name == "alive" {
				p.Expires = noon.Add(3 * time.Hour)
			}
			ids = append(ids, p.ID)
			if err := previews.Put(t.Context(), tx, p); err != nil || name != "applied" {
				return err
			}
			p.AppliedAt, p.AppliedBy = noon, "bob"
			return previews.Applied(t.Context(), tx, p)
		})
	}
	later := noon.Add(2 * time.Hour)
	if n, err := previews.Alive(t.Context(), pool, tenant, later); err != nil || n != 1 {
		t.Errorf("%d previews are alive, %v; want 1", n, err)
	}
	if _, err := previews.Get(t.Context(), pool, tenant, ids[0], later); !errs.Is(err, errs.NotFound) {
		t.Errorf("an expired preview: %v, want not found", err)
	}
	if p, err := previews.Get(t.Context(), pool, tenant, ids[1],
		noon); err != nil || p.AppliedBy != "bob" || !p.AppliedAt.Equal(noon) {
		t.Errorf("the applied preview is %+v, %v", p, err)
	}
	if err := previews.Sweep(t.Context(), pool, later); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"expired": false, "applied": true, "alive": true} {
		if body, err := bodies.Body(t.Context(), pool, tenant,
			commitments[name]); err != nil || (body != nil) != want {
			t.Errorf("the body of the %s preview is kept: %v, %v; want %v", name, body != nil, err, want)
		}
	}
}

// TestAuditIsPagedNewestFirst: pages follow each other without gap or repetition.
func TestAuditIsPagedNewestFirst(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	bodies := store.Bodies{Keys: bodiestest.Keys(t)}
	previews := store.Previews{Bodies: bodies}
	in(t, pool, tenant, func(tx pgx.Tx) error {
		for i := range 5 {
			a := preview.Asked{
				Tenant: tenant, ID: uuid.New(), At: noon.Add(time.Duration(i/2) * time.Minute), Actor: "ann",
				Action: preview.ActionShadow,
			}
			if err := previews.Audit(t.Context(), tx, a); err != nil {
				return err
			}
		}
		return nil
	})
	seen := map[uuid.UUID]bool{}
	var before time.Time
	var id uuid.UUID
	for range 3 {
		list, err := previews.Asked(t.Context(), pool, tenant, before, id, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if seen[a.ID] || !before.IsZero() && a.At.After(before) {
				t.Errorf("entry %s at %s is repeated or out of order", a.ID, a.At)
			}
			seen[a.ID] = true
			before, id = a.At, a.ID
		}
	}
	if len(seen) != 5 {
		t.Errorf("three pages hold %d entries, want 5", len(seen))
	}
}

// TestFirstAdminToken: a new installation makes one token, and only once; a given one takes its place.
func TestFirstAdminToken(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	tokens := store.NewTokens(pool)
	ensure := func(given string) (store.Admin, error) {
		var a store.Admin
		err := pool.TenantTx(t.Context(), tenant, func(tx pgx.Tx) (err error) {
			a, err = tokens.EnsureAdmin(t.Context(), tx, given)
			return err
		})
		return a, err
	}
	first, err := ensure("")
	made := first.Generated
	if err != nil || made == "" || !first.Changed || first.Token.ID != "token-admin" {
		t.Fatalf("made %+v, %v", first, err)
	}
	if again, err := ensure(""); err != nil || again.Generated != "" || again.Changed || again.Token != first.Token {
		t.Errorf("a second start made %+v, %v", again, err)
	}
	if who, _, err := tokens.Caller(t.Context(), made); err != nil || who.Role != model.RoleAdmin ||
		who.Tenant != tenant || who.Token != "token-admin" {
		t.Errorf("the token belongs to %+v, %v", who, err)
	}
	if _, err := ensure("too-short"); !errs.Is(err, errs.Invalid) {
		t.Errorf("a short token: %v", err)
	}
	const given = "0123456789abcdef0123"
	if a, err := ensure(given); err != nil || !a.Changed || a.Generated != "" {
		t.Fatalf("configured %+v, %v", a, err)
	}
	if a, err := ensure(given); err != nil || a.Changed {
		t.Fatalf("configured again %+v, %v", a, err)
	}
	if _, _, err := tokens.Caller(t.Context(), made); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("the token that was made: %v, want that it is refused", err)
	}
	good, err := tokens.Good(t.Context(), []model.Session{
		{Token: model.HashToken(made)}, {Token: model.HashToken(given)},
	})
	if _, known := good[model.Session{Token: model.HashToken(given)}]; err != nil || len(good) != 1 || !known {
		t.Errorf("good are %v, %v", good, err)
	}
	in(t, pool, tenant, func(tx pgx.Tx) error { return tokens.End(t.Context(), tx, tenant, "token-admin") })
	// The next start with the same configuration.
	if a, err := ensure(given); err != nil || a.Changed || a.Token.ID != "" {
		t.Fatalf("configured after it was revoked %+v, %v", a, err)
	}
	if _, _, err := tokens.Caller(t.Context(), given); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("a revoked token that is configured still: %v, want that it stays refused", err)
	}
}

// A session of an identity ends when the identity is disabled, and when it is linked to another actor: what follows
// would be judged by the rights of who it was.
func TestSessionsEndWithALink(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	identities, tokens := store.NewIdentities(pool), store.NewTokens(pool)
	now := time.Now()
	i := model.Identity{
		ID: "identity-1", Kind: access.KindUser, Provider: "house", Actor: "person-1", CreatedAt: now, SeenAt: now,
	}
	in(t, pool, tenant, func(tx pgx.Tx) error {
		_, err := identities.Add(t.Context(), tx, tenant, model.SubjectOf("https://login.example.org", "ann"), i)
		return err
	})
	good := func(actor string) bool {
		t.Helper()
		s := model.Session{Tenant: tenant, Identity: i.ID, Actor: actor}
		got, err := tokens.Good(t.Context(), []model.Session{s})
		if err != nil {
			t.Fatal(err)
		}
		_, there := got[s]
		return there
	}
	if !good("person-1") || good("person-2") {
		t.Error("before the link: want that person-1 is let in alone")
	}
	i.Actor = "person-2"
	in(t, pool, tenant, func(tx pgx.Tx) error { return identities.Set(t.Context(), tx, tenant, i) })
	if good("person-1") || !good("person-2") {
		t.Error("after the link: want that person-2 is let in alone")
	}
}

// TestCredentialsAreEncrypted: what is stored can be read with the recipient's key alone, and is gone once erased.
func TestCredentialsAreEncrypted(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := store.NewCatalogSecrets(id.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	in(t, pool, tenant, func(tx pgx.Tx) error {
		_, err := secrets.Put(t.Context(), tx, tenant, "pull", source.Basic, []byte("hunter2"), noon)
		return err
	})
	var sealed []byte
	in(t, pool, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select ciphertext from gateway.catalog_secrets where name = 'pull'`).Scan(
			&sealed)
	})
	if r, err := age.Decrypt(bytes.NewReader(sealed), id); err != nil {
		t.Errorf("decrypt with the recipient's key: %v", err)
	} else if plain, err := io.ReadAll(r); err != nil || string(plain) != "hunter2" || bytes.Contains(sealed, plain) {
		t.Errorf("decrypted %q, %v", plain, err)
	}
	kinds := func() (kinds map[string]source.SecretKind) {
		in(t, pool, tenant, func(tx pgx.Tx) (err error) {
			kinds, err = secrets.Kinds(t.Context(), tx, tenant)
			return err
		})
		return kinds
	}
	if k := kinds(); k["pull"] != source.Basic {
		t.Errorf("kinds %v", k)
	}
	in(t, pool, tenant, func(tx pgx.Tx) error { return secrets.Erase(t.Context(), tx, tenant, "pull") })
	if k := kinds(); len(k) != 0 {
		t.Errorf("kinds %v after it was erased", k)
	}
	if _, err := store.NewCatalogSecrets("no key"); err == nil {
		t.Error("a recipient that is no key was taken")
	}
}
