package eventtext

import (
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// fleetBudgetSentence describes an event of the budget of mass changes.
func fleetBudgetSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.FleetBudgetSet:
		return fmt.Sprintf("within an hour fleet subscriptions may change %s and let go of %s", bound(v.Changed),
			bound(v.Leaving))
	case events.FleetBudgetAllowed: // the log holds only the commitment to the reason
		return fmt.Sprintf("a person allows fleet subscriptions to change %s more, and to let go of %s more, within an hour",
			plural(v.Changed, "cluster"), plural(v.Leaving, "cluster"))
	case events.FleetBudgetExhausted:
		return fleetBudgetExhausted(v)
	default:
		return ""
	}
}

func bound(n int) string {
	if n == 0 {
		return "any number of clusters"
	}
	return plural(n, "cluster")
}

func fleetBudgetExhausted(v events.FleetBudgetExhausted) string {
	what := fmt.Sprintf("rollout %d of fleet subscription %s holds back %s", v.Rollout, v.FleetSubscription,
		plural(v.Held, "cluster"))
	did := "changed"
	if v.Of == events.BudgetLeaving {
		what = fmt.Sprintf("fleet subscription %s does not let go of %s yet", v.FleetSubscription,
			plural(v.Held, "cluster"))
		did = "let go of"
	}
	return fmt.Sprintf("HELD BACK: %s: %d of %s were %s within the hour; it goes on at %s, or when a person allows more",
		what, v.Used, plural(v.Limit, "cluster"), did, v.Until.UTC().Format(time.RFC3339))
}
