package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// shownChanges is how many single changes of one kind are listed: what is more stands in -o json.
const shownChanges = 20

// changes says what the replacements of a plan change, for who approves it.
func (p *page) changes(all []model.Upgrade) {
	if len(all) == 0 {
		return
	}
	p.section("What it changes")
	for _, u := range all {
		p.row("UPGRADE", u.From+" -> "+u.To, changeSummary(u))
		for _, line := range limited(crdLines(u.CRDs)) {
			p.row("", "", line)
		}
		for _, line := range limited(rightLines(u.Gained)) {
			p.row("", "", "may newly "+line)
		}
	}
}

func changeSummary(u model.Upgrade) string {
	switch {
	case u.State == model.UpgradePending:
		return "not compared yet; look again in a moment"
	case u.State == model.UpgradeUnknown:
		return "unknown: the manifests of one of the two are not at hand"
	case u.Problem != "":
		return "cannot be compared: " + u.Problem
	case u.Empty():
		return "the same custom resource definitions and rights"
	}
	out := fmt.Sprintf("custom resource definitions that differ: %d, rights gained: %d, lost: %d", len(u.CRDs), len(u.Gained), len(u.Lost))
	if u.Breaking {
		out = "BREAKING: existing resources can become invalid or unreachable; " + out
	}
	return out
}

func crdLines(crds []compare.CRD) []string {
	var out []string
	for i := range crds {
		c := &crds[i]
		if c.Change != compare.Changed {
			out = append(out, c.Name+" is "+c.Change)
			continue
		}
		add := func(format string, args ...any) { out = append(out, c.Name+": "+fmt.Sprintf(format, args...)) }
		if c.Scope != nil {
			add("scope %s becomes %s", c.Scope.From, c.Scope.To)
		}
		if c.Storage != nil {
			add("stored version %s becomes %s", c.Storage.From, c.Storage.To)
		}
		if len(c.ServedRemoved) > 0 {
			add("no longer serves %s", strings.Join(c.ServedRemoved, ", "))
		}
		if len(c.VersionsAdded) > 0 {
			add("new versions %s", strings.Join(c.VersionsAdded, ", "))
		}
		for _, s := range c.Schema {
			add("%s %s %s", s.Version, or(s.Path, "(whole)"), narrowing(s))
		}
		if c.More > 0 {
			add("and %d more", c.More)
		}
	}
	return out
}

func narrowing(s compare.SchemaChange) string {
	switch {
	case s.From != "" && s.To != "":
		return fmt.Sprintf("%s: %s becomes %s", s.Kind, s.From, s.To)
	case s.From != "":
		return fmt.Sprintf("%s: %s", s.Kind, s.From)
	case s.To != "":
		return fmt.Sprintf("%s: %s", s.Kind, s.To)
	default:
		return string(s.Kind)
	}
}

func rightLines(rights []compare.Right) []string {
	out := make([]string, 0, len(rights))
	for _, r := range rights {
		what := r.URL
		if what == "" {
			what = strings.TrimSuffix(r.Resource+"."+r.Group, ".")
		}
		if r.Name != "" {
			what += " " + r.Name
		}
		where := "in its namespaces"
		if r.Scope == compare.ScopeCluster {
			where = "in the whole cluster"
		}
		line := strings.Join(r.Verbs, ", ") + " " + what + " " + where
		if r.Sensitive != "" {
			line += " (" + r.Sensitive + ")"
		}
		out = append(out, line)
	}
	return out
}

// limited keeps the first lines and counts the others.
func limited(lines []string) []string {
	if len(lines) <= shownChanges {
		return lines
	}
	return append(lines[:shownChanges:shownChanges], fmt.Sprintf("… and %d more; see -o json", len(lines)-shownChanges))
}

// revisionsCommand shows what a catalog has served and what changed each time.
func (a *app) revisionsCommand() *cobra.Command {
	var o output
	c := a.onCatalog(cobra.Command{
		Use: "revisions", Short: "Show what a catalog has served, newest first, and what changed each time",
		Long: `Lists the stored revisions of a catalog. Their digests are what chandler plan --what-if and chandler shadow take with
--revision. Mutated are bundles whose content changed under the same name: what is installed of those stays as it is.`,
		Example: "  chandler catalog revisions fleet",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if err := o.check(); err != nil {
			return err
		}
		list, err := c.Revisions(ctx, r)
		items, err := all(list, err, func(v model.Revision) item {
			return item{name: "revision/" + short(v.Revision), value: v, cells: []any{
				short(v.Revision), or(v.Variant, none), a.age(v.Created), v.Packages, v.Bundles, or(changesText(v.Changes), none), or(strings.Join(mutated(v.Changes), ", "), none),
			}}
		})
		if err != nil {
			return err
		}
		columns := []column{
			{name: "Revision"}, {name: "Kubernetes"}, {name: "Age"}, {name: "Packages"}, {name: "Bundles"}, {name: "Changes"}, {name: "Mutated"},
		}
		return a.show(o, resource{names: []string{"revision", "revisions"}, columns: columns}, items, false)
	})
	o.flags(c)
	return c
}

// blobsCommand shows documents that Chandler has no meaning for (R-CAT-8); with --raw it writes their bytes.
func (a *app) blobsCommand() *cobra.Command {
	var o output
	var schema, pkg, name string
	var raw bool
	c := a.onCatalog(cobra.Command{
		Use: "blobs", Short: "Show the documents of a catalog whose schemas Chandler does not know",
		Long: `Lists the documents that Chandler keeps of a catalog without giving them a meaning, such as those of other tools; with
--raw it writes them as they are.`,
		Example: "  chandler catalog blobs fleet --schema example.test/notes --raw",
	}, func(ctx context.Context, c *client.Client, r client.Ref) error {
		if err := o.check(); err != nil {
			return err
		}
		list, err := c.Blobs(ctx, r, schema, pkg, name)
		if err == nil && raw {
			return a.rawBlobs(list)
		}
		items, err := all(list, err, func(b model.Blob) item {
			return item{name: "blob/" + short(b.Digest), value: b, cells: []any{b.Schema, or(b.Package, none), or(b.Name, none), len(b.Body), short(b.Digest)}}
		})
		if err != nil {
			return err
		}
		columns := []column{{name: "Schema"}, {name: "Package"}, {name: "Name"}, {name: "Bytes"}, {name: "Digest"}}
		return a.show(o, resource{names: []string{"blob", "blobs"}, columns: columns}, items, false)
	})
	o.flags(c)
	c.Flags().StringVar(&schema, "schema", "", "only of this schema")
	c.Flags().StringVar(&pkg, "package", "", "only of this package")
	c.Flags().StringVar(&name, "name", "", "only of this name")
	c.Flags().BoolVar(&raw, "raw", false, "write the documents themselves, byte for byte, each on lines of its own")
	return c
}

func (a *app) rawBlobs(list []model.Blob) error {
	for _, b := range list {
		if _, err := fmt.Fprintf(a.Out, "%s\n", b.Body); err != nil {
			return fmt.Errorf("write a blob of schema %s: %w", b.Schema, err)
		}
	}
	return nil
}

// maxNamedChanges bounds the packages that a line names; -o json has them all.
const maxNamedChanges = 4

// changesText says in one line what a revision changed.
func changesText(all []model.RevisionChange) string {
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
		parts = append(parts, fmt.Sprintf("%s: %s to %s", h.Channel, or(h.From, none), or(h.To, none)))
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
	return or(strings.Join(parts, ", "), c.Change)
}

// mutated names the bundles that have other content than before under the same name.
func mutated(all []model.RevisionChange) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.BundlesMutated...)
	}
	slices.Sort(names)
	return names
}

// lastRevision says what the newest revision changed.
func (p *page) lastRevision(v model.Revision) {
	p.section("Last revision")
	p.row("Revision:", v.Revision)
	p.row("Served since:", p.age(v.Created)+" ago")
	for _, c := range v.Changes {
		p.row(c.Package+":", changeText(c))
	}
	if names := mutated(v.Changes); len(names) > 0 {
		p.row("Mutated:", strings.Join(names, ", ")+" (other content under the same name, which is never installed again)")
	}
}

// operatorDetails shows what the cluster says of an operator: what is unmet of its requirements, not all of them.
func (p *page) operatorDetails(d model.OperatorDetails) {
	if c := d.Condition; c != nil {
		word := "yes"
		if !c.Upgradeable {
			word = "no"
		}
		if c.Overridden {
			word += ", as an administrator decided"
		}
		p.line("Upgradeable", strings.Join(slices.DeleteFunc([]string{word, c.Reason, c.Message}, func(s string) bool { return s == "" }), ": "))
	}
	p.unmet(d.Requirements)
	if len(d.NotReady) > 0 {
		p.section("Deployments that are not ready")
		for _, n := range d.NotReady {
			p.row(n.Deployment, or(n.Reason, none), or(n.Message, "not known yet"))
		}
	}
	if len(d.Drift) > 0 {
		p.section("Drift")
		for _, x := range d.Drift {
			p.drift(x)
		}
	}
	p.removedAPIs(d.RemovedAPIs)
	if len(d.Components) > 0 {
		p.section("Components")
		p.row("KIND", "NAMESPACE", "NAME", "STATUS", "MESSAGE")
		for _, c := range d.Components {
			p.row(c.Kind, or(c.Namespace, none), c.Name, or(c.Status, none), c.Message)
		}
	}
	if d.LeftOut != nil {
		p.section("Not listed, since the cluster's report would not fit into a message")
		p.row(leftOutText(*d.LeftOut))
	}
}

// unmet shows the requirements that are not met.
func (p *page) unmet(all []model.Requirement) {
	list := slices.DeleteFunc(slices.Clone(all), func(r model.Requirement) bool { return r.Status == "Present" })
	if len(list) == 0 {
		return
	}
	p.section("Requirements that are not met")
	for _, r := range list {
		p.row(r.Kind, r.Name, r.Status, r.Message)
		for _, n := range r.Dependents {
			if n.Status != "Satisfied" {
				p.row("", n.Kind, n.Status, n.Message)
			}
		}
	}
}

// leftOutText counts what a report went without.
func leftOutText(c protocol.Cut) string {
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{
		{c.Components, "component"},
		{c.Drifts, "drifted object"},
		{c.Fields, "difference"},
		{c.Requirements, "requirement"},
		{c.Messages, "text"},
		{c.History, "transition"},
	} {
		if part.n > 0 {
			parts = append(parts, plural(part.n, part.word))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *page) drift(x protocol.Drift) {
	what := "differs"
	switch {
	case x.Missing:
		what = "is missing"
	case x.Corrected:
		what = "was put right"
	}
	if x.Manager != "" {
		what += ", written by " + x.Manager
	}
	p.row(x.String(), what)
	if x.Reason != "" {
		p.row("", "", x.Reason)
	}
	for _, f := range x.Fields {
		p.row("", f.Path, "want "+or(string(f.Want), none)+", have "+or(string(f.Have), none))
	}
}

// removedHeading stands above APIs that the next version drops.
const removedHeading = "Not served any more after the next upgrade of Kubernetes:"

// removedKind is a kind as kubectl explain's --api-version has it.
func removedKind(r model.RemovedAPI) string {
	return strings.TrimPrefix(r.Group+"/"+r.Version, "/") + " " + r.Kind
}

// removedAPIs warns of APIs that the next version drops (R-CSV-61).
func (p *page) removedAPIs(list []model.RemovedAPI) {
	if len(list) == 0 {
		return
	}
	p.section(strings.TrimSuffix(removedHeading, ":"))
	for _, r := range list {
		p.row(removedKind(r), "gone in "+r.Removed, r.For)
	}
}

// removed warns of APIs that the next version drops (R-CSV-61).
func (t *prose) removed(list []model.RemovedAPI) {
	if len(list) == 0 {
		return
	}
	t.heading(removedHeading)
	for _, r := range list {
		t.put("  - ", fmt.Sprintf("%s, gone in %s, for %s", removedKind(r), r.Removed, r.For))
	}
}
