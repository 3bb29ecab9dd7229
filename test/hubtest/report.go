package hubtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Patience bounds every wait for something that is to happen.
const Patience = 2 * time.Minute

// Report reads the last report of a namespace; ok is false when there is none.
func (h *Hub) Report(ctx context.Context, ns string) (r protocol.ScopeReport, ok bool, err error) {
	ok, err = h.last(ctx, protocol.ScopeReportSubject(h.Scope(ns).Scope), &r)
	return r, ok, err
}

// ClusterReport reads the last report of the cluster as a whole.
func (h *Hub) ClusterReport(ctx context.Context) (r protocol.ClusterReport, ok bool, err error) {
	ok, err = h.last(ctx, protocol.ClusterReportSubject(Tenant, h.ClusterID), &r)
	return r, ok, err
}

func (h *Hub) last(ctx context.Context, subject string, into any) (bool, error) {
	m, err := h.lastMessage(ctx, subject)
	if m == nil || err != nil {
		return false, err
	}
	return true, json.Unmarshal(m.Data, into)
}

// lastMessage is nil when there is none.
func (h *Hub) lastMessage(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	s, err := h.Stream(ctx, protocol.StreamReports)
	if err != nil {
		return nil, err
	}
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	return m, err
}

// Listen calls take with each report of a namespace of this cluster as it is written, one at a time, until stop.
func (h *Hub) Listen(take func(protocol.ScopeReport)) (stop func()) {
	h.tb.Helper()
	subject := protocol.SubjectReport + "." + Tenant + "." + h.ClusterID + ".*"
	sub, err := h.JetStream.Conn().Subscribe(subject, func(m *nats.Msg) {
		var r protocol.ScopeReport
		if err := json.Unmarshal(m.Data, &r); err != nil {
			h.tb.Errorf("report on %s: %v", m.Subject, err)
			return
		}
		if r.Scope.Namespace != "" {
			take(r)
		}
	})
	must(h.tb, err)
	must(h.tb, h.JetStream.Conn().Flush())
	return func() {
		if err := sub.Unsubscribe(); err != nil {
			h.tb.Error(err)
		}
	}
}

// How long Await waits between two looks: at least so long, and a twentieth of the time that it has waited for up to so
// long. A look costs an API server and the race detector some milliseconds.
const (
	lookSoonest = 25 * time.Millisecond
	lookLatest  = 250 * time.Millisecond
)

// Await polls until the condition holds; the error of the last look is what a failure shows.
func Await(tb testing.TB, what string, look func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	began := time.Now()
	var last error
	for {
		err := look(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil {
			last = err // the end of the wait says nothing
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: %v", what, last)
		case <-time.After(min(max(time.Since(began)/20, lookSoonest), lookLatest)):
		}
	}
}

// AwaitPlan waits until the plan's report satisfies the condition.
func (h *Hub) AwaitPlan(ns, id string, ok func(protocol.PlanReport) bool) protocol.PlanReport {
	h.tb.Helper()
	return awaitIn(h, ns, "plan "+id, func(r protocol.ScopeReport) []protocol.PlanReport { return r.Plans },
		func(p protocol.PlanReport) bool { return p.ID == id && ok(p) })
}

// AwaitCSV waits until the operator's report satisfies the condition.
func (h *Hub) AwaitCSV(ns, name string, ok func(protocol.CSVReport) bool) protocol.CSVReport {
	h.tb.Helper()
	return awaitIn(h, ns, "csv "+name, func(r protocol.ScopeReport) []protocol.CSVReport { return r.CSVs },
		func(c protocol.CSVReport) bool { return c.Name == name && ok(c) })
}

// AwaitRemoval waits until the removal's report satisfies the condition.
func (h *Hub) AwaitRemoval(ns, id string, ok func(protocol.RemovalReport) bool) protocol.RemovalReport {
	h.tb.Helper()
	return awaitIn(h, ns, "removal "+id, func(r protocol.ScopeReport) []protocol.RemovalReport { return r.Removals },
		func(m protocol.RemovalReport) bool { return m.ID == id && ok(m) })
}

func awaitIn[T any](h *Hub, ns, what string, all func(protocol.ScopeReport) []T, ok func(T) bool) (found T) {
	h.tb.Helper()
	subject := protocol.ScopeReportSubject(h.Scope(ns).Scope)
	var seen *jetstream.RawStreamMsg
	var r protocol.ScopeReport
	Await(h.tb, what, func(ctx context.Context) error {
		m, err := h.lastMessage(ctx, subject)
		if err != nil {
			return err
		}
		if m != nil && (seen == nil || m.Sequence != seen.Sequence || !m.Time.Equal(seen.Time)) {
			seen, r = m, protocol.ScopeReport{}
			if err := json.Unmarshal(m.Data, &r); err != nil {
				return err
			}
		}
		for _, one := range all(r) {
			if ok(one) {
				found = one
				return nil
			}
		}
		return unmet{&r}
	})
	return found
}

// unmet is a report that is not what is waited for. Only the last one is written out.
type unmet struct{ report *protocol.ScopeReport }

func (u unmet) Error() string {
	return fmt.Sprintf("last report: plans %+v, operators %+v, removals %+v", u.report.Plans, u.report.CSVs,
		u.report.Removals)
}

// Phase is true of a plan in a phase.
func Phase(p string) func(protocol.PlanReport) bool {
	return func(r protocol.PlanReport) bool { return r.Phase == p }
}

// Blocked is true of a plan that is blocked for a reason.
func Blocked(reason string) func(protocol.PlanReport) bool {
	return func(r protocol.PlanReport) bool { return r.Phase == protocol.PlanBlocked && r.Reason == reason }
}

// Reached is true of an operator whose phase it is now.
func Reached(p string) func(protocol.CSVReport) bool {
	return func(r protocol.CSVReport) bool { return len(r.History) > 0 && r.History[len(r.History)-1].Phase == p }
}

// History writes the transitions as "Phase(Reason)".
func History(r protocol.CSVReport) []string {
	out := make([]string, 0, len(r.History))
	for _, t := range r.History {
		out = append(out, t.Phase+"("+t.Reason+")")
	}
	return out
}
