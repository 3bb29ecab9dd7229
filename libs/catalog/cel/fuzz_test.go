package cel_test

import (
	"encoding/json"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/cel"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// FuzzRule feeds arbitrary text as a rule and as a property's value: compiling and evaluating end without a panic
// within their bounds, a fault is the rule's, and the same is said twice (R-RES-26, DESIGN D10).
func FuzzRule(f *testing.F) {
	for _, rule := range []string{
		`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.0.0") >= 0)`,
		`properties.all(p, p.value == {'a': [1, 2.0, 3u, b'x', null]})`,
		`properties.map(p, p.type).filter(t, t.startsWith("a")).exists_one(t, t.matches("^(a|b)+$"))`,
		`size(properties) > 0 ? properties[0].value < 2 : has(properties[0].type)`,
		`duration("1h") < timestamp("2020-01-01T00:00:00Z") - timestamp("2019-01-01T00:00:00Z")`,
		`"a" in properties.map(p, p.type) || !true && -1 / 0 == 1`,
		"properties.exists(p,\n", `((((`, `1 + 1`, "\x00", `dyn(1) == "1"`, `type(properties) == list`,
	} {
		f.Add(rule, `{"version": "1.2.0", "a": [1, {"b": null}]}`)
	}
	f.Fuzz(func(t *testing.T, rule, value string) {
		r, err := cel.Compile(rule)
		again, errAgain := cel.Compile(rule)
		if (err == nil) != (errAgain == nil) {
			t.Fatalf("compiled twice: %v, %v", err, errAgain)
		}
		if err != nil {
			if !errs.Is(err, errs.Invalid) || err.Error() != errAgain.Error() {
				t.Fatalf("the fault of rule %q is %v, then %v", rule, err, errAgain)
			}
			return
		}
		bundle := func() *cel.Bundle {
			return cel.NewBundle(func(yield func(string, json.RawMessage) bool) {
				_ = yield("olm.package", json.RawMessage(value)) && yield("a", json.RawMessage(`"text"`))
			})
		}
		holds, cost := r.Eval(bundle())
		for range 4 {
			if ok, c := again.Eval(bundle()); ok != holds || c != cost {
				t.Fatalf("rule %q is %t for %d, then %t for %d", rule, holds, cost, ok, c)
			}
		}
	})
}
