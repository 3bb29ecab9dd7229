package compare_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
)

var update = flag.Bool("update", false, "write what is found into testdata/hostile")

// sections are the parts of a file of testdata/hostile, by name: from and to are manifests, want is what is found.
func sections(tb testing.TB, file string) (note string, parts map[string]string) {
	tb.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	parts = map[string]string{}
	name := ""
	for line := range strings.Lines(string(raw)) {
		if after, ok := strings.CutPrefix(line, "-- "); ok {
			name = strings.TrimSuffix(strings.TrimSpace(after), " --")
			continue
		}
		parts[name] += line
	}
	return parts[""], parts
}

func manifestsOf(tb testing.TB, text string) bundle.Content {
	tb.Helper()
	return content(tb, strings.Split(text, "\n---\n")...)
}

// found is what a difference tells, a line each.
func found(d compare.Difference) string {
	var out []string
	for _, r := range d.Gained {
		what := strings.Join(slices.DeleteFunc([]string{
			r.URL, strings.TrimSuffix(r.Resource+"."+r.Group, "."), r.Name,
		}, func(s string) bool { return s == "" }), " ")
		if r.Role != "" {
			what = "whatever " + r.Role + " allows"
		}
		who := "operator"
		if r.Holder != "" {
			who = r.Holder
		}
		out = append(out, fmt.Sprintf("right: %s may %s %s (%s): %s", who, strings.Join(r.Verbs, " "), what, r.Scope,
			r.Sensitive))
	}
	for _, x := range d.Demands {
		out = append(out, strings.TrimSpace(fmt.Sprintf("demand: %s by %s: %s", x.Danger, x.Object, x.Detail)))
	}
	return strings.Join(append(out, ""), "\n")
}

// TestHostileUpgrades compares upgrades that ask for more than they show, one file each: bindings to roles that a
// bundle does not bring, of others and of everybody, aggregation, what pods ask of their nodes, accounts of neighbours,
// registries, priorities, webhooks, and forms that cannot be judged (DESIGN D10). None of them may be shown as asking
// for nothing; what is found is in the file, letter by letter.
func TestHostileUpgrades(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/hostile/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d hostile upgrades (%v), want 40 at least", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			note, parts := sections(t, file)
			from, to := manifestsOf(t, parts["from.yaml"]), manifestsOf(t, parts["to.yaml"])
			d := difference(t, from, to)
			got := found(d)
			if *update {
				text := note + "-- want --\n" + got + "-- from.yaml --\n" + parts["from.yaml"] + "-- to.yaml --\n" +
					parts["to.yaml"]
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if got != parts["want"] {
				t.Errorf("found:\n%s\nwant:\n%s", got, parts["want"])
			}
			if d.Growth() == 0 || d.Empty() {
				t.Error("it is shown as asking for nothing new")
			}
			for what, c := range map[string]bundle.Content{"before": from, "after": to} {
				if d := difference(t, c, c); !d.Empty() {
					t.Errorf("%s differs from itself: %s", what, found(d))
				}
			}
		})
	}
}
