package csv_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/installer/csv"
)

var (
	noon = time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)
	met  = []csv.Requirement{{Name: "tides.sea.test", Status: csv.Present}}
	open = []csv.Requirement{{Name: "tides.sea.test", Status: csv.NotPresent}}
)

// good is an observation in which nothing is in the way.
func good() csv.Observation {
	return csv.Observation{
		Now: noon, OperatorGroups: 1, TargetsKnown: true, Requirements: met,
		Components: csv.Components{Applied: true, Healthy: true},
	}
}

func in(p csv.Phase, r csv.Reason) csv.Status {
	return csv.Status{Phase: p, Reason: r, LastTransitionTime: noon.Add(-time.Minute)}
}

// row is one row of the table in R-CSV §6.3.
type row struct {
	name   string
	from   csv.Status
	change func(*csv.Observation)
	want   string // "Phase Reason", "" for no change
}

// table has one or more for each row of the table above Next; R-CSV-51 is among them (the predecessor not yet
// Replacing).
func table() []row {
	same := func(*csv.Observation) {}
	return []row{
		{
			"Failed without retry: still forbidden", in(csv.PhaseFailed, csv.ReasonInstallComponentFailedNoRetry),
			func(o *csv.Observation) {
				o.InstallError, o.InstallForbidden = "no", true
			}, "",
		},
		{
			"Failed without retry: even without a group", in(csv.PhaseFailed, csv.ReasonInstallComponentFailedNoRetry),
			func(o *csv.Observation) {
				o.InstallForbidden, o.OperatorGroups = true, 0
			}, "",
		},
		{
			"Failed without retry: no longer forbidden", in(csv.PhaseFailed, csv.ReasonInstallComponentFailedNoRetry),
			same, "Pending DetectedClusterChange",
		},
		{
			"any: no operator group", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.OperatorGroups = 0 }, "Failed NoOperatorGroup",
		},
		{
			"any: several operator groups", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) { o.OperatorGroups = 2 }, "Failed TooManyOperatorGroups",
		},
		{
			"any: duplicate install modes", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) { o.DuplicateMode = "OwnNamespace" }, "Failed InvalidInstallModes",
		},
		{
			"any: unsupported targets", in(csv.PhaseInstalling, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.ModesError = "no" }, "Failed UnsupportedOperatorGroup",
		},
		{
			"any: no target annotation", in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
			func(o *csv.Observation) { o.TargetsKnown = false }, "Failed NoTargetNamespaces",
		},
		{
			"any: another group provides its APIs", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) {
				o.Intersection = csv.ReasonInterOperatorGroupOwnerConflict
			}, "Failed InterOperatorGroupOwnerConflict",
		},
		{
			"any: its static group does not provide its APIs", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) {
				o.Intersection = csv.ReasonCannotModifyStaticOperatorGroupProvidedAPIs
			}, "Failed CannotModifyStaticOperatorGroupProvidedAPIs",
		},
		{"any: not one that is replaced", in(csv.PhaseReplacing, csv.ReasonBeingReplaced), func(o *csv.Observation) {
			o.OperatorGroups, o.Successor = 0, &csv.Neighbour{Name: "new", Phase: csv.PhasePending}
		}, ""},
		{"new", csv.Status{}, same, "Pending RequirementsUnknown"},
		{
			"new, even without a group",
			csv.Status{},
			func(o *csv.Observation) { o.OperatorGroups = 0 },
			"Pending RequirementsUnknown",
		},
		{
			"Pending: predecessor not upgradeable", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) {
				o.Predecessor = &csv.Neighbour{Name: "old", Phase: csv.PhaseReplacing, NotUpgradeable: "reindexing"}
				o.StrategyError = "helm"
			}, "Pending OperatorConditionNotUpgradeable",
		},
		{
			"Pending: predecessor upgradeable again", in(csv.PhasePending, csv.ReasonOperatorConditionNotUpgradeable),
			func(o *csv.Observation) {
				o.Predecessor = &csv.Neighbour{Name: "old", Phase: csv.PhaseReplacing}
			}, "InstallReady AllRequirementsMet",
		},
		{
			"Pending: strategy cannot be read", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) { o.StrategyError = "helm" }, "Failed InvalidInstallStrategy",
		},
		{
			"Pending: requirement unmet", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) { o.Requirements = open }, "Pending RequirementsNotMet",
		},
		{
			"Pending: webhook descriptions invalid", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) {
				o.Serving.InvalidWebhook, o.OwnerConflict = "no", "x"
			}, "Failed InvalidWebhookDescription",
		},
		{
			"Pending: owner conflict", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) { o.OwnerConflict = "x" }, "Failed OwnerConflict",
		},
		{
			"Pending: predecessor not yet Replacing", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) {
				o.Predecessor = &csv.Neighbour{Name: "old", Phase: csv.PhaseSucceeded}
			}, "",
		},
		{
			"Pending: predecessor Replacing", in(csv.PhasePending, csv.ReasonRequirementsUnknown),
			func(o *csv.Observation) {
				o.Predecessor = &csv.Neighbour{Name: "old", Phase: csv.PhaseReplacing}
			}, "InstallReady AllRequirementsMet",
		},
		{
			"Pending: all met", in(csv.PhasePending, csv.ReasonRequirementsNotMet), same,
			"InstallReady AllRequirementsMet",
		},
		{
			"InstallReady: creating failed", in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
			func(o *csv.Observation) { o.InstallError = "no" }, "Failed InstallComponentFailed",
		},
		{
			"InstallReady: forbidden to the group's account", in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
			func(o *csv.Observation) {
				o.InstallError, o.InstallForbidden = "no", true
			}, "Failed InstallComponentFailedNoRetry",
		},
		{
			"InstallReady: created", in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet), same,
			"Installing InstallSucceeded",
		},
		{
			"InstallReady: not yet created", in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
			func(o *csv.Observation) { o.Components = csv.Components{} }, "",
		},
		{
			"InstallReady: API service objects not yet created",
			in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
			func(o *csv.Observation) { o.Serving.ObjectsWrong = "no" }, "",
		},
		{
			"InstallReady: certificates not yet renewed", in(csv.PhaseInstallReady, csv.ReasonAllRequirementsMet),
			func(o *csv.Observation) { o.Serving.RotationDue = true }, "",
		},
		{
			"Installing: not yet healthy", in(csv.PhaseInstalling, csv.ReasonInstallSucceeded), unhealthy,
			"Installing InstallWaiting",
		},
		{
			"Installing: progress deadline", in(csv.PhaseInstalling, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) {
				o.Components = csv.Components{Applied: true, DeadlineExceeded: true}
			}, "Failed InstallCheckFailed",
		},
		{"Installing: five minutes", in(csv.PhaseInstalling, csv.ReasonInstallWaiting), func(o *csv.Observation) {
			unhealthy(o)
			o.Now = noon.Add(csv.InstallTimeout - time.Minute)
		}, "Failed InstallCheckFailed"},
		{
			"Installing: API service broken", in(csv.PhaseInstalling, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.Serving.Broken = "no" }, "Failed APIServiceInstallFailed",
		},
		{
			"Installing: API service not yet served", in(csv.PhaseInstalling, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.Serving.Waiting = "no" }, "Installing InstallWaiting",
		},
		{"Installing: healthy", in(csv.PhaseInstalling, csv.ReasonInstallWaiting), same, "Succeeded InstallSucceeded"},
		{"Succeeded: replaced", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded), func(o *csv.Observation) {
			o.Successor = &csv.Neighbour{Name: "new", Phase: csv.PhasePending}
		}, "Replacing BeingReplaced"},
		{
			"Succeeded: replaced, though an API service is broken", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) {
				o.Serving.Broken, o.Successor = "no", &csv.Neighbour{Name: "new"}
			}, "Replacing BeingReplaced",
		},
		{
			"Succeeded: API service broken", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.Serving.Broken = "no" }, "Failed APIServiceInstallFailed",
		},
		{
			"Succeeded: short disruption of an API service", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.Serving.Waiting = "no" }, "",
		},
		{
			"Succeeded: API service objects wrong", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) {
				o.Serving.ObjectsWrong, o.Serving.RotationDue = "no", true
			}, "Failed APIServiceResourceIssue",
		},
		{"Succeeded: certificates due", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded), func(o *csv.Observation) {
			o.Serving.RotationDue, o.Requirements = true, open
		}, "Pending NeedsCertRotation"},
		{
			"Succeeded: requirement vanished", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.Requirements = open }, "Failed RequirementsNotMet",
		},
		{
			"Succeeded: deployment differs", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded),
			func(o *csv.Observation) { o.Components = csv.Components{} }, "InstallReady ComponentUnhealthy",
		},
		{
			"Succeeded: unhealthy", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded), unhealthy,
			"Failed ComponentUnhealthy",
		},
		{"Succeeded: nothing new", in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded), same, ""},
		{"Failed: fail-forward", in(csv.PhaseFailed, csv.ReasonInstallCheckFailed), func(o *csv.Observation) {
			unhealthy(o)
			o.FailForward, o.Successor = true, &csv.Neighbour{Name: "new"}
		}, "Replacing BeingReplaced"},
		{
			"Failed: replaced without fail-forward", in(csv.PhaseFailed, csv.ReasonInstallCheckFailed),
			func(o *csv.Observation) {
				unhealthy(o)
				o.Successor = &csv.Neighbour{Name: "new"}
			}, "Failed InstallCheckFailed",
		},
		{
			"Failed: group's cause gone", in(csv.PhaseFailed, csv.ReasonNoOperatorGroup), same,
			"Pending RequirementsUnknown",
		},
		{
			"Failed: intersection gone", in(csv.PhaseFailed, csv.ReasonInterOperatorGroupOwnerConflict), same,
			"Pending RequirementsUnknown",
		},
		{
			"Failed: static group provides them now",
			in(csv.PhaseFailed, csv.ReasonCannotModifyStaticOperatorGroupProvidedAPIs), same,
			"Pending RequirementsUnknown",
		},
		{"Failed: group's cause remains", csv.Status{
			Phase: csv.PhaseFailed, Reason: csv.ReasonNoOperatorGroup,
			Message: "csv in namespace with no operatorgroups", LastTransitionTime: noon,
		}, func(o *csv.Observation) { o.OperatorGroups = 0 }, ""},
		{
			"Failed: requirements unmet", in(csv.PhaseFailed, csv.ReasonComponentUnhealthy),
			func(o *csv.Observation) { o.Requirements = open }, "Pending RequirementsNotMet",
		},
		{
			"Failed: API service objects to be fixed", in(csv.PhaseFailed, csv.ReasonAPIServiceResourceIssue),
			func(o *csv.Observation) {
				o.Serving.ObjectsWrong, o.Serving.RotationDue = "no", true
			}, "Pending APIServiceResourcesNeedReinstall",
		},
		{
			"Failed: certificates due", in(csv.PhaseFailed, csv.ReasonInstallCheckFailed),
			func(o *csv.Observation) { o.Serving.RotationDue = true }, "Pending NeedsCertRotation",
		},
		{
			"Failed: API service still broken", in(csv.PhaseFailed, csv.ReasonAPIServiceInstallFailed),
			func(o *csv.Observation) { o.Serving.Broken = "no" }, "",
		},
		{
			"Failed: API service works again", in(csv.PhaseFailed, csv.ReasonAPIServiceInstallFailed), same,
			"Succeeded InstallSucceeded",
		},
		{
			"Failed: webhook descriptions still invalid", in(csv.PhaseFailed, csv.ReasonInvalidWebhookDescription),
			func(o *csv.Observation) {
				o.Serving.InvalidWebhook, o.Components = "no", csv.Components{}
			}, "",
		},
		{
			"Failed: components cannot be created still", in(csv.PhaseFailed, csv.ReasonInstallComponentFailed),
			func(o *csv.Observation) {
				o.InstallError, o.Components, o.Now = "no", csv.Components{}, noon.Add(csv.ReinstallInterval)
			}, "",
		},
		{
			"Failed: components can be created again", in(csv.PhaseFailed, csv.ReasonInstallComponentFailed),
			func(o *csv.Observation) { o.Components = csv.Components{} }, "Pending NeedsReinstall",
		},
		{
			"Failed: component lost", in(csv.PhaseFailed, csv.ReasonComponentUnhealthy),
			func(o *csv.Observation) { o.Components = csv.Components{} }, "Pending NeedsReinstall",
		},
		{
			"Failed: lost its health, just now (R-CSV-11)", in(csv.PhaseFailed, csv.ReasonComponentUnhealthy),
			unhealthy, "Pending NeedsReinstall",
		},
		{
			"Failed: a requirement is back, its health is not (R-CSV-11)",
			in(csv.PhaseFailed, csv.ReasonRequirementsNotMet), unhealthy, "Pending NeedsReinstall",
		},
		{
			"Failed: its API service is whole again, its health is not (R-CSV-11)",
			in(csv.PhaseFailed, csv.ReasonAPIServiceResourceIssue), unhealthy, "Pending NeedsReinstall",
		},
		{
			"Failed: its API service works again, its health is not back (R-CSV-11)",
			in(csv.PhaseFailed, csv.ReasonAPIServiceInstallFailed), unhealthy, "Pending NeedsReinstall",
		},
		{
			"Failed: lost its health, and its API service is broken", in(csv.PhaseFailed, csv.ReasonComponentUnhealthy),
			func(o *csv.Observation) {
				unhealthy(o)
				o.Serving.Broken = "no"
			}, "",
		},
		{
			"Failed: the install failed, just now", in(csv.PhaseFailed, csv.ReasonInstallCheckFailed), unhealthy,
			"Failed InstallCheckFailed",
		},
		{"Failed: why is told already", csv.Status{
			Phase: csv.PhaseFailed, Reason: csv.ReasonInstallCheckFailed, Message: "install timeout: waiting",
			LastTransitionTime: noon,
		}, unhealthy, ""},
		{
			"Failed: the install failed long ago", in(csv.PhaseFailed, csv.ReasonInstallCheckFailed),
			func(o *csv.Observation) {
				unhealthy(o)
				o.Now = noon.Add(csv.ReinstallInterval)
			}, "Pending NeedsReinstall",
		},
		{
			"Failed: a Deployment exceeded its deadline, however long ago",
			in(csv.PhaseFailed, csv.ReasonComponentUnhealthy), func(o *csv.Observation) {
				unhealthy(o)
				o.Components.DeadlineExceeded, o.Now = true, noon.Add(csv.ReinstallInterval)
			}, "Failed InstallCheckFailed",
		},
		{"Failed: healthy", in(csv.PhaseFailed, csv.ReasonComponentUnhealthy), same, "Succeeded InstallSucceeded"},
		{
			"Replacing: replaces one that exists", in(csv.PhaseReplacing, csv.ReasonBeingReplaced),
			func(o *csv.Observation) {
				o.Predecessor, o.Successor = &csv.Neighbour{Name: "older"},
					&csv.Neighbour{Name: "new", Phase: csv.PhaseSucceeded, Settled: true}
			}, "",
		},
		{
			"Replacing: replacement not yet Succeeded", in(csv.PhaseReplacing, csv.ReasonBeingReplaced),
			func(o *csv.Observation) {
				o.Successor = &csv.Neighbour{Name: "new", Phase: csv.PhaseInstalling}
			}, "",
		},
		{"Replacing: replacement Succeeded", in(csv.PhaseReplacing, csv.ReasonBeingReplaced), func(o *csv.Observation) {
			o.Successor = &csv.Neighbour{Name: "new", Phase: csv.PhaseSucceeded, Settled: true}
		}, "Deleting Replaced"},
		{
			"Replacing: its replacement was replaced by one that is Succeeded",
			in(csv.PhaseReplacing, csv.ReasonBeingReplaced), func(o *csv.Observation) {
				o.Successor = &csv.Neighbour{Name: "new", Phase: csv.PhaseReplacing, Settled: true}
			}, "Deleting Replaced",
		},
		{
			"Replacing: its replacement failed", in(csv.PhaseReplacing, csv.ReasonBeingReplaced),
			func(o *csv.Observation) {
				o.Successor = &csv.Neighbour{Name: "new", Phase: csv.PhaseFailed}
			}, "",
		},
		{
			"Replacing: nothing replaces it any more", in(csv.PhaseReplacing, csv.ReasonBeingReplaced), same,
			"Pending RequirementsUnknown",
		},
		{
			"Replacing: nothing replaces it any more, in the middle of a chain",
			in(csv.PhaseReplacing, csv.ReasonBeingReplaced), func(o *csv.Observation) {
				o.Predecessor = &csv.Neighbour{Name: "older", Phase: csv.PhaseReplacing}
			}, "Pending RequirementsUnknown",
		},
		{"Deleting", in(csv.PhaseDeleting, csv.ReasonReplaced), same, ""},
	}
}

// TestTable proves R-CSV-10 and R-CSV-11, row by row.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, r := range table() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			o := good()
			r.change(&o)
			got := ""
			if next, ok := csv.Next(r.from, o); ok {
				got = string(next.Phase) + " " + string(next.Reason)
			}
			if got != r.want {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
}

func unhealthy(o *csv.Observation) {
	o.Components = csv.Components{Applied: true, Message: "waiting"}
}

// TestHistory: R-CSV-5: the newest 20 transitions are kept and the others counted; what only says that one
// still waits is none.
func TestHistory(t *testing.T) {
	t.Parallel()
	var s csv.Status
	s = s.Apply(csv.Transition{Phase: csv.PhaseInstalling, Reason: csv.ReasonInstallSucceeded}, noon)
	s = s.Apply(csv.Transition{Phase: csv.PhaseInstalling, Reason: csv.ReasonInstallWaiting, Message: "a"},
		noon.Add(time.Minute))
	if len(s.Conditions) != 1 || s.Reason != csv.ReasonInstallWaiting || !s.LastTransitionTime.Equal(noon) {
		t.Errorf("after waiting: %+v", s)
	}
	for i := range 30 {
		phase := []csv.Phase{csv.PhaseFailed, csv.PhaseSucceeded}[i%2]
		s = s.Apply(csv.Transition{Phase: phase}, noon.Add(time.Duration(i)*time.Second))
	}
	if len(s.Conditions) != csv.MaxConditions || s.ConditionsDropped != 31-csv.MaxConditions {
		t.Errorf("%d kept and %d dropped, want %d and %d", len(s.Conditions), s.ConditionsDropped, csv.MaxConditions,
			31-csv.MaxConditions)
	}
	if last := s.Conditions[csv.MaxConditions-1]; last.Phase != csv.PhaseSucceeded ||
		last.LastTransitionTime != noon.Add(29*time.Second) {
		t.Errorf("the last one is %+v", last)
	}
}

// TestApplyLeavesTheOld: a status that was applied to is still what it was.
func TestApplyLeavesTheOld(t *testing.T) {
	t.Parallel()
	s := csv.Status{}.Apply(csv.Transition{Phase: csv.PhasePending}, noon)
	before := csv.Status{Phase: s.Phase, Conditions: append([]csv.Condition(nil), s.Conditions...)}
	s.Apply(csv.Transition{Phase: csv.PhaseFailed}, noon)
	if diff := cmp.Diff(before.Conditions, s.Conditions); diff != "" {
		t.Error(diff)
	}
}

// TestLostHealth: R-CSV-11: one that loses its health goes through Failed and Pending back to Installing while no time
// passes, and is Succeeded when its health is back.
func TestLostHealth(t *testing.T) {
	t.Parallel()
	s, o := in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded), good()
	var got []string
	settle := func() {
		for range 10 {
			next, ok := csv.Next(s, o)
			if !ok {
				return
			}
			s = s.Apply(next, o.Now)
			got = append(got, string(next.Phase)+" "+string(next.Reason))
		}
		t.Fatalf("it goes round: %v", got)
	}
	unhealthy(&o)
	settle()
	o.Components.Healthy = true
	settle()
	want := []string{
		"Failed ComponentUnhealthy", "Pending NeedsReinstall", "InstallReady AllRequirementsMet",
		"Installing InstallSucceeded", "Installing InstallWaiting", "Succeeded InstallSucceeded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWake: the clock alone moves an install that waits, and a failure that is to be tried again.
func TestWake(t *testing.T) {
	t.Parallel()
	o := good()
	for _, c := range []struct {
		status csv.Status
		want   time.Duration
	}{
		{in(csv.PhaseInstalling, csv.ReasonInstallWaiting), csv.InstallTimeout - time.Minute},
		{in(csv.PhaseFailed, csv.ReasonComponentUnhealthy), csv.ReinstallInterval - time.Minute},
		{in(csv.PhaseFailed, csv.ReasonNoOperatorGroup), 0},
		{in(csv.PhaseSucceeded, csv.ReasonInstallSucceeded), 0},
	} {
		if got := csv.Wake(c.status, o); got != c.want {
			t.Errorf("%s: %s, want %s", c.status.Phase, got, c.want)
		}
	}
}
