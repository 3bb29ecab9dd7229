package eventtext

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/events"
)

// gateSentence describes an event about the gates of a wave.
func gateSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.RolloutGatesDue:
		if v.When == events.GateBefore {
			return fmt.Sprintf("the gates before wave %d are evaluated, round %d", v.Wave, v.Round)
		}
		return fmt.Sprintf("wave %d has settled: its gates are evaluated, round %d", v.Wave, v.Round)
	case events.RolloutGateEvaluated:
		s := fmt.Sprintf("gate %s of wave %d: %s", v.Gate, v.Wave, v.Verdict)
		if v.Code != "" {
			s += " (" + v.Code + ")"
		}
		return s
	case events.RolloutGateOverridden: // the log holds only the commitment to the reason
		return fmt.Sprintf("a person lets wave %d go on without gate %s", v.Wave, v.Gate)
	default:
		return ""
	}
}
