package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/sources"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func catalogRef(c model.Catalog) client.Ref {
	return client.Ref{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
}

// catalogs are shown with OLM's columns and their state (R-CAT-100).
func (a *app) catalogs() resource {
	show := func(c model.Catalog) item {
		display := c.Display
		if display == nil {
			display = &model.CatalogDisplay{}
		}
		return item{name: "catalog/" + catalogRef(c).String(), value: c, subject: catalogRef(c).String(), stream: events.KindCatalog, describe: func(p *page) { p.catalog(c) }, cells: []any{
			catalogRef(c).String(), or(display.Name, none), string(c.Source.Type), or(display.Publisher, none), catalogState(c), c.Packages, c.Bundles,
			a.age(c.AddedAt), c.Priority, short(c.Revision), or(c.Reason, none), sourceText(c.Source), labels(c.Labels),
		}}
	}
	return resource{
		kind:    "Catalog",
		names:   []string{"catalog", "catalogs", "catalogsource", "catalogsources", "catsrc"},
		mixed:   true,
		partial: true, // the annotations
		filters: []string{flagCluster, flagState, flagLabel},
		columns: []column{
			{name: "Name"},
			{name: "Display"},
			{name: "Type"},
			{name: "Publisher"},
			{name: "State"},
			{name: "Packages"},
			{name: "Bundles"},
			{name: "Age"},
			{name: "Priority", wide: true},
			{name: "Revision", wide: true},
			{name: "Reason", wide: true},
			{name: "Source", wide: true},
			{name: "Labels", wide: true},
		},
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			list, err := c.Catalogs(ctx, s)
			return all(list, err, show)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			v, err := c.Catalog(ctx, r)
			if err != nil {
				return item{}, err
			}
			last, served, err := c.LastRevision(ctx, r)
			it, err := one(v, err, show)
			it.describe = func(p *page) {
				p.catalog(v)
				if served {
					p.lastRevision(last)
				}
			}
			return it, err
		},
		remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.RemoveCatalog(ctx, r)
		},
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

func (a *app) catalogCommand() *cobra.Command {
	c := &cobra.Command{Use: "catalog", Short: "Add, list, refresh and remove catalogs of the fleet, and look into them"}
	c.AddCommand(a.catalogAddCommand(), a.listCommand("catalogs"), a.catalogRefreshCommand(), a.catalogRemoveCommand(),
		a.catalogSwitchCommand("disable", "Keep a catalog and do not offer it", disableHelp, true),
		a.catalogSwitchCommand("enable", "Offer a catalog again", enableHelp, false),
		a.packagesCommand(), a.findingsCommand(), a.revisionsCommand(), a.blobsCommand(), a.secretCommand(), a.hookCommand(), a.healthCommand())
	a.addCatalogTools(c)
	return c
}

// What switching a catalog off and on does.
const (
	disableHelp = `Offers nothing of a catalog any more, until chandler catalog enable: nothing is installed or upgraded from it. What is
installed from it stays, and the catalog is still read.`
	enableHelp = "Offers a catalog again that chandler catalog disable, or an OperatorHub, has switched off."
)

func (a *app) catalogAddCommand() *cobra.Command {
	var in model.AddCatalog
	var flags sources.Flags
	var strict bool
	c := &cobra.Command{
		Use:   "add NAME (--directory | --archive | --git | --image | --template | --layout | --grpc | --configmap | --sqlite) PLACE",
		Short: "Offer a catalog to the fleet, or to one namespace of one cluster",
		Long: `Offers a catalog from the one place that is named: the indexer reads it at once, and again as often as --poll says.
Without --cluster it is a catalog of the whole fleet; with --cluster and -n one of that namespace. Places are read by
the indexer: a directory or file is one of its machine. Credentials are named with --secret; they may come later, until
then the catalog says what is missing.`,
		Example: `  chandler catalog add examples --directory /srv/catalogs/examples --priority 10
  chandler catalog add fleet --image registry.example.test/fleet:v1 --secret dock-pull --poll 30m
  chandler catalog add own --git https://git.example.test/catalog.git --reference main --secret git-bot`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name, in.Display = args[0], flags.Display()
			var err error
			if in.Source, err = flags.Source(); err != nil {
				return badFlags(err)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			validate := model.ValidateDefault
			if strict {
				validate = model.ValidateStrict
			}
			out, err := c.AddCatalog(cmd.Context(), in, validate)
			if err != nil {
				return err
			}
			return a.say("catalog/%s added", catalogRef(out))
		},
	}
	flags.Register(c)
	f := c.Flags()
	f.Int32Var(&in.Priority, "priority", 0, "higher is preferred")
	f.StringVar(&in.Cluster, "cluster", "", "offer it on this cluster only, with -n")
	f.StringVarP(&in.Namespace, "namespace", "n", "", "namespace of a cluster's catalog")
	f.StringVar(&in.Visibility, "visibility", "", "of a cluster's catalog: cluster (the whole one) or namespace; without it, as the gateway's setting global-catalog-namespaces says")
	f.BoolVar(&in.Disabled, "disabled", false, "keep it and do not offer it yet")
	f.BoolVar(&strict, "strict", false, "refuse secrets that are not known yet")
	return c
}

// onCatalog makes of a command with its texts one that does one thing with one catalog.
func (a *app) onCatalog(texts cobra.Command, do func(ctx context.Context, c *client.Client, r client.Ref) error) *cobra.Command {
	texts.Use += " NAME"
	texts.Args = needs(1)
	texts.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := a.catalogs().ref(scope{}, args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, ref)
	}
	return &texts
}

func (a *app) catalogRefreshCommand() *cobra.Command {
	return a.onCatalog(cobra.Command{
		Use: "refresh", Short: "Have the indexer look at the source now",
		Long: `Has the indexer look at the source of a catalog at once, and not when its next poll is due. What came of it is shown by
chandler describe catalog. A catalog of a namespace is named cluster/namespace/name.`,
		Example: `  chandler catalog refresh fleet
  chandler catalog refresh east-1/ports/own`,
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if _, err := c.RefreshCatalog(ctx, r); err != nil {
			return err
		}
		return a.say("catalog/%s is being looked at", r)
	})
}

func (a *app) catalogSwitchCommand(use, short, long string, disabled bool) *cobra.Command {
	return a.onCatalog(cobra.Command{Use: use, Short: short, Long: long, Example: "  chandler catalog " + use + " fleet"}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if _, err := c.PatchCatalog(ctx, r, map[string]any{"disabled": disabled}); err != nil {
			return err
		}
		return a.say("catalog/%s %sd", r, use)
	})
}

func (a *app) catalogRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Offer a catalog no longer; what is installed from it stays", Args: needs(1),
		Long: `Ends a catalog for good. What is installed from it stays and is kept up; subscriptions to it say that their catalog is
missing. A catalog of a namespace is named cluster/namespace/name.`,
		Example: `  chandler catalog remove fleet
  chandler catalog remove east-1/ports/own`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.remove(cmd.Context(), a.catalogs(), args[0]) },
	}
}

func (a *app) packagesCommand() *cobra.Command {
	var o output
	c := a.onCatalog(cobra.Command{
		Use: "packages", Short: "Show what a catalog offers",
		Long:    "Lists the packages of the revision that a catalog serves. chandler describe package tells all of one.",
		Example: "  chandler catalog packages fleet -o wide",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if err := o.check(); err != nil {
			return err
		}
		list, err := c.Packages(ctx, r)
		items, err := all(list, err, func(p model.PackageSummary) item {
			return item{name: "package/" + p.Name, value: p, cells: []any{p.Name, p.DefaultChannel, p.Channels, p.Bundles, or(p.Deprecated, none), short(p.Digest)}}
		})
		if err != nil {
			return err
		}
		columns := []column{{name: "Name"}, {name: "Default Channel"}, {name: "Channels"}, {name: "Bundles"}, {name: "Deprecated", wide: true}, {name: "Digest", wide: true}}
		return a.show(o, resource{names: []string{"package", "packages"}, columns: columns}, items, false)
	})
	o.flags(c)
	return c
}

func (a *app) findingsCommand() *cobra.Command {
	var o output
	var variant, severity, pkg string
	c := a.onCatalog(cobra.Command{
		Use: "findings", Short: "Show what was wrong with a catalog at the last look",
		Long: `Lists what was wrong when the indexer last read the catalog: rule, package, place and how to mend it. An error keeps
what it names from being served, a warning does not. chandler rules explains a rule.`,
		Example: "  chandler catalog findings fleet --severity error --package tidegauge",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if err := o.check(); err != nil {
			return err
		}
		list, err := c.Findings(ctx, r, variant, severity, pkg)
		items, err := all(list, err, func(f model.Finding) item {
			return item{name: "finding/" + f.Rule, value: f, cells: []any{f.Severity, f.Rule, or(f.Package, none), or(findingPlace(f), none), f.Message}}
		})
		if err != nil {
			return err
		}
		columns := []column{{name: "Severity"}, {name: "Rule"}, {name: "Package"}, {name: "Place"}, {name: "Message"}}
		if err := a.show(o, resource{names: []string{"finding", "findings"}, columns: columns}, items, false); err != nil || o.machine() {
			return err
		}
		named := make([]string, len(list))
		for i, f := range list {
			named[i] = f.Rule
		}
		return a.hint(named)
	})
	o.flags(c)
	c.Flags().StringVar(&variant, "variant", "", "Kubernetes minor version of a templated catalog")
	c.Flags().StringVar(&severity, "severity", "", "error, warning or info")
	c.Flags().StringVar(&pkg, "package", "", "only of this package")
	return c
}

func findingPlace(f model.Finding) string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
}

// catalog writes everything about a catalog: what was said of it, then what the indexer saw.
func (p *page) catalog(c model.Catalog) {
	p.scope(c.Cluster, c.Namespace, c.Name)
	p.metadata(c.Metadata)
	if d := c.Display; d != nil {
		p.line("Display name", d.Name)
		p.line("Publisher", d.Publisher)
		p.line("Description", d.Description)
	}
	p.line("Source", sourceText(c.Source))
	p.line("Secrets", strings.Join(c.Source.Secrets, ", "))
	p.line("Mode", c.Source.Mode)
	p.line("Visible to", or(strings.Trim(c.Visibility.Cluster+"/"+c.Visibility.Namespace, "/"), "all clusters"))
	p.line("Priority", fmt.Sprint(c.Priority))
	if c.Default {
		p.line("Default", "comes with this installation")
	}
	p.line("State", catalogState(c))
	p.line("Reason", c.Reason)
	p.line("Rule", c.Rule)
	p.line("Revision", c.Revision)
	p.line("Packages", fmt.Sprint(c.Packages))
	p.line("Bundles", fmt.Sprint(c.Bundles))
	p.when("Added", c.AddedAt)
	for _, v := range c.Variants {
		p.variant(v)
	}
	p.conditions(c.Conditions)
	p.document("Findings", c.Details)
}

func (p *page) variant(v model.CatalogVariant) {
	if v.Variant != "" {
		p.section("Kubernetes " + v.Variant)
	} else {
		p.section("Last look")
	}
	line := func(name, value string) {
		if value != "" {
			p.row(name+":", value)
		}
	}
	line("Reference", v.Reference)
	line("Resolved", v.Resolved)
	line("Revision", v.Revision)
	line("Connection", v.Connection)
	if v.PolledAt != nil {
		line("Polled", p.age(*v.PolledAt)+" ago")
	}
	if v.NextAt != nil {
		line("Next poll", v.NextAt.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	line("Message", v.Message)
	line("Error", strings.TrimSpace(v.ErrorReason+" "+v.Error))
	line("Quarantined", strings.Join(v.Quarantined, ", "))
	if v.Errors+v.Warnings+v.Infos > 0 {
		line("Findings", fmt.Sprintf("%d errors, %d warnings, %d infos (chandler catalog findings)", v.Errors, v.Warnings, v.Infos))
	}
}

// addCatalogTools puts the commands for authors beside those that ask Chandler, and what a catalog at hand
// holds below "catalog list".
func (a *app) addCatalogTools(parent *cobra.Command) {
	const groupAsk, groupTools = "ask", "tools"
	parent.AddGroup(&cobra.Group{ID: groupAsk, Title: "Catalogs of the fleet:"}, &cobra.Group{ID: groupTools, Title: "Writing and curating catalogs, without a server:"})
	for _, c := range parent.Commands() {
		c.GroupID = groupAsk
		if c.Name() == "list" {
			c.AddCommand(author.ListCommands(a.authorEnv())...)
		}
	}
	for _, c := range author.Commands(a.authorEnv()) {
		c.GroupID = groupTools
		parent.AddCommand(c)
	}
}

func (a *app) authorEnv() author.Env {
	return author.Env{In: a.In, Out: a.Out, Err: a.Err, Lookup: a.Env}
}
