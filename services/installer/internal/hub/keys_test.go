package hub

import (
	"crypto/ed25519"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// TestAnotherActiveKey: after a new key has become active every message is signed with it at the hub's next start; the
// old key is named as used while a plan is under way that may have begun under its grant, and no longer.
func TestAnotherActiveKey(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	d.publishPlan(windowed("Automatic"))
	old, ok := d.grant()
	if !ok || old.Verify(d.key) != nil {
		t.Fatalf("the grant is %+v, %v", old, ok)
	}
	was := d.h.keyID
	next := ed25519.NewKeyFromSeed([]byte("another thirty-two bytes, tests!"))
	d.h.c.Key, d.h.keyID = next, keys.SignerID(next)
	if err := d.h.markOtherKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.publish()
	d.key = keys.Accept(next.Public().(ed25519.PublicKey))
	g, ok := d.grant()
	if by, _ := keys.SignedBy(g.Signature); !ok || by.String() != d.h.keyID {
		t.Fatalf("the grant is %+v, %v", g, ok)
	}
	if got := d.keysInUse(); !slices.Equal(got, []string{was, d.h.keyID}) {
		t.Errorf("with a plan under way keys %v are in use", got)
	}
	if err := d.h.markOtherKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := d.dirty(); n != 0 {
		t.Errorf("%d scopes are marked although all is signed with the active key", n)
	}
	d.publishPlan(events.InstallPlanStarted{}, events.InstallPlanFinished{})
	if got := d.keysInUse(); !slices.Equal(got, []string{d.h.keyID}) {
		t.Errorf("after the plan keys %v are in use", got)
	}
}

func (d *fixture) keysInUse() (list []string) {
	d.t.Helper()
	err := d.h.c.Pool.QueryRow(d.t.Context(), `select array_agg(key_id order by key_id = $1)
		from installer_api.key_uses`, d.h.keyID).Scan(&list)
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

func (d *fixture) dirty() (n int) {
	d.t.Helper()
	if err := d.h.c.Pool.QueryRow(d.t.Context(), `select count(*) from installer.dirty`).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}
