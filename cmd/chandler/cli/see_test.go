package cli

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chandler-fleet/chandler/libs/doccommand"
)

var updateSeen = flag.Bool("update", false, "rewrite docs/what-can-i-see.md and docs/cli")

// seen is a question that somebody has, and how it is answered.
type seen struct {
	part        string // of the document; "" for that of the row before
	question    string
	requirement string
	command     string
	request     string // a GET below /api/v1
	want        string // what both answers have
}

// whatCanBeSeen has the questions of the console's flows and of troubleshooting. Where they are asked stands
// testdata/see.txtar: namespace ports of cluster see, where tidegauge waits for approval, and broken for a catalog.
func whatCanBeSeen() []seen {
	const (
		here  = "/clusters/see/namespaces/ports"
		there = " --cluster see -n ports"
	)
	return []seen{
		{
			"Before an operator is installed", "What is there?", "R-UI-1", "packages search --catalog see",
			"/packages?catalog=see", "tidegauge",
		},
		{
			"", "What is there of one kind?", "R-UI-1", "packages search tide --catalog see",
			"/packages?search=tide&catalog=see", "tidegauge",
		},
		{
			"", "What is this operator?", "R-UI-4", "packages search tidegauge --catalog see -o yaml",
			"/catalogs/see/packages/tidegauge", "steady",
		},
		{
			"", "Which packages has this catalog, with which default channels?", "R-UI-30", "catalog packages see",
			"/catalogs/see/packages", "steady",
		},
		{
			"", "May I subscribe there?", "R-UI-13", "auth can-i create subscriptions" + there,
			"/access/can-i?verb=create&resource=subscriptions&cluster=see&namespace=ports", "yes|true",
		},
		{
			"While it is installed", "Is my subscription well?", "R-TRB-1", "describe subscription tidegauge" + there,
			here + "/subscriptions/tidegauge", "UpgradePending",
		},
		{
			"", "What is up to date, what is not?", "R-UI-20", "get subscriptions" + there, here + "/subscriptions",
			"UpgradePending",
		},
		{
			"", "What waits for approval?", "R-UI-25", "get installplans --phase RequiresApproval" + there,
			"/installplans?cluster=see&namespace=ports&phase=RequiresApproval", "install-",
		},
		{
			"", "What would the plan do?", "R-UI-25", "plan objects see/ports/PLAN", "/installplans/PLAN/objects",
			"Deployment",
		},
		{
			"", "What will the operator be allowed to do?", "R-UI-25", "plan rights see/ports/PLAN",
			"/installplans/PLAN/rights", "ClusterRole|cluster",
		},
		{
			"", "Why does the plan not move?", "R-TRB-5", "describe installplan PLAN" + there, "/installplans/PLAN",
			"RequiresApproval",
		},
		{
			"When nothing happens", "Why is nothing installed?", "R-TRB-4", "explain subscription/broken" + there,
			here + "/subscriptions/broken/explanation", "no-such-package",
		},
		{
			"", "Which subscriptions wait for a catalog?", "R-TRB-2", "get subscriptions" + there,
			"/subscriptions?state=CatalogSourcesUnhealthy&cluster=see", "broken",
		},
		{"", "Which catalog is bad?", "R-TRB-2", "get catalogs", "/catalogs", "see-away"},
		{"", "Why is it bad?", "R-TRB-3", "describe catalog see-away", "/catalogs/see-away", "(?i)nowhere"},
		{"", "What happened?", "R-TRB-1", "events --cluster see", "/events?cluster=see", "install-"},
		{
			"", "What was left in the cluster by what is gone?", "R-TRB-11", "get leftovers --cluster see",
			"/leftovers?cluster=see", `No leftovers|"items":\[\]`,
		},
		{
			"The fleet", "Which clusters are there, and are they reached?", "R-UI-30", "get clusters",
			"/clusters", "see",
		},
		{
			"", "Which operators are installed?", "R-UI-21", "get operators --cluster see", "/operators?cluster=see",
			`No operators|"items":\[\]`,
		},
		{
			"", "Which catalogs are there, with how many operators?", "R-UI-28", "get catalogs -o wide", "/catalogs",
			"see-away",
		},
		{
			"", "Which versions run where, and how far are they apart?", "R-UI-20", "fleet matrix --cluster see",
			"/fleet/matrix?cluster=see", "tidegauge",
		},
		{"", "What may I do?", "R-UI-13", "auth whoami", "/whoami", "admin"},
	}
}

const seenHead = `# What can I see?

<!-- Written by the test of cmd/chandler/cli (script see) with -update; the test runs every line. -->

Questions that people have of a fleet, each with the command and the request that answer it. %[1]sPLAN%[1]s is the name of an install plan; the
other names are examples. Requests are below %[1]s/api/v1%[1]s ([the API](api.md)). The requirements are those of OLM's users, as
[the differences from OLM](olm-differences.md) name them. What an operator that runs shows (phase, components, leftovers of an uninstall) is
followed with a real cluster in [the README](../README.md).
`

// seenDocument is docs/what-can-i-see.md.
func seenDocument(rows []seen) string {
	var b strings.Builder
	fmt.Fprintf(&b, seenHead, "`")
	for _, r := range rows {
		if r.part != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| question | command | request |\n|---|---|---|\n", r.part)
		}
		fmt.Fprintf(&b, "| %s (%s) | `chandler %s` | `GET %s` |\n", r.question, r.requirement, r.command, r.request)
	}
	return b.String()
}

// see asks every question in both ways, and compares the document: see FILE, which has the name of a plan.
func see(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: see file")
	}
	plan := strings.TrimSpace(ts.ReadFile(args[0]))
	rows := whatCanBeSeen()
	for _, r := range rows {
		command := strings.ReplaceAll(r.command, "PLAN", plan)
		want := regexp.MustCompile(r.want)
		err := ts.Exec("chandler", doccommand.Words("chandler " + command)[1:]...)
		// That there is none is said on standard error.
		if out := ts.ReadFile("stdout") + ts.ReadFile("stderr"); err != nil || !want.MatchString(out) {
			ts.Logf("%s: chandler %s: %v, does not show %s:\n%s", r.question, command, err, r.want, out)
			ts.Fatalf("%s is not answered", r.requirement)
		}
		request := "$CHANDLER_URL/api/v1" + strings.ReplaceAll(r.request, "PLAN", plan)
		err = ts.Exec("sh", "-c", `curl -sS --fail-with-body -H "Authorization: Bearer $CHANDLER_TOKEN" "`+request+`"`)
		if out := ts.ReadFile("stdout"); err != nil || !want.MatchString(out) {
			ts.Logf("%s: %s %s: %v, does not show %s:\n%s", r.question, http.MethodGet, request, err, r.want, out)
			ts.Fatalf("%s is not answered", r.requirement)
		}
	}
	path := filepath.Join("..", "..", "..", "docs", "what-can-i-see.md")
	if *updateSeen {
		ts.Check(os.WriteFile(path, []byte(seenDocument(rows)), 0o644))
	}
	if is, err := os.ReadFile(path); err != nil || string(is) != seenDocument(rows) {
		ts.Fatalf("docs/what-can-i-see.md is not what the test asks; run the script see with -update (%v)", err)
	}
}
