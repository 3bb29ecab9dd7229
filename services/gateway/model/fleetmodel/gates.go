package fleetmodel

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// RolloutGate is a check that has to pass before a rollout goes on.
type RolloutGate struct {
	Name            string `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Type            string `json:"type" enum:"OperatorConditions,CEL,HTTP,Prometheus,Webhook" doc:"OperatorConditions: the operators that were changed run, and let themselves be upgraded; CEL: an expression over the clusters of the wave; HTTP: an address answers; Prometheus: an expression over the result of a query; Webhook: an address is asked for a verdict"`
	When            string `json:"when,omitempty" enum:"After,Before" doc:"After the wave has settled and soaked, the default, or before its first cluster is changed"`
	Expression      string `json:"expression,omitempty" maxLength:"1024" example:"clusters.all(c, c.phase == 'Succeeded')" doc:"CEL that has to hold. It names clusters, total, succeeded, failed, unreachable, skipped (CEL); status, body (HTTP); samples, value (Prometheus)"`
	URL             string `json:"url,omitempty" maxLength:"2048" example:"https://metrics.example.com" doc:"Of HTTP and Webhook the address, of Prometheus that of its API, without /api/v1. It stands in the event log: no user, no query"`
	Query           string `json:"query,omitempty" maxLength:"2048" doc:"PromQL"`
	Status          int    `json:"status,omitempty" minimum:"100" maximum:"599" doc:"That the answer has; 200 without it"`
	Successes       int    `json:"successes,omitempty" minimum:"1" maximum:"20" doc:"How often in a row it has to hold; once without it"`
	FailurePolicy   string `json:"failurePolicy,omitempty" enum:"Wait,Fail" doc:"What it means that it does not hold. Wait, the default: it is evaluated again, until its deadline; Fail: the rollout halts"`
	IntervalSeconds int64  `json:"intervalSeconds,omitempty" minimum:"5" maximum:"3600" doc:"Between two evaluations; 30 without it"`
	TimeoutSeconds  int64  `json:"timeoutSeconds,omitempty" minimum:"1" maximum:"30" doc:"Of one request; 10 without it"`
	DeadlineSeconds int64  `json:"deadlineSeconds,omitempty" minimum:"30" maximum:"604800" doc:"How long it may take to pass once it is due, before the rollout halts; 1800 without it"`
}

// WithDefaults says the defaults of a gate openly, as they are stored.
func (g RolloutGate) WithDefaults() RolloutGate {
	return RolloutGate(gate.Normal(events.RolloutGate(g)))
}

// RolloutGateStatus is what a gate of a wave says.
type RolloutGateStatus struct {
	Name       string             `json:"name"`
	Type       string             `json:"type" enum:"OperatorConditions,CEL,HTTP,Prometheus,Webhook"`
	When       string             `json:"when" enum:"After,Before"`
	Due        bool               `json:"due,omitempty" doc:"Its verdict is waited for"`
	Verdict    string             `json:"verdict,omitempty" enum:"Pass,Fail,Wait" doc:"What it said last, since it is due; none before"`
	Code       string             `json:"code,omitempty" doc:"Why"`
	Since      time.Time          `json:"since,omitzero" doc:"Of the verdict"`
	Overridden bool               `json:"overridden,omitempty" doc:"A person lets the wave go on without it"`
	Words      string             `json:"words,omitempty" doc:"What they said of it"`
	Body       string             `json:"body,omitempty" doc:"Commitment to these words, by which they are erased"`
	Unreadable []model.Unreadable `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened"`
}

// PassGate lets a wave go on without one of its gates.
type PassGate struct {
	Reason string `json:"reason" minLength:"1" maxLength:"4096" doc:"Why. It is kept outside the event log and can be erased"`
}

func waveEvent(w RolloutWaveSpec) events.RolloutWaveSpec {
	out := events.RolloutWaveSpec{
		Name: w.Name, Selector: w.Selector, Size: w.Size, SoakSeconds: w.SoakSeconds, Promotion: w.Promotion,
		MaxFailures: w.MaxFailures,
	}
	for _, g := range w.Gates {
		out.Gates = append(out.Gates, events.RolloutGate(g))
	}
	return out
}

func waveSpec(w events.RolloutWaveSpec) RolloutWaveSpec {
	out := RolloutWaveSpec{
		Name: w.Name, Selector: w.Selector, Size: w.Size, SoakSeconds: w.SoakSeconds, Promotion: w.Promotion,
		MaxFailures: w.MaxFailures,
	}
	for _, g := range w.Gates {
		out.Gates = append(out.Gates, RolloutGate(g))
	}
	return out
}

func windows(list []events.Window) (out []model.MaintenanceWindow) {
	for _, w := range list {
		out = append(out, model.MaintenanceWindow(w))
	}
	return out
}

// gatesOf are the gates of a wave; only of the one that was opened last it is known what they say.
func gatesOf(s rollout.State, wave int) (out []RolloutGateStatus) {
	for _, g := range s.Started.Waves[wave].Gates {
		now := RolloutGateStatus{Name: g.Name, Type: g.Type, When: g.When}
		if wave == s.Wave {
			v := s.Gates.Verdicts[g.Name]
			now.Verdict, now.Code, now.Since = v.Verdict, v.Code, v.Since
			now.Body, now.Overridden = s.Gates.Overridden[g.Name]
			for _, due := range s.DueGates() {
				now.Due = now.Due || due.Name == g.Name
			}
		}
		out = append(out, now)
	}
	return out
}
