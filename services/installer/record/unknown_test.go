package record_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// What a newer release keeps of an object is still there after this one has taken a report of it.
func TestStatesOfANewerRelease(t *testing.T) {
	t.Parallel()
	const newer = `{"later":{"since":7},"notes":{"later":1}}`
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	for name, after := range map[string]any{
		"cluster": func() any {
			report := protocol.ClusterReport{State: "Connected"}
			_, s := record.DecideCluster(read[record.Cluster](t, newer), report, now)
			return s
		}(),
		"group": func() any {
			_, s := record.DecideGroup(read[record.Group](t, newer), protocol.GroupReport{Targets: []string{"ns"}}, now)
			return s
		}(),
		"csv": func() any {
			_, s := record.DecideCSV(read[record.CSV](t, newer), protocol.Scope{}, protocol.CSVReport{
				History: []protocol.Transition{{Phase: "Pending", Reason: "RequirementsUnknown", Time: now}},
			}, now)
			return s
		}(),
	} {
		out, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), `"later":{"since":7}`) || !strings.Contains(string(out), `"later":1`) {
			t.Errorf("%s: %s", name, out)
		}
		if string(out) == newer {
			t.Errorf("%s: the report changed nothing", name)
		}
	}
}

func read[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
