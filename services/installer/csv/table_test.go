package csv_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// TestTableIsWhole: every row of the table that stands above Next has a row of TestTable of the same phases and reason,
// and where the table has several of those, there are as many.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("machine.go")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, ok := strings.Cut(string(text), "//	from ")
	if !ok {
		t.Fatal("machine.go has no table")
	}
	columns, decision := regexp.MustCompile(`\s{2,}`), regexp.MustCompile(`^(\w+) \((\w+)\)$`)
	want := map[[2]string]int{}
	rows := 0
	for _, line := range strings.Split(doc, "\n")[1:] {
		line, ok = strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		fields := columns.Split(line, -1)
		if len(fields) != 3 {
			t.Fatalf("row %q has %d columns", line, len(fields))
		}
		to := ""
		if m := decision.FindStringSubmatch(fields[2]); m != nil {
			to = m[1] + " " + m[2]
		} else if fields[2] != "unchanged" && fields[2] != "the caller removes the object" {
			t.Errorf("row %q ends in no decision", line)
		}
		want[[2]string{strings.Trim(fields[0], `"`), to}]++
		rows++
	}
	if rows < 40 {
		t.Errorf("the table has %d rows", rows)
	}
	for phases, n := range want {
		have := 0
		for _, r := range table() {
			if (string(r.from.Phase) == phases[0] || phases[0] == "any") && r.want == phases[1] {
				have++
			}
		}
		if have < n {
			t.Errorf("from %q to %q: %d rows of the table, %d are tried", phases[0], phases[1], n, have)
		}
	}
}

// TestMembership: the rows "any" of R-CSV §6.3 and R-OG-50 hold from every phase of a member, in their order: of two
// causes the upper one is told. They end none that is being replaced or removed.
func TestMembership(t *testing.T) {
	t.Parallel()
	causes := []struct {
		reason csv.Reason
		apply  func(*csv.Observation)
	}{
		{csv.ReasonNoOperatorGroup, func(o *csv.Observation) { o.OperatorGroups = 0 }},
		{csv.ReasonTooManyOperatorGroups, func(o *csv.Observation) { o.OperatorGroups *= 2 }}, // none stays none
		{csv.ReasonInvalidInstallModes, func(o *csv.Observation) { o.DuplicateMode = "OwnNamespace" }},
		{csv.ReasonUnsupportedOperatorGroup, func(o *csv.Observation) { o.ModesError = "no" }},
		{csv.ReasonNoTargetNamespaces, func(o *csv.Observation) { o.TargetsKnown = false }},
		{
			csv.ReasonInterOperatorGroupOwnerConflict,
			func(o *csv.Observation) { o.Intersection = csv.ReasonInterOperatorGroupOwnerConflict },
		},
	}
	members := []csv.Status{
		in(csv.PhasePending, csv.ReasonRequirementsNotMet), in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
		in(csv.PhaseInstalling, csv.ReasonInstallWaiting), in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
		in(csv.PhaseFailed, csv.ReasonComponentUnhealthy),
	}
	for i := range causes {
		o := good()
		o.Successor = &csv.Neighbour{Name: "new", Phase: csv.PhasePending}
		for _, c := range causes[i:] {
			c.apply(&o)
		}
		for _, from := range members {
			if next, ok := csv.Next(from, o); !ok || next.Phase != csv.PhaseFailed || next.Reason != causes[i].reason {
				t.Errorf("from %s, with %s and all below it: %+v", from.Phase, causes[i].reason, next)
			}
		}
		for _, phase := range []csv.Phase{csv.PhaseReplacing, csv.PhaseDeleting} {
			if next, ok := csv.Next(in(phase, csv.ReasonBeingReplaced), o); ok {
				t.Errorf("from %s, with %s: %+v", phase, causes[i].reason, next)
			}
		}
	}
}

// TestMessages: the texts that tools match (R-CSV §6.3, R-OG §7.7, R-COND-3).
func TestMessages(t *testing.T) {
	t.Parallel()
	pending, running := in(csv.PhasePending, csv.ReasonRequirementsUnknown),
		in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded)
	installing := in(csv.PhaseInstalling, csv.ReasonInstallSucceeded)
	same := func(*csv.Observation) {}
	for want, c := range map[string]struct {
		from   csv.Status
		change func(*csv.Observation)
	}{
		"csv in namespace with no operatorgroups": {
			running,
			func(o *csv.Observation) { o.OperatorGroups = 0 },
		},
		"csv created in namespace with multiple operatorgroups, can't pick one automatically": {
			running,
			func(o *csv.Observation) { o.OperatorGroups = 2 },
		},
		"requirements not yet checked": {csv.Status{}, same},
		"operator is not upgradeable: the operator is not upgradeable: reindexing": {pending, func(o *csv.Observation) {
			o.Predecessor = &csv.Neighbour{NotUpgradeable: "the operator is not upgradeable: reindexing"}
		}},
		"one or more requirements couldn't be found": {
			pending,
			func(o *csv.Observation) { o.Requirements = open },
		},
		"all requirements found, attempting install": {pending, same},
		"waiting for install components to report healthy": {
			in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
			same,
		},
		"install strategy completed with no errors": {installing, same},
		"installing: waiting":                       {installing, unhealthy},
		"installing: waiting; v1.flow.test is not available": {
			installing,
			func(o *csv.Observation) { unhealthy(o); o.Serving.Waiting = "v1.flow.test is not available" },
		},
		"install failed: waiting": {
			installing,
			func(o *csv.Observation) { unhealthy(o); o.Components.DeadlineExceeded = true },
		},
		"install timeout": {
			installing,
			func(o *csv.Observation) { unhealthy(o); o.Now = noon.Add(csv.InstallTimeout) },
		},
		"requirements no longer met": {
			running,
			func(o *csv.Observation) { o.Requirements = open },
		},
		"component unhealthy: waiting": {running, unhealthy},
		"being replaced by csv: new": {
			running,
			func(o *csv.Observation) { o.Successor = &csv.Neighbour{Name: "new"} },
		},
		"intersecting operatorgroups provide the same apis": {
			running,
			func(o *csv.Observation) { o.Intersection = csv.ReasonInterOperatorGroupOwnerConflict },
		},
		"static provided api operatorgroup cannot be modified by these apis": {running, func(o *csv.Observation) {
			o.Intersection = csv.ReasonCannotModifyStaticOperatorGroupProvidedAPIs
		}},
	} {
		o := good()
		c.change(&o)
		if got, _ := csv.Next(c.from, o); got.Message != want {
			t.Errorf("got %q, want %q", got.Message, want)
		}
	}
}
