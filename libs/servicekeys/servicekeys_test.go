package servicekeys_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/servicekeys"
)

// TestServicesAreBelievedByTheirRole: what a process signs is believed as the word of its service and of no other, also
// of one that began later; a key that the database no longer knows is not.
func TestServicesAreBelievedByTheirRole(t *testing.T) {
	t.Parallel()
	db, text := pgtest.DB(t), []byte("what was asked")
	open := func(service string) *servicekeys.Ring {
		t.Helper()
		r, err := servicekeys.Open(t.Context(), db.Pool(t, service), service, bustest.Log(t))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sign := func(r *servicekeys.Ring) string {
		t.Helper()
		s, err := r.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	gateway := open("gateway")
	resolver, second := open("resolver"), open("resolver") // gateway has not heard of them
	for name, c := range map[string]struct {
		signature string
		by        []string
		text      []byte
		want      bool
	}{
		"the resolver":             {sign(resolver), []string{"resolver"}, text, true},
		"its second replica":       {sign(second), []string{"installer", "resolver"}, text, true},
		"another service":          {sign(resolver), []string{"installer"}, text, false},
		"nobody may":               {sign(resolver), nil, text, false},
		"another text":             {sign(resolver), []string{"resolver"}, []byte("what was not"), false},
		"no signature":             {"", []string{"resolver"}, text, false},
		"garbage":                  {strings.Repeat("A", 96), []string{"resolver"}, text, false},
		"its own, as the resolver": {sign(gateway), []string{"resolver"}, text, false},
	} {
		if got := gateway.Signed(t.Context(), c.by, c.text, c.signature); got != c.want {
			t.Errorf("%s: believed is %v", name, got)
		}
	}
	if _, err := servicekeys.Open(t.Context(), db.Pool(t, "catalog-indexer"), "resolver", bustest.Log(t)); !errs.Is(
		err, errs.Forbidden) {
		t.Errorf("a key in the name of another service: %v", err)
	}
	if _, err := db.Pool(t, pgtest.Admin).Exec(t.Context(), `update eventlog.service_keys
		set seen = now() - interval '61 minutes' where service = 'resolver'`); err != nil {
		t.Fatal(err)
	}
	if open("installer").Signed(t.Context(), []string{"resolver"}, text, sign(resolver)) {
		t.Error("a process that was silent for an hour is believed")
	}
}
