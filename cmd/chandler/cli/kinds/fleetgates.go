package kinds

import (
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// DescribeGates writes what the gates of the wave say that was opened last.
func DescribeGates(p *printer.Page, r fleetmodel.Rollout) {
	begun := false
	for _, w := range r.Waves {
		if w.State == fleetmodel.WaveWaiting || w.State == fleetmodel.WavePassed {
			continue
		}
		for _, g := range w.Gates {
			if !begun {
				p.Section("Gates")
				p.Row("NAME", "WAVE", "WHEN", "TYPE", "VERDICT", "SINCE", "REASON")
				begun = true
			}
			since := printer.None
			if !g.Since.IsZero() {
				since = p.Age(g.Since)
			}
			p.Row(g.Name, w.Name, g.When, g.Type, gateVerdict(g), since, printer.Or(g.Words, g.Code))
		}
	}
}

func gateVerdict(g fleetmodel.RolloutGateStatus) string {
	switch {
	case g.Overridden:
		return "Overridden"
	case g.Verdict != "":
		return g.Verdict
	case g.Due:
		return "Due"
	default:
		return printer.None
	}
}

// nextWindowText says whether clusters may be asked now; "" where they always may.
func nextWindowText(list []model.MaintenanceWindow, now time.Time) string {
	if len(list) == 0 {
		return ""
	}
	var windows []events.Window
	for _, w := range list {
		windows = append(windows, events.Window(w))
	}
	switch opens, ok := rollout.NextWindow(windows, now); {
	case !ok:
		return "closed for a year and more"
	case !opens.After(now):
		return "open"
	default:
		return "closed; the next one opens at " + opens.UTC().Format(time.RFC3339)
	}
}
