package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/plans"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/preview"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Remove removes one object by its name.
func Remove(ctx context.Context, a *command.Env, r kinds.Kind, name string) error {
	ref, err := r.Ref(command.Scope{}, name)
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if _, err := r.Remove(ctx, c, ref); err != nil {
		return r.Named(ctx, c, ref, err)
	}
	return a.Say("%s/%s removed", r.Singular(), ref)
}

type deleteOptions struct {
	documents.Options
	ignoreMissing bool
	dryRun        command.DryRun
}

// DeleteCommand is chandler delete.
func DeleteCommand(a *command.Env) *cobra.Command {
	var o deleteOptions
	c := &cobra.Command{
		Use: "delete (KIND NAME... | -f FILE)",
		Short: "Delete subscriptions, operator groups, catalogs, fleet subscriptions, approval policies, roles, role " +
			"bindings, webhooks and clusters; installed operators stay",
		Long: `Deletes objects of one kind by name, or the objects of files, which are read as by chandler apply.

Kinds and their short names: clusters, catalogs (catsrc), operatorgroups (og), subscriptions (sub), fleetsubscriptions
(fsub), approvalpolicies (policies), roles, rolebindings, webhooks (wh). Installed operators stay, also on deleted
clusters: chandler uninstall removes them.

--dry-run=client says what would be deleted without asking anybody. --dry-run=server, or --dry-run, has the server
make all checks, and shows which install plans would be superseded and what would no longer resolve.`,
		Example: `  chandler delete subscription harbor-master --cluster east-1 -n ports
  chandler delete -f subscription.yaml --cluster east-1
  chandler delete catalog fleet --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error { return deleteObjects(cmd.Context(), a, o, args) },
	}
	documents.Flags(c, &o.Options)
	c.Flags().BoolVar(&o.ignoreMissing, "ignore-not-found", false, "ignore objects that do not exist")
	command.DryRunFlag(c, &o.dryRun, "delete nothing: client says what is named, server makes all checks and shows what would follow",
		command.DryRunClient, command.DryRunServer)
	return c
}

func deleteObjects(ctx context.Context, a *command.Env, o deleteOptions, args []string) error {
	targets, err := deleteTargets(a, o, args)
	if err != nil {
		return err
	}
	if o.dryRun == command.DryRunClient {
		return eachOf(targets, func(r kinds.Kind, ref client.Ref) error {
			return a.Say("%s/%s deleted%s", r.Singular(), ref, o.dryRun.Note())
		})
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if err := command.CheckCluster(ctx, c, o.Clusters...); err != nil {
		return err
	}
	if o.dryRun == command.DryRunServer {
		return tryDelete(ctx, a, c, targets, o)
	}
	return eachOf(targets, func(r kinds.Kind, ref client.Ref) error { return deleteOne(ctx, a, c, r, ref, o) })
}

// eachOf does something with each object; that it fails for one holds up no other.
func eachOf(targets []kinds.Target, do func(r kinds.Kind, ref client.Ref) error) error {
	var wrong []error
	for _, t := range targets {
		for _, ref := range t.Refs {
			wrong = append(wrong, do(t.Kind, ref))
		}
	}
	return errors.Join(wrong...)
}

// tryDelete has the server check what would be deleted: by a preview what leads to plans, the rest by deletions that it
// takes back.
func tryDelete(
	ctx context.Context, a *command.Env, c *client.Client, targets []kinds.Target, o deleteOptions,
) error {
	dry := c.DryRun()
	var changes []model.PreviewChange
	err := eachOf(targets, func(r kinds.Kind, ref client.Ref) error {
		change, err := preview.Removed(r.Singular(), ref.Cluster, ref.Namespace, ref.Name)
		if err != nil { // nothing would be planned after it
			return deleteOne(ctx, a, dry, r, ref, o)
		}
		if _, err := r.Get(ctx, c, ref); err != nil {
			return notThere(ctx, c, r, ref, o, err)
		}
		changes = append(changes, change)
		return a.Say("%s/%s deleted%s", r.Singular(), ref, o.dryRun.Note())
	})
	if len(changes) > 0 {
		err = errors.Join(err, plans.ShowChanges(ctx, a, c, changes))
	}
	return err
}

func deleteTargets(a *command.Env, o deleteOptions, args []string) ([]kinds.Target, error) {
	if len(o.Files) > 0 {
		if len(args) > 0 {
			return nil, command.Usagef("either -f or names, not both")
		}
		return fileTargets(a, o.Options)
	}
	if len(args) == 0 {
		return nil, command.Usagef("nothing to delete: give a kind and names, or -f")
	}
	if len(o.Clusters) > 1 {
		return nil, command.Usagef("names are deleted from one cluster at a time")
	}
	s := command.Scope{Namespace: o.Namespace}
	if len(o.Clusters) == 1 {
		s.Cluster = o.Clusters[0]
	}
	t, err := kinds.ParseTarget(a, s, args)
	if err != nil {
		return nil, err
	}
	if t.Kind.Remove == nil {
		return nil, command.Usagef("%s cannot be deleted", t.Kind.Names[1])
	}
	if len(t.Refs) == 0 {
		return nil, command.Usagef("missing name of the %s", t.Kind.Singular())
	}
	return []kinds.Target{t}, nil
}

func fileTargets(a *command.Env, o documents.Options) ([]kinds.Target, error) {
	documents, err := documents.Read(a, o)
	if err != nil {
		return nil, err
	}
	var targets []kinds.Target
	for _, d := range documents {
		switch {
		case d.Hub != nil:
			return nil, command.Usagef("%s: an OperatorHub cannot be deleted: apply one that switches nothing off",
				d.Where)
		case d.Plan != nil:
			return nil, command.Usagef("%s: an InstallPlan cannot be deleted: end it with chandler reject", d.Where)
		case d.Secret != nil, d.NamespaceLabels != nil, d.CopiedCSVs != "", d.Skipped != "":
			if _, err := fmt.Fprintf(a.Err, "warning: %s %s is skipped: it cannot be deleted by a file\n", d.Kind,
				d.Name); err != nil {
				return nil, err
			}
			continue
		}
		r, err := fileKind(a, d)
		if err != nil {
			return nil, err
		}
		t := kinds.Target{Kind: r}
		if d.Fleet() {
			t.Refs = []client.Ref{{Name: d.Name}}
		} else {
			for _, cluster := range d.On(o.Clusters) {
				t.Refs = append(t.Refs, client.Ref{Cluster: cluster, Namespace: d.Namespace, Name: d.Name})
			}
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// fileKind is the kind of a document. Of an OperatorCondition the overrides are deleted, which are no kind of get.
func fileKind(a *command.Env, d olm.Document) (kinds.Kind, error) {
	if d.Overrides != nil {
		return kinds.OperatorCondition(a), nil
	}
	return kinds.Find(a, d.Kind)
}

func deleteOne(
	ctx context.Context, a *command.Env, c *client.Client, r kinds.Kind, ref client.Ref, o deleteOptions,
) error {
	if _, err := r.Remove(ctx, c, ref); err != nil {
		return notThere(ctx, c, r, ref, o, err)
	}
	return a.Say("%s/%s deleted%s", r.Singular(), ref, o.dryRun.Note())
}

// notThere is the error about an object, unless it says that it is not there and that is ignored.
func notThere(
	ctx context.Context, c *client.Client, r kinds.Kind, ref client.Ref, o deleteOptions, err error,
) error {
	if o.ignoreMissing && client.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	return fmt.Errorf("%s/%s: %w", r.Singular(), ref, r.Named(ctx, c, ref, err))
}
