package cel_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog/cel"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// bundleOf is the bundle of a list of {type, value}.
func bundleOf(t testing.TB, document string) *cel.Bundle {
	t.Helper()
	var list []struct {
		Type  string
		Value json.RawMessage
	}
	if err := json.Unmarshal([]byte(document), &list); err != nil {
		t.Fatal(err)
	}
	return cel.NewBundle(func(yield func(string, json.RawMessage) bool) {
		for _, p := range list {
			if !yield(p.Type, p.Value) {
				return
			}
		}
	})
}

func holds(r *cel.Rule, b *cel.Bundle) bool {
	ok, _ := r.Eval(b)
	return ok
}

const buoy = `[
	{"type": "olm.package", "value": {"packageName": "buoy", "version": "1.2.0"}},
	{"type": "olm.gvk", "value": {"group": "sea.test", "version": "v1", "kind": "Buoy"}},
	{"type": "sea.test/grade", "value": "certified"},
	{"type": "sea.test/level", "value": 3},
	{"type": "sea.test/short", "value": "v1"},
	{"type": "sea.test/half", "value": 1.5},
	{"type": "sea.test/nothing", "value": null},
	{"type": "sea.test/list", "value": [1, "a", {"b": true}]}
]`

// TestHolds proves R-RES-26 and RESOLVER-NOTES 5.6: what rules see of one bundle, and that an error is no.
func TestHolds(t *testing.T) {
	t.Parallel()
	const compares = `properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, %q) %s)`
	for rule, want := range map[string]bool{
		`properties.exists(p, p.type == "olm.package" && p.value.packageName == "buoy")`:                                 true,
		`properties.exists(p, p.type == "olm.package" && p.value.packageName == "brine")`:                                false,
		`properties.exists(p, p.type == 'olm.gvk' && p.value == {'group': 'sea.test', 'version': 'v1', 'kind': 'Buoy'})`: true,
		`properties.exists(p, p.type == 'olm.gvk' && p.value == {'group': 'sea.test', 'version': 'v2', 'kind': 'Buoy'})`: false,
		// any type
		`properties.exists(p, p.type == "sea.test/grade" && p.value == "certified")`:            true,
		`properties.exists(p, p.type == "sea.test/nothing" && p.value == null)`:                 true,
		`properties.exists(p, p.type == "sea.test/list" && p.value[2].b && size(p.value) == 3)`: true,
		`properties.exists(p, p.type == "olm.package" && p.value.version.matches("^1\\."))`:     true,
		`properties.all(p, has(p.type)) && size(properties) == 8`:                               true,
		`true`:  true,
		`false`: false,

		// Numbers are doubles; ordering and equality with whole numbers work.
		`properties.exists(p, p.type == "sea.test/level" && p.value > 2)`:             true,
		`properties.exists(p, p.type == "sea.test/level" && p.value == 3)`:            true,
		`properties.exists(p, p.type == "sea.test/level" && p.value >= 2.5)`:          true,
		`properties.exists(p, p.type == "sea.test/level" && type(p.value) == double)`: true,
		`properties.exists(p, p.type == "sea.test/level" && p.value < 3)`:             false,

		// Versions are taken as people write them.
		fmt.Sprintf(compares, "1.2.0", "== 0"):    true,
		fmt.Sprintf(compares, "v1.2", "== 0"):     true,
		fmt.Sprintf(compares, "1", "> 0"):         true,
		fmt.Sprintf(compares, "1.10.0", "< 0"):    true,
		fmt.Sprintf(compares, "1.2.0-rc.1", ">0"): true,
		`semver_compare("v1", "1.0") == 0`:        true,
		`semver_compare(1, 1.5) < 0`:              true,
		`properties.exists(p, p.type == "sea.test/half" && semver_compare(p.value, "1.5.0") == 0)`: true,

		// What ends in an error does not hold, unless something else decides.
		fmt.Sprintf(compares, "new", "!= 0"):                            false,
		`semver_compare(true, "1") != 0`:                                false,
		`semver_compare("` + strings.Repeat("1", 300) + `", "1") != 0`:  false,
		`properties.all(p, p.value.packageName == "buoy")`:              false,
		`properties.exists(p, p.value.packageName == "buoy")`:           true,
		`properties[99].type == "olm.package"`:                          false,
		`!(properties[99].type == "olm.package")`:                       false,
		`1 / size(properties.filter(p, p.type == "nobody's")) == 1`:     false,
		`properties.exists(p, p.type == "olm.gvk" && p.value > 2)`:      false,
		`properties.exists(p, p.type == "olm.package" && p.value.bare)`: false,
	} {
		r, err := cel.Compile(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if holds(r, bundleOf(t, buoy)) != want {
			t.Errorf("%s: holds is %t, want %t", rule, !want, want)
		}
		if r.Text() != rule {
			t.Errorf("text %q, want %q", r.Text(), rule)
		}
	}
}

// TestImplied: what a rule tells of the bundles for which it holds.
func TestImplied(t *testing.T) {
	t.Parallel()
	buoy := []cel.Property{{Type: "olm.package", Fields: map[string]string{"packageName": "buoy"}}}
	gvk := cel.Property{Type: "olm.gvk", Fields: map[string]string{
		"group": "sea.test", "version": "v1",
		"kind": "Buoy",
	}}
	for rule, want := range map[string][]cel.Property{
		`properties.exists(p, p.type == "olm.package" && p.value.packageName == "buoy")`:                                               buoy,
		`properties.exists(p, p.type == "olm.package" && (semver_compare(p.value.version, "1") > 0 && "buoy" == p.value.packageName))`: buoy,
		`size(properties) > 1 && properties.exists(x, "olm.package" == x.type && x.value.packageName == "buoy") && true`:               buoy,
		`properties.exists(p, p.type == 'olm.gvk' && p.value == {'group': 'sea.test', 'version': 'v1', 'kind': 'Buoy'})`:               {gvk},
		`properties.exists(p, p.type == "a") && properties.exists(p, p.type == "b" && p.value.c == 1 && p.value.d.e == "f")`:           {{Type: "a", Fields: map[string]string{}}, {Type: "b", Fields: map[string]string{}}},
		// of any type
		`properties.exists(p, p.value.packageName == "buoy")`:                                    nil,
		`properties.exists(p, p.type == "olm.package" || p.value.packageName == "buoy")`:         nil,
		`properties.exists(p, p.type != "olm.package")`:                                          nil,
		`properties.exists(p, !(p.type == "olm.package"))`:                                       nil,
		`!properties.exists(p, p.type == "olm.package" && p.value.packageName == "buoy")`:        nil,
		`true || properties.exists(p, p.type == "olm.package" && p.value.packageName == "buoy")`: nil,
		`properties.all(p, p.type == "olm.package" && p.value.packageName == "buoy")`:            nil,
		`properties.exists_one(p, p.type == "olm.package" && p.value.packageName == "buoy")`:     nil,
		`[{"type": "olm.package"}].exists(p, p.type == "olm.package")`:                           nil,
		`properties.exists(p, properties.exists(q, q.type == "olm.package"))`:                    nil,
		`properties.filter(p, p.type == "olm.package").exists(p, p.value.packageName == "buoy")`: nil,
		`true`: nil,
	} {
		r, err := cel.Compile(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if diff := cmp.Diff(want, r.Implied()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

// TestCompileNamesThePlace: an author learns which rule and where in it (R-RES-26); what is no boolean is refused.
func TestCompileNamesThePlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, want string }{
		"syntax":            {`properties.exists(p, p.type == `, "line 1, column 32: Syntax error"},
		"second line":       {"properties.exists(p,\n p.kind === 'a')", "line 2, column 11: "},
		"unknown name":      {`propertys.size() == 1`, "line 1, column 1: undeclared reference to 'propertys'"},
		"unknown function":  {`semver(properties[0].type) == 1`, "line 1, column 7: undeclared reference to 'semver'"},
		"too few arguments": {`semver_compare("1") == 0`, "no matching overload"},
		"types":             {`1 + "a" == 2`, "no matching overload"},
		"a number":          {`1 + 1`, `"1 + 1" gives int, but must give bool`},
		"anything":          {`properties[0].value`, "gives a value of any type, but must give bool"},
		"message":           {`google.protobuf.ListValue{values: [1]} == [1]`, "makes a message"},
		"many values":       {`[` + strings.Repeat("properties, ", 65) + `1] != []`, "puts 65 values"},
		"a time zone": {
			`timestamp("2020-01-01T00:00:00Z").getHours("Europe/Berlin") == 1`,
			"no matching overload",
		},
		"a list": {`properties.map(p, true)`, "gives list(bool), but must give bool"},
		"empty":  {"", `"" does not compile`},
		"long": {
			strings.Repeat("true && ", cel.MaxRuleBytes/8) + "true",
			fmt.Sprintf("has %d bytes, more than %d", cel.MaxRuleBytes+4, cel.MaxRuleBytes),
		},
		"deep": {strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500), "does not compile"},
	} {
		_, err := cel.Compile(c.rule)
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
			t.Errorf("%s: %v (%s), want it invalid and to say %q on one line", name, err, errs.KindOf(err), c.want)
		}
		if !strings.HasPrefix(c.rule, "true") && !strings.Contains(
			fmt.Sprint(err), fmt.Sprintf("%q", c.rule)[:min(len(c.rule), 20)]) {
			t.Errorf("%s: %v does not name the rule", name, err)
		}
	}
}

// TestWorkIsBounded: a rule that would look at everything for everything ends, and does not hold (DESIGN D10).
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 300 {
		list = append(list, fmt.Sprintf(`{"type": "t%d", "value": [%s0]}`, i, strings.Repeat(`"a", {"b": "c"}, `, 20)))
	}
	b := bundleOf(t, "["+strings.Join(list, ",")+"]")
	if r, err := cel.Compile("size(properties) == 300"); err != nil || !holds(r, b) {
		t.Fatal("the bundle is not looked at", err)
	}
	double := func(times int, step string) string { return strings.Repeat(step, times) }
	for name, rule := range map[string]string{
		"pairs":             `properties.all(p, properties.all(q, p.value == q.value))`,
		"triples":           `properties.all(p, properties.all(q, properties.all(r, true)))`,
		"long texts":        `["x"]` + double(40, `.map(a, a + a)`) + `.all(a, size(a) > 0)`,
		"long lists":        `[[1]]` + double(40, `.map(a, a + a)`) + `.all(a, size(a) > 0)`,
		"trees":             `[[1]]` + double(20, `.map(a, [a, a])`) + `.all(a, a == a)`,
		"trees of any type": `[dyn(1)]` + double(15, `.map(a, dyn([a, a, a]))`) + `.all(a, a in [a, a])`,
		"maps":              `[dyn(1)]` + double(20, `.map(a, dyn({"a": a, "b": a}))`) + `.all(a, a == a)`,
		"many copies": `[` + double(30, `properties, `) + `properties] == [` + double(30, `properties, `) +
			`properties]`,
		"one beside many":    `properties.all(p, properties.all(q, properties.all(r, dyn(properties) != 1 && 1 != dyn(properties))))`,
		"trees of the whole": `[dyn(properties)]` + double(14, `.map(a, [a, a])`) + `.all(a, a == a && !(a in [a]))`,
		"long matches":       `["x"]` + double(14, `.map(a, a + a)`) + `.all(a, !a.matches("((x{2}){10}){20}y"))`,
		"expressions": `properties.all(p, properties.all(q, p.type.matches("(t+)+` +
			strings.Repeat("[0-9]?", 100) + `$")))`,
		"repetitions":        `properties.all(p, !p.type.matches("((x{30}){30}y)+"))`,
		"made expressions":   `properties.all(p, properties.all(q, !p.type.matches(q.type + "(x{40}){40}y")))`,
		"unlike expressions": `properties.all(p, properties.all(q, properties.all(r, ("x" + p.type).matches(q.type + r.type) || true)))`,
	} {
		r, err := cel.Compile(rule)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ok, cost := r.Eval(b)
		if ok {
			t.Errorf("%s: holds, though it costs too much", name)
		}
		if most := cel.MaxCost + cel.MaxPropertyBytes/10; cost < cel.MaxCost || cost > most {
			t.Errorf("%s: costs %d, want it to be told as %d to %d", name, cost, cel.MaxCost, most)
		}
	}
}

// TestWorkIsPaid: what an evaluation does is in proportion to what it costs, so that a bound on cost is one on work
// (DESIGN D10). Going through a value allocates, so that allocations tell how much was gone through.
func TestWorkIsPaid(t *testing.T) { //nolint:paralleltest // allocations are those of the process
	const perUnit = 10
	b := bundleOf(t, "["+strings.Repeat(`{"type": "t", "value": {"a": [1, 2, 3], "b": {"c": "d", "e": [4, 5, 6]}}}, `, 800)+
		`{"type": "t", "value": 1}]`)
	whole := strings.Repeat(`properties, `, 30) + `properties`
	for _, rule := range []string{
		`[` + whole + `] == [` + whole + `]`,
		`[dyn(properties)]` + strings.Repeat(`.map(a, [a, a])`, 8) + `.all(a, a == a)`,
		`[dyn(properties)]` + strings.Repeat(`.map(a, dyn([a, a]))`, 8) + `.all(a, dyn([1]) in a)`,
		`properties.all(p, properties.all(q, dyn(properties) != 1))`,
	} {
		r, err := cel.Compile(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		_, cost := r.Eval(b)
		if n := testing.AllocsPerRun(1, func() { r.Eval(b) }); n > float64(cost*perUnit) {
			t.Errorf("%.60s costs %d, but allocates %.0f times", rule, cost, n)
		}
	}
}

// TestMatchingIsPaidBefore: a regular expression that would look at a long text for seconds is not asked.
func TestMatchingIsPaidBefore(t *testing.T) {
	t.Parallel()
	const pattern = "((x?x?x?){10}){20}y"
	text := strings.Repeat("x", 20_000)
	b := bundleOf(t, `[{"type": "t", "value": "`+text+`"}]`)
	r, err := cel.Compile(`properties.exists(p, p.value.matches("` + pattern + `") || true)`)
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(pattern)
	// Compared with what it would have cost on this machine in this moment; one fair comparison of several is enough.
	var seen []string
	for range 4 {
		began := time.Now()
		ok, cost := r.Eval(b)
		took := time.Since(began)
		if ok || cost < cel.MaxCost {
			t.Fatalf("holds %t for %d", ok, cost)
		}
		began = time.Now()
		asked.MatchString(text)
		matched := time.Since(began)
		if took < matched/4 {
			return
		}
		seen = append(seen, fmt.Sprintf("%s where a match takes %s", took, matched))
	}
	t.Errorf("judged in %s", strings.Join(seen, ", "))
}

// TestLookIsBounded: a bundle with more properties than can be looked at, or with one that is no JSON, meets no rule.
func TestLookIsBounded(t *testing.T) {
	t.Parallel()
	always, err := cel.Compile("true")
	if err != nil {
		t.Fatal(err)
	}
	const most = cel.MaxPropertyBytes/10 + cel.MaxCost
	big := bundleOf(t, `[{"type": "a", "value": "`+strings.Repeat("x", cel.MaxPropertyBytes)+`"}]`)
	if ok, cost := always.Eval(big); ok || cost < cel.MaxPropertyBytes/10 || cost > most {
		t.Errorf("a bundle that is too large is looked at (%t) for %d", ok, cost)
	}
	many := cel.NewBundle(func(yield func(string, json.RawMessage) bool) {
		for range cel.MaxPropertyBytes {
			if !yield("a", json.RawMessage("1")) {
				return
			}
		}
	})
	if holds(always, many) {
		t.Error("a bundle with too many properties is looked at")
	}
	for _, raw := range []string{"", "{", "1e999", strings.Repeat("[", 20_000)} {
		b := cel.NewBundle(func(yield func(string, json.RawMessage) bool) { yield("a", json.RawMessage(raw)) })
		if holds(always, b) {
			t.Errorf("a bundle with the value %.10q is looked at", raw)
		}
	}
}

// TestMapsHaveAnOrder: what goes through a map meets its keys in the same order each time, wherever the map is from,
// so that a rule always says the same of a bundle for the same cost (DESIGN D5).
func TestMapsHaveAnOrder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`"z", `, 200) + `"z"`
	document := `[{"type": "x", "value": {"c": [` + long + `], "b": 1, "a": [` + long +
		`], "d": [{"h": 1, "f": 2, "g": 3, "e": 4}]}}]`
	for rule, want := range map[string]bool{
		`properties.all(p, p.map(k, k) == ["type", "value"])`:                                                       true,
		`properties.all(p, dyn(p.value).map(k, k) == ["a", "b", "c", "d"])`:                                         true,
		`properties.all(p, dyn(p).value.d[0].map(k, k) == ["e", "f", "g", "h"])`:                                    true,
		`properties.all(p, [p, p].all(q, dyn(q.value).filter(k, k > "a")[0] == "b"))`:                               true,
		`{"d": 1, "c": 2, "a": 3, "b": 4}.map(k, k) == ["a", "b", "c", "d"]`:                                        true,
		`[{3: 1, 2u: 2, true: 3, "b": 4, false: 5, "a": 6, -1: 7}].all(m, m.map(k, m[k]) == [5, 3, 7, 1, 6, 4, 2])`: true,
		`dyn({"d": {"z": 1, "y": 2}}).all(k, dyn({"d": {"z": 1, "y": 2}})[k].map(l, l)[0] == "y")`:                  true,
		// no key
		`{dyn(1.5): 1} == {dyn(1.5): 1}`: false,
		// Whether the work is too much depends on which key comes first.
		`properties.exists(p, dyn(p.value).exists(k, dyn(p.value)[k] == 1.0 || dyn(p.value)[k].all(x, dyn(p.value)[k].all(y, x + y != "q"))))`: false,
		`properties.exists(p, dyn(p.value).exists(k, dyn(p.value)[k] == 1.0 || k == "c"))`:                                                     true,
	} {
		r, err := cel.Compile(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		_, first := r.Eval(bundleOf(t, document))
		for range 100 {
			if ok, cost := r.Eval(bundleOf(t, document)); ok != want || cost != first {
				t.Errorf("%s: holds is %t for %d, want %t for %d each time", rule, ok, cost, want, first)
				break
			}
		}
	}
}

// TestCompiledRulesAreShared: many that compile the same rule at once get working ones, and more rules than are
// kept do no harm.
func TestCompiledRulesAreShared(t *testing.T) {
	t.Parallel()
	b := bundleOf(t, buoy)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 60 {
				level := (i + n) % 40 * 5 // 40 rules, in another order each
				r, err := cel.Compile(fmt.Sprintf(
					`properties.exists(p, p.type == "sea.test/level" && p.value > %d - 5)`, level))
				if err != nil || holds(r, b) != (level < 8) {
					t.Errorf("level %d: %v", level, err)
				}
			}
		})
	}
	wg.Wait()
	first, err := cel.Compile("1 == 1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := cel.Compile("1 == 1"); err != nil || again != first {
		t.Errorf("the same rule is compiled again (%v)", err)
	}
}
