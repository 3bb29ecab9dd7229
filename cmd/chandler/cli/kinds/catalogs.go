package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// CatalogRef is the reference of a catalog.
func CatalogRef(c model.Catalog) client.Ref {
	return client.Ref{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
}

// Catalogs are shown with OLM's columns and their state (R-CAT-100).
func Catalogs(a *command.Env) Kind {
	show := func(c model.Catalog) printer.Item {
		display := c.Display
		if display == nil {
			display = &model.CatalogDisplay{}
		}
		return printer.Item{
			Name: "catalog/" + CatalogRef(c).String(), Value: c, Subject: CatalogRef(c).String(),
			Stream: events.KindCatalog, Describe: func(p *printer.Page) { describeCatalog(p, c) }, Cells: []any{
				CatalogRef(c).String(), printer.Or(display.Name, printer.None), string(c.Source.Type),
				printer.Or(display.Publisher, printer.None), catalogState(c), c.Packages, c.Bundles,
				printer.Age(a.Now(), c.AddedAt), c.Priority, printer.Short(c.Revision),
				printer.Or(c.Reason, printer.None), sourceText(c.Source), printer.Labels(c.Labels),
			},
		}
	}
	return Kind{
		Document: "Catalog",
		Names:    []string{"catalog", "catalogs", "catalogsource", "catalogsources", "catsrc"},
		mixed:    true,
		partial:  true, // the annotations
		filters: []string{
			FlagCluster, FlagState, FlagLabel, FlagFields, FlagClusters,
		},
		sorts:   []string{"name", "state", "created", "changed"},
		columns: catalogColumns(),
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.Catalogs(ctx, s)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.Catalog(ctx, r)
			if err != nil {
				return printer.Item{}, err
			}
			last, served, err := c.LastRevision(ctx, r)
			it, err := printer.OneItem(v, err, show)
			it.Describe = func(p *printer.Page) {
				describeCatalog(p, v)
				if served {
					describeLastRevision(p, last)
				}
			}
			return it, err
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.RemoveCatalog(ctx, r)
		},
	}
}

func catalogColumns() []printer.Column {
	return []printer.Column{
		{Name: "Name"},
		{Name: "Display", Cut: 8},
		{Name: "Type", Cut: 4},
		{Name: "Publisher", Cut: 9},
		{Name: "State"},
		{Name: "Packages", Cut: 5},
		{Name: "Bundles", Cut: 7},
		{Name: "Age", Cut: 6},
		{Name: "Priority", Wide: true},
		{Name: "Revision", Wide: true},
		{Name: "Reason", Wide: true},
		{Name: "Source", Wide: true},
		{Name: "Labels", Wide: true},
	}
}

func catalogState(c model.Catalog) string {
	if c.Disabled {
		return model.CatalogDisabled
	}
	return c.State
}

// sourceText says in a few words where a catalog comes from.
func sourceText(s model.CatalogSource) string {
	place := s.Path + s.URL + s.Address
	switch {
	case s.ConfigMap != nil:
		place = s.ConfigMap.Namespace + "/" + s.ConfigMap.Name
	case s.Template != "":
		place = s.Template
	case s.Image != "":
		place = s.Image
	}
	if s.Reference != "" {
		place += " at " + s.Reference
	}
	return strings.TrimSpace(string(s.Type) + " " + place)
}

// describeCatalog writes everything about a catalog: what was said of it, then what the indexer saw.
func describeCatalog(p *printer.Page, c model.Catalog) {
	p.Scope(c.Cluster, c.Namespace, c.Name)
	p.Metadata(c.Metadata)
	if d := c.Display; d != nil {
		p.Line("Display name", d.Name)
		p.Line("Publisher", d.Publisher)
		p.Line("Description", d.Description)
	}
	p.Line("Source", sourceText(c.Source))
	p.Line("Secrets", strings.Join(c.Source.Secrets, ", "))
	describeSignatures(p, c.Source.Signatures)
	p.Line("Mode", c.Source.Mode)
	p.Line("Visible to", printer.Or(strings.Trim(c.Visibility.Cluster+"/"+c.Visibility.Namespace, "/"), "all clusters"))
	p.Line("Priority", fmt.Sprint(c.Priority))
	if c.Default {
		p.Line("Default", "comes with this installation")
	}
	p.Line("State", catalogState(c))
	p.Line("Reason", c.Reason)
	p.Line("Rule", c.Rule)
	p.Line("Revision", c.Revision)
	p.Line("Packages", fmt.Sprint(c.Packages))
	p.Line("Bundles", fmt.Sprint(c.Bundles))
	p.When("Added", c.AddedAt)
	for _, v := range c.Variants {
		describeVariant(p, v)
	}
	p.Conditions(c.Conditions)
	p.Document("Findings", c.Details)
}

func describeVariant(p *printer.Page, v model.CatalogVariant) {
	if v.Variant != "" {
		p.Section("Kubernetes " + v.Variant)
	} else {
		p.Section("Last poll")
	}
	line := func(name, value string) {
		if value != "" {
			p.Row(name+":", value)
		}
	}
	line("Reference", v.Reference)
	line("Resolved", v.Resolved)
	line("Revision", v.Revision)
	line("Connection", v.Connection)
	if v.PolledAt != nil {
		line("Polled", p.Age(*v.PolledAt)+" ago")
	}
	if v.NextAt != nil {
		line("Next poll", v.NextAt.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	line("Message", v.Message)
	line("Error", strings.TrimSpace(v.ErrorReason+" "+v.Error))
	line("Quarantined", strings.Join(v.Quarantined, ", "))
	if v.Errors+v.Warnings+v.Infos > 0 {
		line("Findings", fmt.Sprintf("%d errors, %d warnings, %d infos (chandler catalog findings)", v.Errors,
			v.Warnings, v.Infos))
	}
}

// maxNamedChanges bounds the packages that a line names; -o json has them all.
const maxNamedChanges = 4

// ChangesText says in one line what a revision changed.
func ChangesText(all []model.RevisionChange) string {
	var parts []string
	for _, c := range all[:min(len(all), maxNamedChanges)] {
		parts = append(parts, c.Package+" "+changeText(c))
	}
	if rest := len(all) - len(parts); rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d packages more", rest))
	}
	return strings.Join(parts, "; ")
}

func changeText(c model.RevisionChange) string {
	if c.Change != "changed" {
		return c.Change
	}
	var parts []string
	for _, h := range c.Heads {
		parts = append(parts, fmt.Sprintf("%s: %s to %s", h.Channel, printer.Or(h.From, printer.None),
			printer.Or(h.To, printer.None)))
	}
	for _, n := range []struct {
		count int
		what  string
	}{{len(c.BundlesAdded), "added"}, {len(c.BundlesRemoved), "removed"}, {len(c.BundlesMutated), "mutated"}} {
		if n.count > 0 {
			parts = append(parts, fmt.Sprintf("%d bundles %s", n.count, n.what))
		}
	}
	if c.DefaultChannelTo != "" {
		parts = append(parts, "default channel "+c.DefaultChannelTo)
	}
	for _, d := range []struct {
		names []string
		what  string
	}{{c.Deprecated, "deprecated"}, {c.Undeprecated, "no longer deprecated"}} {
		if len(d.names) > 0 {
			parts = append(parts, d.what+" "+strings.Join(d.names, " "))
		}
	}
	return printer.Or(strings.Join(parts, ", "), c.Change)
}

// Mutated names the bundles that have other content than before under the same name.
func Mutated(all []model.RevisionChange) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.BundlesMutated...)
	}
	slices.Sort(names)
	return names
}

// describeLastRevision says what the newest revision changed.
func describeLastRevision(p *printer.Page, v model.Revision) {
	p.Section("Last revision")
	p.Row("Revision:", v.Revision)
	p.Row("Served since:", p.Age(v.Created)+" ago")
	for _, c := range v.Changes {
		p.Row(c.Package+":", changeText(c))
	}
	if names := Mutated(v.Changes); len(names) > 0 {
		p.Row("Mutated:", strings.Join(names, ", ")+
			" (different content under the same name, which is never reinstalled)")
	}
}
