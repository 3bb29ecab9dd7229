package lifecycle

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func operator(name, replaces string, phase csv.Phase, owns ...string) *scope.Operator {
	m := &scope.Operator{
		Object: &unstructured.Unstructured{Object: map[string]any{}}, Plan: "p",
		Status: csv.Status{Phase: phase},
	}
	m.Object.SetName(name)
	m.CSV.Spec.Replaces = replaces
	for _, crd := range owns {
		m.CSV.Spec.CRDs.Owned = append(m.CSV.Spec.CRDs.Owned, bundle.CRDDescription{Name: crd})
	}
	return m
}

func of(operators ...*scope.Operator) scope.Installed { return scope.InstalledOf(operators, nil) }

// TestNeighbours: R-CSV-50, R-COND-3: what an operator sees of the one that replaces it. One that cannot be read may be
// that for an operator that was being replaced, and for no other.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	one, two := operator("tide.v1", "", csv.PhaseReplacing), operator("tide.v2", "tide.v1", csv.PhasePending)
	i := of(one, two)
	said := map[string]protocol.OperatorCondition{"tide.v1": {Upgradeable: false, Message: "not now"}}
	if n := replacement(i, said, one); n == nil || n.Name != "tide.v2" || n.Phase != csv.PhasePending ||
		n.NotUpgradeable != "" {
		t.Errorf("replacement: %+v", n)
	}
	if n := neighbour(i, said, i.Chain.Predecessor("tide.v2")); n == nil || n.Name != "tide.v1" ||
		n.NotUpgradeable != "not now" {
		t.Errorf("predecessor: %+v", n)
	}
	i = of(one, operator("wind.v1", "", csv.PhaseSucceeded))
	if n := replacement(i, nil, one); n != nil {
		t.Errorf("it is gone, and yet %+v", n)
	}
	i.Unreadable = map[string]string{"tide.v2": "p"}
	if n := replacement(i, nil, one); n == nil || n.Name != "tide.v2" {
		t.Errorf("one that cannot be read: %+v", n)
	}
	if n := replacement(i, nil, i.Operator("wind.v1")); n != nil {
		t.Errorf("of an operator that nothing was replacing: %+v", n)
	}
}

// TestSettled: R-CSV-50, R-RES-44: an operator that was replaced goes when the last of those that follow it runs: with
// fail-forward a version is replaced that never was Succeeded.
func TestSettled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		second, last csv.Phase
		want         bool
	}{
		{"the next one runs", csv.PhaseSucceeded, csv.PhasePending, true},
		{"the next one failed and was replaced by one that runs", csv.PhaseReplacing, csv.PhaseSucceeded, true},
		{"the last one is being installed", csv.PhaseReplacing, csv.PhaseInstalling, false},
		{"the next one failed", csv.PhaseFailed, csv.PhaseSucceeded, false},
		{"none of them runs", csv.PhaseReplacing, csv.PhaseReplacing, false},
	} {
		first := operator("tide.v1", "", csv.PhaseReplacing)
		i := of(first, operator("tide.v2", "tide.v1", c.second), operator("tide.v3", "tide.v2", c.last))
		if n := replacement(i, nil, first); n == nil || n.Settled != c.want {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
	ring := of(operator("a", "b", csv.PhaseReplacing), operator("b", "a", csv.PhaseReplacing))
	if settled(ring, "a") {
		t.Error("nobody runs in a ring")
	}
}

// TestOwnerConflict: R-CSV §6.5: of two operators that own one API neither is installed, unless one replaces the other.
func TestOwnerConflict(t *testing.T) {
	t.Parallel()
	tide, other := operator("tide.v1", "", csv.PhaseSucceeded, "gauges.sea.test"),
		operator("wind.v1", "", csv.PhasePending, "vanes.sea.test", "gauges.sea.test")
	if i := of(tide, other); ownerConflict(i, other) == "" || ownerConflict(i, tide) == "" {
		t.Error("two operators own one API")
	}
	next := operator("tide.v2", "tide.v1", csv.PhasePending, "gauges.sea.test")
	if i := of(tide, next); ownerConflict(i, next) != "" {
		t.Error("of one that replaces the other")
	}
}

// TestInstallTrouble: R-CSV-11: why Deployments cannot be created is the message of the plan that failed at one of
// them, and of no other step.
func TestInstallTrouble(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step  kube.Step
		phase csv.Phase
		want  string
	}{
		"its Deployment": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepTaken},
			csv.PhaseInstallReady, "no",
		},
		"its Deployment, in the end": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepTaken},
			csv.PhaseFailed, "no",
		},
		"one that was written": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepDone},
			csv.PhaseInstallReady, "",
		},
		"another operator's": {
			kube.Step{Kind: "Deployment", Name: "wind", State: kube.StepTaken},
			csv.PhaseInstallReady, "",
		},
		"another kind": {
			kube.Step{Kind: "ConfigMap", Name: "tide", State: kube.StepTaken},
			csv.PhaseInstallReady, "",
		},
		"its phase is not so far yet": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepTaken},
			csv.PhasePending, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := operator("tide.v1", "", c.phase)
			m.CSV.Spec.Install.Spec.Deployments = []bundle.Deployment{{Name: "tide"}}
			got, ask := installFailure(m, &kube.Execution{
				Spec:   kube.ExecutionSpec{Plan: "p"},
				Status: kube.ExecutionStatus{Phase: protocol.PlanFailed, Message: "no", Steps: []kube.Step{c.step}},
			})
			if got != c.want || ask {
				t.Errorf("got %q, %v, want %q", got, ask, c.want)
			}
		})
	}
}

// TestInstallMayBeForbidden: R-CSV-11: of a plan that is held up at a Deployment the API server is asked what its
// account may do, where the plan names one and was refused, or the operator failed for that.
func TestInstallMayBeForbidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		account, reason string
		failed          csv.Reason
		want            bool
	}{
		"refused":            {"ports/deployer", failure.ReasonForbidden, "", true},
		"failed for that":    {"ports/deployer", failure.ReasonManager, csv.ReasonInstallComponentFailedNoRetry, true},
		"held up by another": {"ports/deployer", failure.ReasonManager, "", false},
		"in Chandler's name": {"", failure.ReasonForbidden, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := operator("tide.v1", "", csv.PhaseInstallReady)
			m.Status.Reason = c.failed
			m.CSV.Spec.Install.Spec.Deployments = []bundle.Deployment{{Name: "tide"}}
			message, ask := installFailure(m, &kube.Execution{
				Spec: kube.ExecutionSpec{Account: c.account},
				Status: kube.ExecutionStatus{
					Phase: protocol.PlanBlocked, Reason: c.reason, Message: "no",
					Steps: []kube.Step{{Kind: "Deployment", Name: "tide", State: kube.StepTaken}},
				},
			})
			if message != "" || ask != c.want {
				t.Errorf("got %q, %v, want %v", message, ask, c.want)
			}
		})
	}
}

// TestAsks: R-CSV-24, R-CSV-50: what is done for an operator in each phase.
func TestAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase           csv.Phase
		planned, unsure bool
		want            action
	}{
		"its Deployments are lost":          {csv.PhaseInstallReady, false, false, actRepair},
		"its plan is about to write them":   {csv.PhaseInstallReady, true, false, actNothing},
		"it waits for them":                 {csv.PhaseInstalling, true, false, actCarryOn},
		"it failed, and may recover":        {csv.PhaseFailed, false, false, actCarryOn},
		"it was replaced":                   {csv.PhaseDeleting, false, false, actRemove},
		"it runs":                           {csv.PhaseSucceeded, false, false, actNothing},
		"its phase may have been written":   {csv.PhaseInstalling, false, true, actNothing},
		"it was replaced, which is certain": {csv.PhaseDeleting, false, true, actRemove},
	} {
		if got := asks(c.phase, c.planned, c.unsure); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// TestServed: R-OG-45: an operator has its rights in the targets that exist, beside its own namespace, and that its
// account may give it.
func TestServed(t *testing.T) {
	t.Parallel()
	g := scope.Group{Served: []string{"quays", "piers"}}
	g.Targets = []string{"ports", "quays", "piers", "to-come"}
	g.Limits.Denied = map[string][]string{"tide.v1": {"piers"}}
	if got := served(g, "ports", "tide.v1"); !slices.Equal(got, []string{"ports", "quays"}) {
		t.Errorf("got %v", got)
	}
}

// TestJustGranted: an operator is asked again for a while after it was made, where it lacks rights and nothing else.
func TestJustGranted(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	m := operator("tide.v1", "", csv.PhasePending)
	m.Object.SetCreationTimestamp(metav1.NewTime(made))
	lacks := csv.Requirement{Kind: "CustomResourceDefinition"}
	rights := csv.Requirement{Kind: "ServiceAccount", Dependents: []csv.Dependent{{}}}
	for name, c := range map[string]struct {
		rows []csv.Requirement
		age  time.Duration
		want bool
	}{
		"nothing":           {nil, time.Second, false},
		"rights":            {[]csv.Requirement{rights}, time.Second, true},
		"rights, for long":  {[]csv.Requirement{rights}, grantLag, false},
		"a definition, too": {[]csv.Requirement{rights, lacks}, time.Second, false},
	} {
		if got := justGranted(m, c.rows, made.Add(c.age)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
