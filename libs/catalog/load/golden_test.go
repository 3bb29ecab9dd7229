package load_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// goldenFindings is written anew by go test ./libs/catalog -run TestFindingsOfRealCatalogs -update; read
// the difference: each entry claims that it is right.
const goldenFindings = "testdata/findings.golden.md"

// whyRight says of every rule that real catalogs break why its findings are right, and no noise.
func whyRight() map[string]string {
	return map[string]string{
		"error R-CAT-6": "The file is a list that the archive's makers added; it is an object without a schema, " +
			"and every file of a tree is catalog content (R-CAT-1).",
		"warning R-CAT-24": "Two directories hold different manifests under one CSV name. A bundle is one version " +
			"and never changes (R-CAT-50), so only one can be served, and nobody but the author knows which is meant.",
		"warning R-CAT-35": "The channel has more than one bundle that no other one replaces or skips: their authors " +
			"keep the edges in templates that the tree does not hold. In documents that would be an error; here the " +
			"bundles are joined in order of version, and whoever reads the list can give the edges instead.",
		"warning R-CAT-36": "An entry of the channel is replaced, but by a bundle to which nothing leads from the " +
			"head: only a skipRange, where one holds its version, brings on whoever has it installed.",
		"warning R-CAT-37": "Two CSVs of the channel replace each other by way of others, so that there is no order; " +
			"subscriptions to the channel say so and the package is served otherwise.",
		"warning R-CAT-38": "The annotation olm.skipRange of the CSV is no range of versions (a name, or a version " +
			"with a letter, stands there), so that nobody is ever updated by it.",
		"warning R-CAT-42": "The name does not have the form <operator>.v<version>. It works, as the sources have it " +
			"(BEHAVIOUR §22-29), and cannot be changed once it is published.",
		"info R-CAT-4": "The file or directory stands beside bundle directories and is none: templates and recipes " +
			"of the publisher's pipeline, which are no catalog content.",
	}
}

// TestFindingsOfRealCatalogs proves that what is found in all published catalogs is what is known to be
// wrong with them, entry by entry (R-CAT-1 … R-CAT-43).
func TestFindingsOfRealCatalogs(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for _, archive := range []string{
		catalogtest.CertifiedFBC414, catalogtest.CertifiedFBC420, catalogtest.CertifiedBundles420,
		catalogtest.InstallSet, catalogtest.Okderators,
	} {
		c, err := load.Load(os.DirFS(catalogtest.Unpack(t, archive, nil)), load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.Findings {
			key := string(f.Severity) + " " + f.Rule
			found[key] = append(found[key], fmt.Sprintf("- %s/%s: %s", archive, f.Place(), f.Message))
		}
	}
	if *update {
		if err := os.WriteFile(goldenFindings, goldenList(t, found), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(goldenFindings)
	if err != nil {
		t.Fatal(err)
	}
	want := entries(raw)
	for rule := range want {
		if found[rule] == nil {
			found[rule] = nil // compared below
		}
	}
	for rule, got := range found {
		missing := without(want[rule], got)
		if more := without(got, want[rule]); len(more)+len(missing) > 0 {
			t.Errorf("%s\nfound and not listed:\n%s\nlisted and not found:\n%s", rule, strings.Join(more, "\n"),
				strings.Join(missing, "\n"))
		}
	}
}

// goldenList writes the list: grouped by rule, counted, and with the reason.
func goldenList(t *testing.T, found map[string][]string) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(
		"# What is found in published catalogs, and why it is right\n\nWritten by the test " +
			"TestFindingsOfRealCatalogs; see there.\n")
	rules := make([]string, 0, len(found))
	for rule := range found {
		rules = append(rules, rule)
	}
	slices.Sort(rules)
	for _, rule := range rules {
		why := whyRight()[rule]
		if why == "" {
			t.Errorf("no reason says why findings of %s are right:\n%s", rule, strings.Join(found[rule], "\n"))
		}
		slices.Sort(found[rule])
		fmt.Fprintf(&b, "\n## %s (%d)\n\n%s\n\n%s\n", rule, len(found[rule]), why, strings.Join(found[rule], "\n"))
	}
	return b.Bytes()
}

var heading = regexp.MustCompile(`^## (.+) \(\d+\)$`)

// entries reads the list.
func entries(raw []byte) map[string][]string {
	out := map[string][]string{}
	rule := ""
	for line := range strings.SplitSeq(string(raw), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			rule = m[1]
		}
		if strings.HasPrefix(line, "- ") {
			out[rule] = append(out[rule], line)
		}
	}
	return out
}

func without(list, taken []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(taken, s) })
}
