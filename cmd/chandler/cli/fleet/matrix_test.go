package fleet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// TestMatrixTable: packages share lines whatever the number of clusters, lines fit a terminal, and a cluster says who
// asks for what runs there (issue 14, section 2).
func TestMatrixTable(t *testing.T) {
	t.Parallel()
	write := func(by string, rows []fleetmodel.MatrixRow, format string) string {
		t.Helper()
		var out bytes.Buffer
		o := printer.Output{Format: format}
		table, items := matrixTable(by, rows, o.Document())
		a := &command.Env{Streams: command.Streams{Out: &out, Err: &out}}
		if err := o.Show(a, table, items, false); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	one, three := 1, 3
	for _, clusters := range []int{3, 200} {
		versions := []fleetmodel.MatrixVersion{
			{Version: "1.2.4", Operators: clusters - 2, Clusters: clusters - 2, Some: []string{"east-001"}},
			{Version: "1.2.3", Operators: 1, Clusters: 1, Behind: &one, Some: []string{"east-198"}},
			{Version: "1.2.1", Operators: 1, Clusters: 1, Behind: &three, Some: []string{"east-199"}},
		}
		text := write(fleetmodel.MatrixByPackage, []fleetmodel.MatrixRow{
			{
				Package: "lighthouse", Operators: clusters, Clusters: clusters, Skew: 3, Behind: 2, Failed: 1,
				Newest: "1.2.4", Versions: versions,
				Channels: []fleetmodel.MatrixChannel{{Catalog: "harbour", Channel: "steady", Version: "1.2.4"}},
			},
			{Package: "tidegauge", NotInstalled: 2},
		}, "")
		narrow(t, text, 3)
		want := fmt.Sprintf("lighthouse   1.2.4 (%d), 1.2.3 (1), 1.2.1 (1)   %d", clusters-2, clusters)
		if !strings.Contains(text, want) || !strings.Contains(text, "1.2.4 steady") {
			t.Errorf("by package, without %q:\n%s", want, text)
		}
		var rows []fleetmodel.MatrixRow
		for i := range clusters {
			name := fmt.Sprintf("east-%03d", i)
			rows = append(rows, fleetmodel.MatrixRow{Cluster: name, Cells: []fleetmodel.MatrixCell{
				{
					Package: "lighthouse", Namespace: "harbour-ops", CSV: "lighthouse-keeper.v1.2.3",
					Version: "1.2.3", State: "Succeeded", Subscription: "keeper", Owner: "lighthouse-keeper",
					Behind: &one,
				},
				{Package: "tidegauge", State: fleetmodel.StateNotInstalled, Subscription: "tidegauge"},
			}})
		}
		text = write(fleetmodel.MatrixByCluster, rows, "")
		narrow(t, text, 1+2*clusters)
		for _, want := range []string{
			"1.2.3     1        Succeeded      fleet lighthouse-keeper",
			"<none>    <none>   NotInstalled   subscription tidegauge",
		} {
			if strings.Count(text, want) != clusters {
				t.Errorf("by cluster, %q is there %d times:\n%s", want, strings.Count(text, want), text[:400])
			}
		}
		if text = write(fleetmodel.MatrixByCluster, rows, "json"); strings.Count(text, `"cells"`) != clusters {
			t.Errorf("in JSON:\n%s", text[:400])
		}
	}
}
