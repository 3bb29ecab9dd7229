package condition_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/condition"
)

func read(t *testing.T, text string) *condition.Object {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &condition.Object{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestDecide is the table of Decide, row by row.
func TestDecide(t *testing.T) {
	t.Parallel()
	const reindexing = `{"type": "Upgradeable", "status": "False", "reason": "Reindexing", "message": "archive reindex runs"}`
	const ready = `{"type": "Upgradeable", "status": "True", "reason": "Ready", "message": "go on"}`
	refused := protocol.OperatorCondition{
		Reason:  "Reindexing",
		Message: "the operator is not upgradeable: archive reindex runs",
	}
	allowed := protocol.OperatorCondition{Upgradeable: true, Reason: "Ready", Message: "go on"}
	over := func(c protocol.OperatorCondition) protocol.OperatorCondition { c.Overridden = true; return c }
	silent := protocol.OperatorCondition{Upgradeable: true}
	for name, c := range map[string]struct {
		object string
		want   protocol.OperatorCondition
	}{
		"R-COND-7: no object": {"", silent},
		"R-COND-6: override True over False": {`{"spec": {"conditions": [` + reindexing +
			`], "overrides": [` + ready + `]}}`, over(allowed)},
		"R-COND-6: override False over True": {`{"spec": {"conditions": [` + ready +
			`], "overrides": [` + reindexing + `]}}`, over(refused)},
		"R-COND-6: override over an outdated condition": {`{"metadata": {"generation": 2}, "spec": {"overrides": [` +
			ready + `]}, "status": {"conditions": [` + reindexing + `]}}`, over(allowed)},
		"R-COND-6: override of another type": {`{"spec": {"conditions": [` + reindexing +
			`], "overrides": [{"type": "Ready", "status": "True"}]}}`, refused},
		"R-COND-7: no condition": {
			`{"metadata": {"generation": 3}, "spec": {}}`,
			silent,
		},
		"R-COND-7: a condition of another type":                  {`{"spec": {"conditions": [{"type": "Ready", "status": "False"}]}}`, silent},
		"R-COND-8: status older than the object":                 {`{"metadata": {"generation": 2}, "spec": {}, "status": {"conditions": [{"type": "Upgradeable", "status": "True", "observedGeneration": 1}]}}`, protocol.OperatorCondition{Reason: "Outdated", Message: `the operatorcondition status "Upgradeable"="True" is outdated`}},
		"R-COND-8: spec is of this generation, whatever it says": {`{"metadata": {"generation": 2}, "spec": {"conditions": [{"type": "Upgradeable", "status": "True", "reason": "Ready", "message": "go on", "observedGeneration": 1}]}}`, allowed},
		"R-COND-3: False": {`{"metadata": {"generation": 2}, "spec": {"conditions": [` +
			reindexing + `]}}`, refused},
		"R-COND-3: False in the status alone": {`{"metadata": {"generation": 1}, "status": {"conditions": [{"type": "Upgradeable", "status": "False", "reason": "Reindexing", "message": "archive reindex runs", "observedGeneration": 1}]}}`, refused},
		"True":                                {`{"spec": {"conditions": [` + ready + `]}}`, allowed},
		"Unknown":                             {`{"spec": {"conditions": [{"type": "Upgradeable", "status": "Unknown"}]}}`, silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, condition.Decide(read(t, c.object))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSync is the second half of R-COND-8: conditions move from spec to status, and one who looks again has nothing to
// write.
func TestSync(t *testing.T) {
	t.Parallel()
	o := read(t, `{"metadata": {"generation": 4}, "spec": {"conditions": [
		{"type": "Upgradeable", "status": "False", "reason": "Reindexing", "lastTransitionTime": "2031-02-03T04:05:06Z"}, {"type": "Ready", "status": "True"}]},
		"status": {"conditions": [{"type": "Upgradeable", "status": "True", "observedGeneration": 3}, {"type": "Legacy", "status": "True", "observedGeneration": 2}]}}`)
	status, changed := condition.Sync(*o)
	if !changed || len(status) != 3 {
		t.Fatalf("changed %v: %+v", changed, status)
	}
	for i, want := range []struct {
		kind, status string
		generation   int64
	}{{"Upgradeable", "False", 4}, {"Legacy", "True", 2}, {"Ready", "True", 4}} {
		if c := status[i]; c.Type != want.kind || string(c.Status) != want.status ||
			c.ObservedGeneration != want.generation {
			t.Errorf("condition %d is %+v, want %+v", i, c, want)
		}
	}
	if o.Status.Conditions[0].Status != "True" {
		t.Error("the object that was given has changed")
	}
	o.Status.Conditions = status
	if again, changed := condition.Sync(*o); changed {
		t.Errorf("written again: %+v", again)
	}
}

// TestTextsAreBounded: what an operator writes about itself fits into the history of the one that waits for it
// (R-COND-3).
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<20)
	o := &condition.Object{}
	o.Spec.Overrides = []metav1.Condition{{
		Type: condition.Upgradeable, Status: metav1.ConditionFalse, Reason: long,
		Message: long,
	}}
	got := condition.Decide(o)
	if got.Upgradeable || len(got.Message) > 2<<10 || len(got.Reason) > 2<<10 || !strings.HasSuffix(got.Message, "é…") {
		t.Errorf("upgradeable %t, a message of %d bytes, a reason of %d", got.Upgradeable, len(got.Message),
			len(got.Reason))
	}
}
