package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/objects"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func previewCommand(a *command.Env) *cobra.Command {
	var files documents.Options
	var o printer.Output
	c := &cobra.Command{
		Use: "preview NAME | -f FILE", Short: "Show what a fleet subscription leads to on every cluster",
		Long: `Shows which clusters a fleet subscription chooses and what keeps the others away, the rollout that would begin with its
waves and its target, and what it leads to on each cluster: an installation, an upgrade, nothing, or what is in its way.
With a name it is the fleet subscription that is there; with -f the one of a file, after the checks of chandler apply.
Nothing is changed. Equal clusters share a line; -o json or yaml has each of them.

What is said of clusters that are away rests on what was seen of them last.`,
		Example: "  chandler fleet preview gauges\n  chandler fleet preview -f gauges.yaml -o yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := previews(cmd.Context(), a, c, files, args)
			if err != nil {
				return err
			}
			if o.Document() {
				items, err := printer.Items(list, nil, func(p fleetmodel.FleetPreview) printer.Item {
					return printer.Item{Name: "fleetpreview/" + p.FleetSubscription, Value: p}
				})
				if err != nil {
					return err
				}
				return o.Show(a, printer.Table{Plural: "fleet previews"}, items, len(items) == 1)
			}
			p := printer.NewPage(a.Out, a.Now)
			for _, one := range list {
				showPreview(p, one)
			}
			return p.Flush()
		},
	}
	fileFlags(c, &files)
	printer.DocumentFlag(c, &o)
	return c
}

// fileFlags registers the flags for documents of the whole fleet.
func fileFlags(c *cobra.Command, o *documents.Options) {
	c.Flags().StringSliceVarP(&o.Files, "filename", "f", nil,
		"file or folder with fleet subscriptions, - for standard input; can be repeated")
	c.Flags().BoolVarP(&o.Recursive, "recursive", "R", false, "read the folders below a folder, too")
}

// previews asks about the fleet subscription of a name, or about those of files.
func previews(
	ctx context.Context, a *command.Env, c *client.Client, files documents.Options, args []string,
) ([]fleetmodel.FleetPreview, error) {
	if len(args) > 0 == (len(files.Files) > 0) {
		return nil, command.Usagef("give the name of a fleet subscription, or a file with -f")
	}
	if len(args) > 0 {
		one, err := c.FleetPreview(ctx, args[0], nil)
		return []fleetmodel.FleetPreview{one}, err
	}
	all, err := documents.Read(a, files)
	if err != nil {
		return nil, err
	}
	var out []fleetmodel.FleetPreview
	for _, d := range all {
		if d.FleetSubscription == nil {
			continue
		}
		one, err := c.FleetPreview(ctx, d.Name, d.FleetSubscription)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Where, err)
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, command.Refused(errors.New("the files hold no fleet subscription"))
	}
	return out, nil
}

func showPreview(p *printer.Page, v fleetmodel.FleetPreview) {
	p.Line("Fleet subscription", v.FleetSubscription)
	p.Line("Waits for", kinds.WaitsText(v.WaitsFor))
	if t := v.Target; t != nil {
		p.Line("Brings", fmt.Sprintf("%s, the channel %s of catalog %s", t.CSV, t.Channel, t.Catalog))
		p.Line("Content", t.Content)
	}
	p.Line("Rollout", rolloutText(v))
	p.Line("Chosen", fmt.Sprintf("%d of %s%s", v.Totals.Chosen, printer.Plural(v.Totals.Clusters, "cluster"),
		moving(v.Totals)))
	if v.Totals.Away > 0 {
		p.Line("Away", printer.Plural(v.Totals.Away, "cluster")+" of those that it asks")
	}
	if len(v.Waves) > 0 {
		p.Section("Waves")
		p.Row("NAME", "CLUSTERS", "SOAK", "PROMOTION", "MAX FAILURES", "WHICH")
		for _, w := range v.Waves {
			soak := printer.None
			if w.SoakSeconds > 0 {
				soak = (time.Duration(w.SoakSeconds) * time.Second).String()
			}
			p.Row(w.Name, fmt.Sprint(w.Clusters), soak, w.Promotion, fmt.Sprint(w.MaxFailures), names(v.Clusters,
				func(c previewapi.FleetCluster) bool { return c.Wave == w.Name }))
		}
	}
	equals := equalClusters(v.Clusters, func(c previewapi.FleetCluster) bool { return c.Change != "" })
	if len(equals) > 0 {
		p.Section("Leads to")
		p.Row("CHANGE", "FROM", "CLUSTERS", "BECAUSE", "WHICH")
		for _, e := range equals {
			p.Row(changeText(e.of), printer.Or(e.of.From, printer.None), fmt.Sprint(len(e.names)), whyText(e.of),
				someNames(e.names))
		}
	}
	equals = equalClusters(v.Clusters, func(c previewapi.FleetCluster) bool { return c.Change == "" })
	if len(equals) > 0 {
		p.Section("Not chosen")
		p.Row("CLUSTERS", "BECAUSE", "WHICH")
		for _, e := range equals {
			p.Row(fmt.Sprint(len(e.names)), whyText(e.of), someNames(e.names))
		}
	}
}

func rolloutText(v fleetmodel.FleetPreview) string {
	switch {
	case v.WaitsFor != "":
		return ""
	case v.UnderWay > 0:
		return fmt.Sprintf("number %d goes on; the next one begins when it has ended", v.UnderWay)
	case v.Change == "":
		return "none: nothing would change"
	}
	text := fmt.Sprintf("would ask %s, because of %s", printer.Plural(v.Totals.Asked, "cluster"),
		kinds.CauseText(v.Change))
	if v.Supersedes > 0 {
		text += fmt.Sprintf("; it ends number %d", v.Supersedes)
	}
	return text
}

func moving(t previewapi.FleetTotals) string {
	var parts []string
	if t.Joining > 0 {
		parts = append(parts, fmt.Sprintf("%d of them new", t.Joining))
	}
	if t.Leaving > 0 {
		parts = append(parts, fmt.Sprintf("%d others leave", t.Leaving))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// changeText is what a cluster is led to.
func changeText(c previewapi.FleetCluster) string { return c.Change + conditions(c) }

// conditions are what a change is made of, and waits for.
func conditions(c previewapi.FleetCluster) (text string) {
	if c.Override != "" {
		text += ", override " + c.Override
	}
	if c.Approval == events.PromotionManual {
		text += ", after approval"
	}
	if c.Away {
		text += ", when it is back"
	}
	return text
}

// criteria are codes of why a cluster is not chosen, or cannot be asked, in words.
var criteria = map[string]string{
	"NotNamed":          "the placement names others",
	"Excepted":          "the placement excepts it",
	"LabelsDiffer":      "its labels are others",
	"TaintNotTolerated": "it has a taint that is not tolerated",
	"BeyondCount":       "as many as are wanted are chosen",
	"OverrideConflict":  "overrides are as particular, and differ",
}

// whyText is why a cluster is led to that, or is not chosen.
func whyText(c previewapi.FleetCluster) string {
	text := printer.Or(criteria[c.Reason], c.Reason)
	if c.Detail != "" {
		text += ": " + c.Detail
	}
	return printer.Or(text, printer.None)
}

// equal are clusters of which the same is to be said.
type equal struct {
	of    previewapi.FleetCluster // without its name
	names []string
}

// equalClusters puts clusters together of which the same is to be said, the most of them first.
func equalClusters(list []previewapi.FleetCluster, which func(previewapi.FleetCluster) bool) []equal {
	var out []equal
	at := map[[8]string]int{}
	for _, c := range list {
		if !which(c) {
			continue
		}
		name := c.Name
		key := [8]string{c.Override, c.Change, c.Reason, c.Detail, c.From, c.To, c.Approval, fmt.Sprint(c.Away)}
		i, known := at[key]
		if !known {
			c.Name, i = "", len(out)
			at[key] = i
			out = append(out, equal{of: c})
		}
		out[i].names = append(out[i].names, name)
	}
	slices.SortStableFunc(out, func(a, b equal) int { return len(b.names) - len(a.names) })
	return out
}

func names(list []previewapi.FleetCluster, which func(previewapi.FleetCluster) bool) string {
	var out []string
	for _, c := range list {
		if which(c) {
			out = append(out, c.Name)
		}
	}
	return someNames(out)
}

// namesWidth is how much of a line names of clusters have: with the other columns, and names as they usually are, a
// line stays within 100 characters.
const namesWidth = 18

// someNames are as many names as a line has room for, and how many there are beyond.
func someNames(list []string) string {
	text := ""
	for i, name := range list {
		next := name
		if i > 0 {
			next = text + ", " + name
		}
		if i > 0 && len(next) > namesWidth {
			return fmt.Sprintf("%s and %d more", text, len(list)-i)
		}
		text = next
	}
	return text
}

func diffCommand(a *command.Env) *cobra.Command {
	var files documents.Options
	c := &cobra.Command{
		Use: "diff -f FILE", Short: "Show what a fleet subscription of a file would change",
		Long: `Compares fleet subscriptions of files with what is there: as chandler diff the documents, configuration included, then
the clusters. A line with + is about clusters that would be chosen and are not placed on yet, one with - about clusters
that would be let go, and one with ~ says what the others are led to. Nothing is changed.

The status is 3 if something differs, and 0 if nothing does.`,
		Example: "  chandler fleet diff -f gauges.yaml", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := previews(cmd.Context(), a, c, files, nil)
			if err != nil {
				return err
			}
			differs, err := objects.ShowDiff(cmd.Context(), a, files)
			if err != nil {
				return err
			}
			for _, p := range list {
				lines := differences(p)
				differs = differs || len(lines) > 0
				for _, line := range lines {
					if err := a.Say("%s", line); err != nil {
						return err
					}
				}
			}
			if differs {
				return &author.ExitError{Code: command.ExitDiffers}
			}
			return nil
		},
	}
	fileFlags(c, &files)
	return c
}

// differences says what a preview changes of the clusters: equal ones share a line.
func differences(v fleetmodel.FleetPreview) (out []string) {
	for _, part := range []struct {
		mark  string
		which func(previewapi.FleetCluster) bool
	}{
		{"+", func(c previewapi.FleetCluster) bool { return c.Chosen && !c.Placed }},
		{"-", func(c previewapi.FleetCluster) bool { return !c.Chosen && c.Placed }},
		{"~", func(c previewapi.FleetCluster) bool { return c.Chosen && c.Placed && c.Wave != "" }},
	} {
		for _, e := range equalClusters(v.Clusters, part.which) {
			text := e.of.Change
			if e.of.From != "" {
				text += " from " + e.of.From
			}
			if e.of.To != "" {
				text += " to " + e.of.To
			}
			text += conditions(e.of)
			if why := whyText(e.of); why != printer.None {
				text += " (" + why + ")"
			}
			out = append(out, fmt.Sprintf("%s %s: %s: %s", part.mark, printer.Plural(len(e.names), "cluster"), text,
				someNames(e.names)))
		}
	}
	return out
}
