package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

func (a *app) getCommand() *cobra.Command {
	var s scope
	var o output
	var sel client.Selection
	var everywhere bool
	c := &cobra.Command{
		Use:   "get KIND [NAME...]",
		Short: "Show clusters, catalogs, packages, subscriptions, operatorgroups, installplans, operators, leftovers or approvalpolicies",
		Long: `Shows things of one kind: all of the fleet, or those of a cluster, a namespace, or a name. Without --namespace
they are those of all namespaces; -A says so, as kubectl has it.

Kinds and their short names: clusters, catalogs (catsrc), packages (packagemanifests), operatorgroups (og),
subscriptions (sub), installplans (ip), operators (csv), approvalpolicies (policies), leftovers (what uninstalled
operators left in their clusters), operatorhubs (the one that switches default catalogs).

What -o yaml and -o json write of subscriptions, operatorgroups, catalogs, installplans, approvalpolicies and
operatorhubs can be applied again: chandler apply -f.`,
		Example: `  chandler get subscriptions
  chandler get csv --cluster east-1 -n ports -o wide
  chandler get csv --cluster east-1 -A
  chandler get clusters --state Unreachable
  chandler get installplans --phase RequiresApproval --cluster east-1
  chandler get operators --cluster east-1 --serves harbor
  chandler get installplan east-1/ports/install-7x2kq -o yaml`,
		Args: needs(many),
		RunE: func(cmd *cobra.Command, args []string) error {
			if everywhere {
				if err := s.everywhere(args); err != nil {
					return err
				}
			}
			return a.get(cmd.Context(), s, sel, o, args)
		},
	}
	s.flags(c)
	o.flags(c)
	f := c.Flags()
	f.BoolVarP(&everywhere, "all-namespaces", "A", false, "those of all namespaces, which is so without --namespace, too")
	f.StringVar(&sel.Package, flagPackage, "", "only subscriptions or operators of this package")
	f.StringVar(&sel.Catalog, flagCatalog, "", "only subscriptions of this catalog")
	f.StringVar(&sel.Phase, flagPhase, "", "only subscriptions, install plans or operators in this phase")
	f.StringVar(&sel.State, flagState, "", "only clusters, catalogs or subscriptions in this state")
	f.StringVarP(&sel.Label, flagLabel, "l", "", "only those with this label: KEY=VALUE, or KEY")
	f.StringVar(&sel.Blocked, flagBlocked, "", "only install plans that are blocked, or with =false that are not")
	f.Lookup(flagBlocked).NoOptDefVal = "true"
	f.StringVar(&sel.Serves, flagServes, "", "only operators that serve this namespace")
	return c
}

// everywhere refuses what cannot be said together with --all-namespaces: a namespace, and names (args are a kind with
// names).
func (s *scope) everywhere(args []string) error {
	if s.namespace != "" {
		return usagef("either --namespace or --all-namespaces, not both")
	}
	if len(args) > 1 || strings.Contains(args[0], "/") {
		return usagef("a name is not looked for in all namespaces: say --namespace, or leave out the name")
	}
	return nil
}

// Flags of get that choose among things of a kind; each kind names its own.
const (
	flagCluster   = "cluster"
	flagNamespace = "namespace"
	flagPackage   = "package"
	flagCatalog   = "catalog"
	flagPhase     = "phase"
	flagState     = "state"
	flagLabel     = "label"
	flagBlocked   = "blocked"
	flagServes    = "serves"
)

// chosen checks that a kind can be chosen by what was said: a flag that chose nothing would look as if it did.
func (r resource) chosen(s client.Selection) error {
	for _, f := range []struct{ flag, value string }{
		{flagCluster, s.Cluster},
		{flagNamespace, s.Namespace},
		{flagPackage, s.Package},
		{flagCatalog, s.Catalog},
		{flagPhase, s.Phase},
		{flagState, s.State},
		{flagLabel, s.Label},
		{flagBlocked, s.Blocked},
		{flagServes, s.Serves},
	} {
		if f.value == "" || slices.Contains(r.filters, f.flag) {
			continue
		}
		if len(r.filters) == 0 {
			return usagef("%s cannot be chosen by --%s: they are all listed", r.names[1], f.flag)
		}
		return usagef("%s cannot be chosen by --%s: want --%s", r.names[1], f.flag, strings.Join(r.filters, ", --"))
	}
	return nil
}

func (a *app) get(ctx context.Context, s scope, sel client.Selection, o output, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	t, err := a.target(s, args)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if len(t.refs) == 0 {
		sel.Cluster, sel.Namespace = s.cluster, s.namespace
		if err := t.resource.chosen(sel); err != nil {
			return err
		}
		items, err := t.resource.list(ctx, c, sel)
		if err == nil && len(items) == 0 && s.cluster != "" {
			err = isCluster(ctx, c, s.cluster)
		}
		if err == nil && o.document() {
			items, err = t.resource.wholly(ctx, c, items)
		}
		if err != nil {
			return err
		}
		return a.show(o, t.resource, items, false)
	}
	if sel != (client.Selection{}) {
		return usagef("either names or flags that choose among %s, not both", t.resource.names[1])
	}
	var items []item
	for _, ref := range t.refs {
		it, err := t.resource.get(ctx, c, ref)
		if err != nil {
			return orNoCluster(ctx, c, ref.Cluster, err)
		}
		items = append(items, it)
	}
	return a.show(o, t.resource, items, len(items) == 1)
}

// wholly reads each item by itself where a list leaves out parts of it that a document must have.
func (r resource) wholly(ctx context.Context, c *client.Client, items []item) ([]item, error) {
	if !r.partial {
		return items, nil
	}
	whole := make([]item, 0, len(items))
	for _, it := range items {
		_, key, _ := strings.Cut(it.name, "/")
		ref, err := r.ref(scope{}, key)
		if err != nil {
			return nil, err
		}
		it, err := r.get(ctx, c, ref)
		if client.IsStatus(err, http.StatusNotFound) {
			continue // gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		whole = append(whole, it)
	}
	return whole, nil
}

// show writes items, and for an empty table says so where a person reads it but no program.
func (a *app) show(o output, r resource, items []item, single bool) error {
	if len(items) == 0 && (o.format == formatTable || o.format == formatWide) {
		_, err := fmt.Fprintf(a.Err, "No %s found.\n", r.names[1])
		return err
	}
	for i := range items {
		items[i].kind = r.kind
	}
	if len(items) == 0 && r.kind != "" && o.document() { // a List that chandler apply reads, as one with items is
		return o.write(a.Out, r.columns, []item{{value: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{}}}}, true)
	}
	return o.write(a.Out, r.columns, items, single)
}

type deleteOptions struct {
	applyOptions
	ignoreMissing bool
}

func (a *app) deleteCommand() *cobra.Command {
	var o deleteOptions
	c := &cobra.Command{
		Use:   "delete (KIND NAME... | -f FILE)",
		Short: "End subscriptions, operator groups, catalogs, approval policies and clusters; installed operators stay",
		Long: `Ends things of one kind by name, or what files say, as chandler apply reads them.

Kinds and their short names: clusters, catalogs (catsrc), operatorgroups (og), subscriptions (sub), approvalpolicies
(policies). Operators that are installed stay, on clusters that are let go of, too: chandler uninstall removes them.`,
		Example: `  chandler delete subscription harbor-master --cluster east-1 -n ports
  chandler delete -f subscription.yaml --cluster east-1`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.delete(cmd.Context(), o, args) },
	}
	fileFlags(c, &o.files, &o.clusters, &o.namespace)
	c.Flags().BoolVar(&o.ignoreMissing, "ignore-not-found", false, "what is not there is no error")
	return c
}

func (a *app) delete(ctx context.Context, o deleteOptions, args []string) error {
	targets, err := a.deleteTargets(o, args)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if err := isCluster(ctx, c, o.clusters...); err != nil {
		return err
	}
	var wrong []error
	for _, t := range targets {
		for _, ref := range t.refs {
			wrong = append(wrong, a.deleteOne(ctx, c, t.resource, ref, o.ignoreMissing))
		}
	}
	return errors.Join(wrong...)
}

func (a *app) deleteTargets(o deleteOptions, args []string) ([]target, error) {
	if len(o.files) > 0 {
		if len(args) > 0 {
			return nil, usagef("either -f or names, not both")
		}
		return a.fileTargets(o.applyOptions)
	}
	if len(args) == 0 {
		return nil, usagef("say what to delete: a kind and names, or -f")
	}
	if len(o.clusters) > 1 {
		return nil, usagef("names are deleted from one cluster at a time")
	}
	s := scope{namespace: o.namespace}
	if len(o.clusters) == 1 {
		s.cluster = o.clusters[0]
	}
	t, err := a.target(s, args)
	if err != nil {
		return nil, err
	}
	if t.resource.remove == nil {
		return nil, usagef("a %s cannot be deleted", t.resource.singular())
	}
	if len(t.refs) == 0 {
		return nil, usagef("which %s? say its name", t.resource.singular())
	}
	return []target{t}, nil
}

func (a *app) fileTargets(o applyOptions) ([]target, error) {
	documents, err := a.documents(o)
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, d := range documents {
		switch {
		case d.Hub != nil:
			return nil, usagef("%s: an OperatorHub cannot be deleted: apply one that switches nothing off", d.Where)
		case d.Plan != nil:
			return nil, usagef("%s: an InstallPlan cannot be deleted: end it with chandler reject", d.Where)
		case d.Secret != nil, d.Skipped != "":
			if _, err := fmt.Fprintf(a.Err, "warning: %s %s is passed over: it is not deleted by a file\n", d.Kind, d.Name); err != nil {
				return nil, err
			}
			continue
		}
		r, err := a.resource(d.Kind)
		if err != nil {
			return nil, err
		}
		t := target{resource: r}
		if d.Fleet() {
			t.refs = []client.Ref{{Name: d.Name}}
		} else {
			for _, cluster := range d.On(o.clusters) {
				t.refs = append(t.refs, client.Ref{Cluster: cluster, Namespace: d.Namespace, Name: d.Name})
			}
		}
		targets = append(targets, t)
	}
	return targets, nil
}

func (a *app) deleteOne(ctx context.Context, c *client.Client, r resource, ref client.Ref, ignoreMissing bool) error {
	name := r.singular() + "/" + ref.String()
	if _, err := r.remove(ctx, c, ref); err != nil {
		if ignoreMissing && client.IsStatus(err, http.StatusNotFound) {
			return nil
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return a.say("%s deleted", name)
}
