package fleet

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func matrixCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	f := fleetmodel.MatrixFilter{}
	c := &cobra.Command{
		Use: "matrix", Short: "Show which versions run on which clusters, and how far they are apart",
		Long: `Shows a line for each package: the versions that run, with how many operators each, newest first; on how many clusters
they run; the skew, which is how many releases lie between the oldest and the newest of them; how many are behind the
newest version of the channel that they follow; how many have failed; and what the channels offer. With -o wide also
clusters of each version.

With --by cluster there is a line for each operator on each cluster: its version and its phase, how many newer versions
its channel has, and who asks for it. NotInstalled is what a subscription asks for and is not there yet.

What you may not list does not count. -o json and yaml have the rows as the API has them.`,
		Example: "  chandler fleet matrix\n  chandler fleet matrix --package gauges --by cluster\n" +
			"  chandler fleet matrix -l site=north -o wide",
		Args: cobra.NoArgs,
	}
	o.Flags(c)
	flags := c.Flags()
	flags.StringVar(&f.By, "by", fleetmodel.MatrixByPackage, "what the rows are: package or cluster")
	flags.StringVar(&f.Package, kinds.FlagPackage, "", "only this package")
	flags.StringVar(&f.Cluster, kinds.FlagCluster, "", "only this cluster")
	flags.StringVarP(&f.ClusterSelector, kinds.FlagClusters, "l", "", "only clusters with these labels, such as site=north")
	c.RunE = a.Run(func(ctx context.Context, cl *client.Client, _ []string) error {
		if f.By != fleetmodel.MatrixByPackage && f.By != fleetmodel.MatrixByCluster {
			return command.Usagef("--by %s: want package or cluster", f.By)
		}
		rows, err := cl.FleetMatrix(ctx, f)
		if err != nil {
			return err
		}
		table, items := matrixTable(f.By, rows, o.Document())
		return o.Show(a, table, items, false)
	})
	return c
}

// matrixTable is the table of rows, or the rows themselves where they are written whole.
func matrixTable(by string, rows []fleetmodel.MatrixRow, whole bool) (t printer.Table, items []printer.Item) {
	if by == fleetmodel.MatrixByCluster {
		t = printer.Table{Plural: "operators", Columns: []printer.Column{
			{Name: "Cluster"},
			{Name: "Package"},
			{Name: "Version"},
			{Name: "Behind", Cut: 2},
			{Name: "State"},
			{Name: "Asked by", Cut: 1},
			{Name: "Namespace", Wide: true},
			{Name: "CSV", Wide: true},
			{Name: "Catalog", Wide: true},
			{Name: "Channel", Wide: true},
			{Name: "Offered", Wide: true},
		}}
	} else {
		t = printer.Table{Plural: "packages", Columns: []printer.Column{
			{Name: "Package"},
			{Name: "Versions"},
			{Name: "Clusters", Cut: 1},
			{Name: "Skew"},
			{Name: "Behind", Cut: 2},
			{Name: "Failed", Cut: 3},
			{Name: "Offered", Cut: 4},
			{Name: "Not installed", Wide: true},
			{Name: "Which", Wide: true},
		}}
	}
	for _, r := range rows {
		switch {
		case r.Package != "":
			items = append(items, packageItem(r))
		case whole:
			items = append(items, printer.Item{Name: "cluster/" + r.Cluster, Value: r})
		default:
			for _, c := range r.Cells {
				items = append(items, cellItem(r.Cluster, c))
			}
		}
	}
	return t, items
}

func packageItem(r fleetmodel.MatrixRow) printer.Item {
	which := make([]string, 0, len(r.Versions))
	for _, v := range r.Versions {
		names := strings.Join(v.Some, ", ")
		if more := v.Clusters - len(v.Some); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		which = append(which, printer.Or(v.Version, printer.None)+": "+names)
	}
	return printer.Item{Name: "package/" + r.Package, Value: r, Cells: []any{
		r.Package, versionsCell(r.Versions), r.Clusters, r.Skew, r.Behind, r.Failed, offeredCell(r.Channels),
		r.NotInstalled, printer.Or(strings.Join(which, "; "), printer.None),
	}}
}

func cellItem(cluster string, c fleetmodel.MatrixCell) printer.Item {
	apart := printer.None
	if c.Behind != nil {
		apart = strconv.Itoa(*c.Behind)
	}
	return printer.Item{Name: "cluster/" + cluster + "/" + c.Package, Value: c, Cells: []any{
		cluster, c.Package, printer.Or(c.Version, printer.None), apart, c.State, askedBy(c), c.Namespace,
		printer.Or(c.CSV, printer.None), printer.Or(c.Catalog, printer.None), printer.Or(c.Channel, printer.None),
		printer.Or(c.Offered, printer.None),
	}}
}

// askedBy says who asks for an operator.
func askedBy(c fleetmodel.MatrixCell) string {
	switch {
	case c.Owner != "":
		return "fleet " + c.Owner
	case c.Generated:
		return "a dependency"
	case c.Subscription != "":
		return "subscription " + c.Subscription
	default:
		return printer.None
	}
}

// maxVersions is how many versions have room in a cell.
const maxVersions = 3

// versionsCell are versions with how many operators of each there are.
func versionsCell(list []fleetmodel.MatrixVersion) string {
	parts := make([]string, 0, maxVersions)
	for _, v := range list[:min(len(list), maxVersions)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", printer.Or(v.Version, printer.None), v.Operators))
	}
	text := printer.Or(strings.Join(parts, ", "), printer.None)
	if more := len(list) - maxVersions; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// offeredCell is the newest version of the channel that most operators follow, and how many other channels there are.
func offeredCell(list []fleetmodel.MatrixChannel) string {
	if len(list) == 0 {
		return printer.None
	}
	first := list[0]
	for _, c := range list[1:] {
		if c.Operators > first.Operators {
			first = c
		}
	}
	text := first.Version + " " + first.Channel
	if len(list) > 1 {
		text += fmt.Sprintf(" +%d", len(list)-1)
	}
	return text
}
