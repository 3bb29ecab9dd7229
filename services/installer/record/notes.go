package record

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// NoteLimit bounds what is recorded of an operator's condition, readiness and drift in a FlapWindow: whoever edits an object
// again and again, or an operator that cannot make up its mind, does not fill the log. What holds at the end of the
// window is recorded in any case.
const NoteLimit = 6

// Notes are what is recorded of one life beside its phases. The zero value is an operator that lets itself be upgraded
// and whose objects are as they should be.
type Notes struct {
	Held       bool   `json:"held,omitempty"` // it does not let itself be upgraded
	Reason     string `json:"reason,omitempty"`
	Overridden bool   `json:"overridden,omitempty"`
	// Drift is the digest of the differences that were recorded last, "" for none.
	Drift string `json:"drift,omitempty"`
	// NotReady are the Deployments that were recorded last as not ready.
	NotReady []events.NotReadyDeployment `json:"notReady,omitempty"`
	Window   time.Time                   `json:"window,omitzero"`
	Changes  int                         `json:"changes,omitempty"` // in the window
	Behind   bool                        `json:"behind,omitempty"`  // something was left out in the window
}

// DriftType is the type prefix of the digest of differences.
const DriftType = "chandler.drift.v1"

// DriftBody is what such a digest is over: the differences without what changes while they stay the same, as
// canonical JSON; nil for none.
func DriftBody(list []protocol.Drift) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]driftEntry, 0, len(list))
	for _, d := range list {
		out = append(out, driftEntry{ObjectRef: d.ObjectRef, Fields: d.Fields, Missing: d.Missing, Corrected: d.Corrected})
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
	return slices.Compare([]string{a.Kind, a.Group, a.Namespace, a.Name}, []string{b.Kind, b.Group, b.Namespace, b.Name})
}

// DecideNotes gives the events that a report adds about condition, readiness and drift, behind those of DecideCSV. Nothing is said of
// a life of which no phase is recorded: its stream has not begun, or has ended. policy is what becomes of drift in
// the cluster.
//
//	as recorded       nothing
//	within the limit  operatorcondition.changed, csv.readiness-changed, csv.drifted, csv.drift-ended
//	beyond the limit  nothing, until the window is over
func DecideNotes(s CSV, r protocol.CSVReport, policy string, now time.Time) ([]events.Payload, CSV, error) {
	if !s.Exists || s.Removed {
		return nil, s, nil
	}
	d := decision{state: s, report: r}
	n := &d.state.Notes
	if n.Window.IsZero() || now.Sub(n.Window) >= FlapWindow {
		n.Window, n.Changes = now, 0
	}
	n.Behind = false
	if c := d.report.Condition; c != nil {
		is := events.OperatorConditionChanged{Upgradeable: c.Upgradeable, Reason: c.Reason, Overridden: c.Overridden}
		was := events.OperatorConditionChanged{Upgradeable: !n.Held, Reason: n.Reason, Overridden: n.Overridden}
		if is != was && d.within() {
			n.Held, n.Reason, n.Overridden = !is.Upgradeable, is.Reason, is.Overridden
			d.events = append(d.events, is)
		}
	}
	d.readiness()
	err := d.drift(policy)
	return d.events, d.state, err
}

// readiness records which Deployments are not ready for a reason that is known: one that merely starts is no fact.
func (d *decision) readiness() {
	var is []events.NotReadyDeployment
	for _, r := range d.report.NotReady {
		if r.Reason != "" {
			is = append(is, events.NotReadyDeployment{Name: r.Deployment, Reason: r.Reason, Webhook: r.Webhook, Owner: r.Owner})
		}
	}
	n := &d.state.Notes
	if slices.Equal(is, n.NotReady) || !d.within() {
		return
	}
	n.NotReady = is
	d.events = append(d.events, events.CSVReadinessChanged{Deployments: is})
}

func (d *decision) drift(policy string) error {
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
	n := &d.state.Notes
	if sum == n.Drift || !d.within() {
		return nil
	}
	n.Drift = sum
	if sum == "" {
		d.events = append(d.events, events.CSVDriftEnded{})
		return nil
	}
	d.events = append(d.events, events.CSVDrifted{Objects: len(d.report.Drift) + d.report.Cut.Drifts, Diff: sum, Policy: policy})
	return nil
}

// within counts a change, and reports whether it may still be recorded.
func (d *decision) within() bool {
	n := &d.state.Notes
	n.Changes++
	n.Behind = n.Behind || n.Changes > NoteLimit
	return n.Changes <= NoteLimit
}
