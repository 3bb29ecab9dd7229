package fleetmodel

import "github.com/chandler-fleet/chandler/libs/events"

func waveEvent(w RolloutWaveSpec) events.RolloutWaveSpec {
	return events.RolloutWaveSpec{
		Name: w.Name, Selector: w.Selector, Size: w.Size, SoakSeconds: w.SoakSeconds, Promotion: w.Promotion,
		MaxFailures: w.MaxFailures,
	}
}

func waveSpec(w events.RolloutWaveSpec) RolloutWaveSpec {
	return RolloutWaveSpec{
		Name: w.Name, Selector: w.Selector, Size: w.Size, SoakSeconds: w.SoakSeconds, Promotion: w.Promotion,
		MaxFailures: w.MaxFailures,
	}
}
