// Package bodiestest has keys of bodies for tests, and puts bodies where the gateway puts them.
package bodiestest

import (
	"context"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Settings returns settings with keys for tests, of the kinds given or of all.
func Settings(kinds ...bodies.Kind) bodies.Settings {
	if len(kinds) == 0 {
		kinds = bodies.Kinds()
	}
	out := bodies.Settings{}
	for _, k := range kinds {
		secret := "a-secret-of-tests-that-seals-every-" + string(k)
		out[k] = &secret
	}
	return out
}

// Secrets are the values of Settings, as services take them.
func Secrets() bodies.Secrets {
	return bodies.Secrets{
		Configuration: Secret(bodies.Configuration), Source: Secret(bodies.Source),
		Annotation: Secret(bodies.Annotations), Reason: Secret(bodies.Reason),
	}
}

// Secret is the value of one setting of Settings.
func Secret(k bodies.Kind) string { return *Settings(k)[k] }

// Keys are the keys of Settings.
func Keys(t testing.TB, kinds ...bodies.Kind) bodies.Keys {
	t.Helper()
	k, err := Settings(kinds...).Keys()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Put stores a body, sealed, and returns its commitment. The pool has the gateway's role.
func Put(t testing.TB, pool *pg.Pool, tenant string, kind bodies.Kind, body string) string {
	t.Helper()
	salt := []byte("the salt of tests")
	commitment := digest.Commitment(salt, []byte(body))
	row, err := Keys(t).Seal(tenant, bodies.Row{Commitment: commitment, Kind: kind, Salt: salt, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.Exec(context.WithoutCancel(t.Context()), `insert into gateway.bodies (tenant, commitment, kind, key_id,
		salt, body) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`, tenant, row.Commitment, row.Kind, row.KeyID,
		row.Salt, row.Body)
	if err != nil {
		t.Fatal(err)
	}
	return commitment
}
