package access_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/access"
)

// update rewrites the table: go test ./services/gateway/access -run TestRolesAreDocumented -update
var update = flag.Bool("update", false, "rewrite the table of roles in docs/access.md")

const (
	document = "../../../docs/access.md"
	begin    = "<!-- roles: begin -->\n"
	end      = "<!-- roles: end -->\n"
)

// TestRolesAreDocumented: the table of docs/access.md is what the code says. The matrix test of the gateway reads it
// and
// holds every route against it.
func TestRolesAreDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("docs/access.md has no place for the table")
	}
	want := before + begin + table() + end + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Error("the table in docs/access.md is not what the code says; run this test with -update and look at it")
	}
}

func table() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, rule := []string{"resource"}, []string{"---"}
	for _, r := range access.BuiltIn() {
		head, rule = append(head, "`"+r.Name+"`"), append(rule, "---")
	}
	line(head)
	line(rule)
	for _, resource := range access.AllResources() {
		row := []string{"`" + string(resource) + "`"}
		for _, r := range access.BuiltIn() {
			rights := access.NewPolicy(access.State{}, nil).RightsOf(access.Identity{Name: "me", Role: r.Name})
			var verbs []string
			for _, v := range access.VerbsOf(resource) {
				if rights.Allow(v, resource, access.Target{}) {
					verbs = append(verbs, string(v))
				}
			}
			row = append(row, strings.Join(verbs, ", "))
		}
		line(row)
	}
	for _, r := range access.BuiltIn() {
		fmt.Fprintf(&b, "\n* `%s`: %s.", r.Name, r.Doc)
	}
	return b.String() + "\n"
}
