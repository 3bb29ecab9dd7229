package terms

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// Exceeds says, in a sentence, what these terms ask for that a proposed plan does not; "" where the plan is at least as
// strict. A stricter plan is nobody's harm: it waits for people who need not have been asked.
func (t *Terms) Exceeds(p events.InstallPlanProposed) string {
	if t.Approval == installplan.Manual {
		switch {
		case p.Approval != installplan.Manual:
			return "a person has to approve it" + t.because() + ", and the plan says that nobody has to"
		case t.Facts.Approvers > max(1, p.Approvers):
			return fmt.Sprintf("%d people have to approve it, and the plan says %d", t.Facts.Approvers, max(1, p.Approvers))
		case t.Facts.ApprovalSeconds > 0 && (p.ApprovalSeconds == 0 || p.ApprovalSeconds > t.Facts.ApprovalSeconds):
			return fmt.Sprintf("an approval holds for %d seconds, and the plan says longer", t.Facts.ApprovalSeconds)
		}
	}
	for _, want := range t.Facts.Windows {
		if !slices.ContainsFunc(p.Windows, func(g events.WindowGroup) bool {
			return reflect.DeepEqual(g.Windows, want.Windows)
		}) {
			return fmt.Sprintf("it has to keep to the windows of policy %s, and the plan does not name them", want.Policy)
		}
	}
	return ""
}

// because names the reasons of policies; without one it is a subscription's mode.
func (t *Terms) because() string {
	if len(t.Facts.ManualReasons) == 0 {
		return " (approval of its subscription: Manual)"
	}
	return " (" + strings.Join(t.Facts.ManualReasons, ", ") + ")"
}
