package subscriptions

import (
	"encoding/json"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestExplain proves that the condition of R-RES-41 carries the reasons, and keeps its own words where there are none.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, document, want string }{
		{
			"statements",
			`{"statements":[{"text":"subscription a exists"},{"text":"no operators found in package b"}]}`,
			"subscription a exists; no operators found in package b",
		},
		{"no statement", `{"statements":[]}`, "before"},
		{"another form", `[1]`, "before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status := model.SubscriptionStatus{
				Explanation: &model.Explanation{Document: json.RawMessage(c.document)},
				Conditions: []model.Condition{
					{Type: "InstallPlanPending", Message: "before"},
					{Type: conditionResolutionFailed, Message: "before"},
				},
			}
			explain(&status, conditionResolutionFailed)
			if got := status.Conditions[1].Message; got != c.want {
				t.Errorf("message %q, want %q", got, c.want)
			}
			if got := status.Conditions[0].Message; got != "before" {
				t.Errorf("another condition now says %q", got)
			}
		})
	}
}
