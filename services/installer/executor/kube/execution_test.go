package kube

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestProven: an execution is relied on as far as the hub signed it, however long ago (DESIGN D6).
func TestProven(t *testing.T) {
	t.Parallel()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(change func(*Execution)) *Execution {
		g, err := protocol.Grant{
			Plan: "p", Digest: "d", Cluster: "c", Namespace: "ops", Account: "installer",
			Expires: time.Unix(0, 0),
		}.Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		x := &Execution{Namespace: "ops", Spec: ExecutionSpec{
			Plan: "p", Digest: "d", Account: "system:serviceaccount:ops:installer", Grant: g,
		}}
		change(x)
		return x
	}
	removed := func(change func(*Execution)) *Execution {
		r, err := protocol.Removal{ID: "r", CSV: "tide.v1"}.Granted("c", "ops", time.Unix(0, 0), key)
		if err != nil {
			t.Fatal(err)
		}
		x := &Execution{Namespace: "ops", Spec: ExecutionSpec{Plan: "r", Removal: &r}}
		change(x)
		return x
	}
	for name, c := range map[string]struct {
		x    *Execution
		want bool
	}{
		"a plan":                        {plan(func(*Execution) {}), true},
		"a plan without a grant":        {plan(func(x *Execution) { x.Spec.Grant = protocol.Grant{} }), false},
		"a plan with a grant of nobody": {plan(func(x *Execution) { x.Spec.Grant.Signature = nil }), false},
		"another plan":                  {plan(func(x *Execution) { x.Spec.Plan = "q" }), false},
		"another document":              {plan(func(x *Execution) { x.Spec.Digest = "e" }), false},
		"another account": {plan(
			func(x *Execution) { x.Spec.Account = "system:serviceaccount:ops:admin" }), false},
		"no account, for all rights":    {plan(func(x *Execution) { x.Spec.Account = "" }), false},
		"a plan of another namespace":   {plan(func(x *Execution) { x.Namespace = "other" }), false},
		"a removal":                     {removed(func(*Execution) {}), true},
		"a removal of another operator": {removed(func(x *Execution) { x.Spec.Removal.CSV = "buoy.v1" }), false},
		"a removal with definitions, too": {
			removed(func(x *Execution) { x.Spec.Removal.CRDs = []string{"*"} }),
			false,
		},
		"a removal in another namespace": {removed(func(x *Execution) { x.Namespace = "other" }), false},
		"a removal through an account": {removed(
			func(x *Execution) { x.Spec.Account = "system:serviceaccount:ops:admin" }), false},
		"a plan's grant used for a removal": {
			plan(
				func(x *Execution) {
					x.Spec.Removal = &protocol.Removal{
						ID: "p", CSV: "tide.v1", Grant: x.Spec.Grant,
					}
				}),
			false,
		},
		"a removal in the name of a plan id": {removed(func(x *Execution) { x.Spec.Plan = "p" }), false},
	} {
		err := c.x.Proven(keys.Accept(public), "c")
		if (err == nil) != c.want || err != nil && !errs.Is(err, errs.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want && c.x.Proven(keys.Accept(public), "another cluster") == nil {
			t.Errorf("%s is believed in another cluster, too", name)
		}
	}
}
