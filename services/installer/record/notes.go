package record

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// HealthLimit bounds the changes of an operator's condition, readiness and drift that are recorded in a FlapWindow, so
// that somebody who edits an object again and again, or an operator that flaps, does not fill the log. The state at the
// end of the window is always recorded.
const HealthLimit = 6

// Health is what was recorded last of an operator's condition, readiness and drift. The zero value is an operator that
// is upgradeable, ready, and without drift.
type Health struct {
	Held       bool   `json:"held,omitempty"` // not upgradeable
	Reason     string `json:"reason,omitempty"`
	Overridden bool   `json:"overridden,omitempty"`
	// Drift is the digest of the differences that were recorded last, "" for none.
	Drift string `json:"drift,omitempty"`
	// NotReady are the Deployments that were recorded last as not ready.
	NotReady []events.NotReadyDeployment `json:"notReady,omitempty"`
	Window   time.Time                   `json:"window,omitzero"`
	Changes  int                         `json:"changes,omitempty"` // in the window
	Behind   bool                        `json:"behind,omitempty"`  // a change in the window was not recorded
}

// DriftType is the type prefix of the digest of differences.
const DriftType = "chandler.drift.v1"

// DriftBody is the input of that digest: the differences as canonical JSON, without the fields that change while the
// differences stay the same; nil for none.
func DriftBody(list []protocol.Drift) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]driftEntry, 0, len(list))
	for _, d := range list {
		out = append(out, driftEntry{
			ObjectRef: d.ObjectRef, Fields: d.Fields, Missing: d.Missing,
			Corrected: d.Corrected,
		})
	}
	slices.SortFunc(out, func(a, b driftEntry) int { return compareRefs(a.ObjectRef, b.ObjectRef) })
	return digest.Canonical(out)
}

type driftEntry struct {
	protocol.ObjectRef
	Fields    []protocol.FieldDrift `json:"fields,omitempty"`
	Missing   bool                  `json:"missing,omitempty"`
	Corrected bool                  `json:"corrected,omitempty"`
}

func compareRefs(a, b protocol.ObjectRef) int {
	return slices.Compare([]string{a.Kind, a.Group, a.Namespace, a.Name},
		[]string{b.Kind, b.Group, b.Namespace, b.Name})
}

// DecideHealth gives the events that a report adds about condition, readiness and drift, after those of DecideCSV.
// There are none while no phase is recorded: then the stream has not begun, or has ended. policy is the cluster's
// setting for drift.
//
//	as recorded       nothing
//	within the limit  operatorcondition.changed, csv.readiness-changed, csv.drifted, csv.drift-ended
//	beyond the limit  nothing, until the window is over
func DecideHealth(s CSV, r protocol.CSVReport, policy string, now time.Time) ([]events.Payload, CSV, error) {
	if !s.Exists || s.Removed {
		return nil, s, nil
	}
	d := decision{state: s, report: r}
	n := &d.state.Health
	if opens(n.Window, FlapWindow, now) {
		n.Window, n.Changes = now, 0
	}
	n.Behind = false
	if c := d.report.Condition; c != nil {
		is := events.OperatorConditionChanged{Upgradeable: c.Upgradeable, Reason: c.Reason, Overridden: c.Overridden}
		was := events.OperatorConditionChanged{Upgradeable: !n.Held, Reason: n.Reason, Overridden: n.Overridden}
		if is != was && d.countHealthChange() {
			n.Held, n.Reason, n.Overridden = !is.Upgradeable, is.Reason, is.Overridden
			d.events = append(d.events, is)
		}
	}
	d.recordReadiness()
	err := d.recordDrift(policy)
	return d.events, d.state, err
}

// recordReadiness records which Deployments are not ready for a reason that is known: one that is only starting is not
// recorded.
func (d *decision) recordReadiness() {
	var is []events.NotReadyDeployment
	for _, r := range d.report.NotReady {
		if r.Reason != "" {
			is = append(is, events.NotReadyDeployment{
				Name: r.Deployment, Reason: r.Reason, Webhook: r.Webhook,
				Owner: r.Owner,
			})
		}
	}
	n := &d.state.Health
	if slices.Equal(is, n.NotReady) || !d.countHealthChange() {
		return
	}
	n.NotReady = is
	d.events = append(d.events, events.CSVReadinessChanged{Deployments: is})
}

func (d *decision) recordDrift(policy string) error {
	body, err := DriftBody(d.report.Drift)
	if err != nil {
		return err
	}
	sum := ""
	if body != nil {
		dg, err := digest.JSON(DriftType, json.RawMessage(body))
		if err != nil {
			return err
		}
		sum = string(dg)
	}
	n := &d.state.Health
	if sum == n.Drift || !d.countHealthChange() {
		return nil
	}
	n.Drift = sum
	if sum == "" {
		d.events = append(d.events, events.CSVDriftEnded{})
		return nil
	}
	d.events = append(d.events, events.CSVDrifted{
		Objects: len(d.report.Drift) + d.report.Cut.Drifts, Diff: sum,
		Policy: policy,
	})
	return nil
}

// countHealthChange counts a change, and reports whether it may still be recorded.
func (d *decision) countHealthChange() bool {
	n := &d.state.Health
	n.Changes++
	n.Behind = n.Behind || n.Changes > HealthLimit
	return n.Changes <= HealthLimit
}
