package hubclient

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// large is a report of a namespace with so many operators, each with all that can be reported of one.
func large(operators int) protocol.ScopeReport {
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	text := strings.Repeat("why ", 200)
	r := protocol.ScopeReport{
		Scope: protocol.Scope{Tenant: "t", Cluster: "east", ClusterID: "c", Namespace: "ops"}, Epoch: 7,
		Group: &protocol.GroupReport{
			ID: "g", Name: "coast", Targets: []string{"ops"},
			Conditions: []protocol.GroupCondition{{Type: "T", Message: text}},
		},
	}
	for i := range operators {
		c := protocol.CSVReport{
			Name: fmt.Sprintf("tide%d.v1.0.0", i), UID: fmt.Sprint("u", i), Plan: "p",
			Condition: &protocol.OperatorCondition{Reason: "Reindexing", Message: text},
		}
		var rows []map[string]any
		for n := range 20 {
			ref := protocol.ObjectRef{
				Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ops",
				Name: fmt.Sprint("tide", n),
			}
			c.History = append(c.History, protocol.Transition{
				Phase: "Failed", Reason: "ComponentUnhealthy",
				Message: text, Time: at,
			})
			c.Components = append(c.Components, protocol.Component{
				ObjectRef: ref, Status: []string{"Current", "InProgress"}[n%2], Message: text,
			})
			c.Drift = append(c.Drift, protocol.Drift{
				ObjectRef: ref,
				Fields: []protocol.FieldDrift{
					{Path: "/spec", Want: json.RawMessage(`"` + text + `"`)},
					{Path: "/x"},
				},
				Since: at,
			})
			rows = append(rows, map[string]any{
				"kind": "ServiceAccount", "name": fmt.Sprint("a", n),
				"dependents": []map[string]string{{"message": text}},
			})
		}
		c.Requirements, _ = json.Marshal(rows)
		r.CSVs = append(r.CSVs, c)
		r.Plans = append(r.Plans, protocol.PlanReport{
			ID: fmt.Sprint("p", i), Phase: protocol.PlanFinished,
			Message: text, StepLog: json.RawMessage(`{"steps":"` + strings.Repeat("s", 100*(i+1)) + `"}`),
		})
		left := make([]protocol.Leftover, 200)
		r.Removals = append(r.Removals, protocol.RemovalReport{
			ID: fmt.Sprint("r", i), CSV: "x",
			Phase: protocol.PlanFinished, Left: left,
		})
	}
	return r
}

// essence is what is never left out: phases of operators, and how far plans and removals are.
func essence(r protocol.ScopeReport) []string {
	out := []string{r.Scope.Namespace, fmt.Sprint(r.Epoch)}
	for _, c := range r.CSVs {
		last := c.History[len(c.History)-1]
		out = append(out, c.Name, c.UID, c.Plan, last.Phase, last.Reason,
			fmt.Sprint(len(c.History)+c.Dropped, c.Condition.Upgradeable, c.Condition.Reason, len(c.Drift) > 0))
	}
	for _, p := range r.Plans {
		out = append(out, p.ID, p.Phase)
	}
	for _, x := range r.Removals {
		out = append(out, x.ID, x.Phase)
	}
	return out
}

// TestFit: a report that is too large goes without what is least important, in one order, and says how much of it that
// is.
func TestFit(t *testing.T) {
	t.Parallel()
	const operators = 5
	whole := large(operators)
	before, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	// What is left out of a report, by how much of it fits.
	parts := []struct {
		name string
		of   func(protocol.Cut) int
	}{
		{"values and fields", func(c protocol.Cut) int { return c.Fields }},
		{"components", func(c protocol.Cut) int { return c.Components }},
		{"requirements", func(c protocol.Cut) int { return c.Requirements }},
		{"left", func(c protocol.Cut) int { return c.Left }},
		{"history", func(c protocol.Cut) int { return c.History }},
		{"step logs", func(c protocol.Cut) int { return c.StepLogs }},
		{"group", func(c protocol.Cut) int { return c.Groups }},
	}
	var order []string
	smallest := 0
	for limit := len(before); smallest == 0; limit -= max(1, limit/40) {
		got, body, err := fit(whole, limit)
		switch {
		case errs.Is(err, errs.TooLarge):
			smallest = len(body)
			continue
		case err != nil || len(body) > limit:
			t.Fatalf("%d bytes of at most %d: %v", len(body), limit, err)
		}
		var sent protocol.ScopeReport
		if err := json.Unmarshal(body, &sent); err != nil || sent.Cut != got.Cut {
			t.Fatalf("sent with %+v, not %+v: %v", sent.Cut, got.Cut, err)
		}
		if diff := cmp.Diff(essence(whole), essence(sent)); diff != "" {
			t.Fatalf("of %d bytes (-whole +sent):\n%s", limit, diff)
		}
		if len(body) < len(before) && sent.Cut == (protocol.Cut{}) {
			t.Fatalf("%d bytes less are not marked", len(before)-len(body))
		}
		if n, logs := countLogs(sent); n+sent.Cut.StepLogs != operators || sent.Cut.StepLogs > 0 &&
			logs > 100*(operators-sent.Cut.StepLogs+1) {
			t.Fatalf("%d step logs, the largest of %d bytes, without %d", n, logs, sent.Cut.StepLogs)
		}
		for _, p := range parts {
			if p.of(sent.Cut) > 0 && !slices.Contains(order, p.name) {
				order = append(order, p.name)
			}
		}
		if limit < 1000 {
			t.Fatal("everything fits")
		}
	}
	if want := []string{
		"values and fields", "components", "requirements", "left", "history", "step logs",
		"group",
	}; !slices.Equal(order, want) {
		t.Errorf("left out first is %q, want %q", order, want)
	}
	if smallest > operators*1500 {
		t.Errorf("the shortest form of %d operators has %d bytes", operators, smallest)
	}
	if after, err := json.Marshal(whole); err != nil || !bytes.Equal(before, after) {
		t.Errorf("what was given is changed (%v)", err)
	}
}

func countLogs(r protocol.ScopeReport) (n, largest int) {
	for _, p := range r.Plans {
		if len(p.StepLog) > 0 {
			n++
			largest = max(largest, len(p.StepLog)-len(`{"steps":""}`))
		}
	}
	return n, largest
}

// TestFitBoundsTexts: what somebody in the cluster wrote is bounded though the report would fit.
func TestFitBoundsTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 10_000)
	r := protocol.ScopeReport{CSVs: []protocol.CSVReport{
		{Condition: &protocol.OperatorCondition{Reason: long, Message: long}},
	}}
	got, _, err := fit(r, maxPlansBytes)
	if err != nil {
		t.Fatal(err)
	}
	c := got.CSVs[0]
	if len(c.Condition.Message) > maxText || len(c.Condition.Reason) > maxCode ||
		!strings.HasSuffix(c.Condition.Message, "é…") || got.Cut.Messages != 2 || c.Cut.Messages != 2 {
		t.Errorf("the message has %d bytes, the reason %d, marked %+v", len(c.Condition.Message),
			len(c.Condition.Reason), got.Cut)
	}
	if len(r.CSVs[0].Condition.Message) != len(long) {
		t.Error("what was given is changed")
	}
}

// TestReportsAlwaysFit: a report of more than NATS takes arrives all the same, and the reports of other namespaces with
// it; one of which nothing can be left out is not tried for ever.
func TestReportsAlwaysFit(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t).Connect(t)
	if _, err := b.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	own := protocol.NewSession("s", key)
	h := New(b.JetStream(), bustest.Installation, "t", "c", keys.Accepted{}, own)
	r := NewReporter(h, slog.New(slog.DiscardHandler), time.Hour, time.Now)
	huge, small := large(25), large(1)
	small.Scope.Namespace = "web"
	endless := protocol.ScopeReport{Scope: huge.Scope}
	endless.Scope.Namespace = "endless"
	for i := range 20_000 {
		endless.Plans = append(endless.Plans, protocol.PlanReport{ID: fmt.Sprintf("%060d", i)})
	}
	for _, report := range []protocol.ScopeReport{huge, small, endless} {
		r.Scope(report)
	}
	if !r.flush(t.Context(), false) {
		t.Error("it is tried again")
	}
	stream, err := b.Stream(t.Context(), protocol.StreamReports)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []protocol.ScopeReport{huge, small} {
		m, err := stream.GetLastMsgForSubject(t.Context(), protocol.ScopeReportSubject(want.Scope))
		if err != nil {
			t.Fatalf("the report of %s: %v", want.Scope.Namespace, err)
		}
		if err := protocol.VerifyReport(m.Subject, m.Data, m.Header.Get(protocol.HeaderReportSignature),
			own.PublicKey()); err != nil || m.Header.Get(protocol.HeaderSession) != "s" {
			t.Errorf("the report of %s is not signed: %v", want.Scope.Namespace, err)
		}
		var got protocol.ScopeReport
		if err := json.Unmarshal(m.Data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(essence(want), essence(got)); diff != "" || got.Reported.IsZero() ||
			(got.Cut.Components > 0) != (want.Scope.Namespace == "ops") {
			t.Errorf("the report of %s says %+v; (-whole +sent):\n%s", want.Scope.Namespace, got.Cut, diff)
		}
	}
	if _, err := stream.GetLastMsgForSubject(t.Context(), protocol.ScopeReportSubject(endless.Scope)); err == nil {
		t.Error("what cannot fit has arrived")
	}
}
