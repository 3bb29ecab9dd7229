package objects

import (
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestGoals: what --for takes, and of which objects it holds.
func TestGoals(t *testing.T) {
	t.Parallel()
	sub := model.Subscription{Status: model.SubscriptionStatus{
		State: "UpgradePending", Phase: "Succeeded",
		InstallPlan: &model.PlanRef{Name: "install-1", Phase: "RequiresApproval"},
		Conditions:  []model.Condition{{Type: "ResolutionFailed", Status: "False"}},
	}}
	plan := model.InstallPlan{Phase: "RequiresApproval"}
	operator := model.Operator{Phase: "Installing"}
	for _, c := range []struct {
		text     string
		of       any
		met      bool
		now      string
		approval bool
	}{
		{"phase=Succeeded", sub, true, "phase is Succeeded", true},
		{"state=upgradepending", sub, true, "state is UpgradePending", true},
		{"state=AtLatestKnown", sub, false, "state is UpgradePending", true},
		{"condition=ResolutionFailed=False", sub, true, "condition ResolutionFailed is False", true},
		{"condition=ResolutionFailed", sub, false, "condition ResolutionFailed is False", true},
		{"condition=Other", sub, false, "it has no condition Other", true},
		{"delete", sub, false, "it exists", true},
		{"phase=Complete", plan, false, "phase is RequiresApproval", true},
		{"phase=Succeeded", operator, false, "phase is Installing", false},
		{"state=Ready", model.OperatorHub{}, false, "state is <none>", false},
		{"state=Ready", operator, false, "state is <none>", false},
	} {
		g, err := parseGoal(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		at, err := readStanding(c.of)
		met, now := g.met(at)
		if err != nil || met != c.met || now != c.now || at.needsApproval() != c.approval {
			t.Errorf("%s of %T: %t, %q, approval %t, %v; want %t, %q, %t", c.text, c.of, met, now, at.needsApproval(),
				err, c.met, c.now, c.approval)
		}
	}
}

func TestGoalsThatAreNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "missing --for: phase=PHASE, state=STATE, condition=TYPE[=STATUS] or delete",
		"phsae=A": `--for "phsae=A" (did you mean phase?): want ` +
			"phase=PHASE, state=STATE, condition=TYPE[=STATUS] or delete",
		"delete=true": `--for "delete=true": delete has no value`,
		"phase=":      `--for "phase=" names no phase`,
		"phase=Succeedet": `--for "phase=Succeedet": there is no phase "Succeedet" (did you mean Succeeded?): install plans and ` +
			"operators have Complete, Deleting, Failed, InstallReady, Installing, Pending, Rejected, Replacing, " +
			"RequiresApproval, Succeeded, Superseded, Unknown",
		"condition": `--for "condition" names no condition`,
	} {
		_, err := parseGoal(text)
		if err == nil || err.Error() != want || command.ExitStatus(err) != command.ExitUsage {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
