package objects

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/cmd/chandler/preview"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxDeletions is how many objects --prune deletes unless it is told otherwise: as many as people take in at a glance
// and mean to delete in one change. A wrong folder or selector would end far more.
const maxDeletions = 5

// pruneOptions say what apply deletes.
type pruneOptions struct {
	on       bool
	selector string
	most     int
	yes      bool
}

func (p *pruneOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&p.on, "prune", false, "delete what the files do not have any more; needs --selector")
	f.StringVarP(&p.selector, "selector", "l", "",
		"apply documents with these labels only, and prune objects with them only; as kubectl's, such as app=x,tier!=y")
	f.IntVar(&p.most, "max-deletions", maxDeletions, "refuse everything if --prune would delete more objects")
	f.BoolVar(&p.yes, "yes", false, "do not ask before --prune deletes anything")
}

func (p *pruneOptions) check(dry command.DryRun) error {
	switch {
	case !p.on && (p.yes || p.most != maxDeletions):
		return command.Usagef("--yes and --max-deletions go with --prune: give it, too")
	case p.on && p.selector == "":
		return command.Usagef("--prune needs --selector: it deletes objects with these labels only")
	case p.most < 0:
		return command.Usagef("--max-deletions %d is negative; 0 deletes nothing", p.most)
	case p.on && dry == command.DryRunClient:
		return command.Usagef("what --prune deletes is known to the server alone: use --dry-run=server")
	}
	if _, err := labels.Parse(p.selector); err != nil {
		return command.Usagef("--selector %q is no label selector: %w", p.selector, err)
	}
	return nil
}

// choose leaves out documents that --selector does not match, as kubectl does, and names them.
func (p *pruneOptions) choose(a *command.Env, all []olm.Document) ([]olm.Document, error) {
	if p.selector == "" {
		return all, nil
	}
	selector, err := labels.Parse(p.selector)
	if err != nil {
		return nil, err
	}
	var chosen []olm.Document
	for _, d := range all {
		if selector.Matches(labels.Set(d.Metadata.Labels)) {
			chosen = append(chosen, d)
		} else if _, err := fmt.Fprintf(a.Err, "note: %s %s does not match --selector and is not applied\n", d.Kind,
			plain.Text(d.Name)); err != nil {
			return nil, err
		}
	}
	if len(chosen) == 0 {
		return nil, command.Refusedf("no document matches --selector %s: nothing is applied and nothing pruned",
			p.selector)
	}
	return chosen, nil
}

// pruned is an object that is to go.
type pruned struct {
	kind kinds.Kind
	ref  client.Ref
}

func (p pruned) String() string { return p.kind.Singular() + "/" + p.ref.String() }

// find looks for what is there and in no document: of the kinds and on the clusters that the documents name, with the
// labels of the selector. What any document names stays, also one that the selector leaves out.
func (p *pruneOptions) find(
	ctx context.Context, c *client.Client, o documents.Options, all []olm.Document,
) ([]pruned, error) {
	if !p.on {
		return nil, nil
	}
	named, places := map[string]bool{}, [][2]string{} // kind, cluster
	for _, d := range all {
		kind := prunedKind(d)
		if kind == "" {
			continue
		}
		clusters := []string{""}
		if !d.Fleet() {
			clusters = d.On(o.Clusters)
		}
		for _, cluster := range clusters {
			ref := client.Ref{Cluster: cluster, Namespace: d.Namespace, Name: d.Name}
			if cluster == "" {
				ref.Namespace = ""
			}
			named[kind+"/"+ref.String()] = true
			if at := [2]string{kind, cluster}; !slices.Contains(places, at) {
				places = append(places, at)
			}
		}
	}
	var gone []pruned
	for _, at := range places {
		found, err := p.list(ctx, c, at[0], client.Selection{Cluster: at[1], Namespace: o.Namespace, Label: p.selector})
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if !named[f.String()] {
				gone = append(gone, f)
			}
		}
	}
	return gone, nil
}

// prunedKind is the kind of a document whose objects have labels and are nobody else's; "" for others.
func prunedKind(d olm.Document) string {
	switch {
	case d.Subscription != nil:
		return kinds.KindSubscription
	case d.OperatorGroup != nil:
		return kindGroup
	case d.Catalog != nil:
		return kindCatalog
	case d.Policy != nil:
		return kindPolicy
	}
	return ""
}

// list lists what the selector chooses of a kind on one cluster, or of the fleet itself.
func (p *pruneOptions) list(ctx context.Context, c *client.Client, kind string, s client.Selection) ([]pruned, error) {
	var out []pruned
	add := func(cluster, namespace, name string) {
		if cluster == s.Cluster { // a list of a cluster's catalogs has those of the fleet, too
			ref := client.Ref{Cluster: cluster, Namespace: namespace, Name: name}
			out = append(out, pruned{kind: p.kind(kind), ref: ref})
		}
	}
	var err error
	switch kind {
	case kinds.KindSubscription:
		var list []model.Subscription
		list, err = c.Subscriptions(ctx, s)
		for _, x := range list {
			if !x.Generated && x.Owner == "" { // they are the resolver's, or the fleet's
				add(x.Cluster, x.Namespace, x.Name)
			}
		}
	case kindGroup:
		var list []model.OperatorGroup
		list, err = c.OperatorGroups(ctx, s)
		for _, x := range list {
			add(x.Cluster, x.Namespace, x.Name)
		}
	case kindCatalog:
		var list []model.Catalog
		list, err = c.Catalogs(ctx, client.Selection{Cluster: s.Cluster, Label: s.Label})
		for _, x := range list {
			if s.Cluster == "" || s.Namespace == "" || x.Namespace == s.Namespace {
				add(x.Cluster, x.Namespace, x.Name)
			}
		}
	default:
		var list []model.ApprovalPolicy
		list, err = c.ApprovalPolicies(ctx, client.Selection{Label: s.Label})
		for _, x := range list {
			add("", "", x.Name)
		}
	}
	return out, err
}

func (p *pruneOptions) kind(name string) kinds.Kind {
	k, _ := kinds.Find(&command.Env{}, name) // it is one of four that are known
	return k
}

// bound refuses to delete more than was allowed for.
func (p *pruneOptions) bound(gone []pruned) error {
	if len(gone) <= p.most {
		return nil
	}
	return command.Refusedf("--prune would delete %s, and --max-deletions is %d: nothing is applied and nothing deleted",
		printer.Plural(len(gone), "object"), p.most)
}

// agree shows what would go, and asks.
func (p *pruneOptions) agree(a *command.Env, gone []pruned) error {
	for _, g := range gone {
		if _, err := fmt.Fprintf(a.Err, "%s is in no file, and would be deleted\n", g); err != nil {
			return err
		}
	}
	if err := p.bound(gone); err != nil || len(gone) == 0 || p.yes {
		return err
	}
	return a.Confirm("Apply the files and delete them?", printer.Plural(len(gone), "object")+" would be deleted",
		"--yes")
}

// notPruned adds to the error of what could not be applied that nothing was deleted.
func notPruned(gone []pruned, err error) error {
	if len(gone) == 0 {
		return err
	}
	return fmt.Errorf("%w; nothing was pruned", err)
}

// remove deletes what was agreed to. Labels may have been changed meanwhile: they are looked at once more.
func (p *pruneOptions) remove(ctx context.Context, a *command.Env, c *client.Client, gone []pruned) error {
	for _, g := range gone {
		still, err := p.list(ctx, c, g.kind.Singular(),
			client.Selection{Cluster: g.ref.Cluster, Namespace: g.ref.Namespace, Label: p.selector})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(still, func(x pruned) bool { return x.ref == g.ref }) {
			continue
		}
		if _, err := g.kind.Remove(ctx, c, g.ref); err != nil && !client.IsStatus(err, http.StatusNotFound) {
			return fmt.Errorf("%s: %w", g, err)
		}
		if err := a.Say("%s pruned", g); err != nil {
			return err
		}
	}
	return nil
}

// preview says what would be deleted, and returns it as changes to be previewed.
func (p *pruneOptions) preview(a *command.Env, gone []pruned) ([]model.PreviewChange, error) {
	var changes []model.PreviewChange
	for _, g := range gone {
		if err := a.Say("%s pruned%s", g, command.DryRunServer.Note()); err != nil {
			return nil, err
		}
		change, err := preview.Removed(g.kind.Singular(), g.ref.Cluster, g.ref.Namespace, g.ref.Name)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}
