package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

type applyOptions struct {
	documents.Options
	dryRun  command.DryRun
	wait    bool
	timeout time.Duration
	prune   pruneOptions
}

// ApplyCommand is chandler apply.
func ApplyCommand(a *command.Env) *cobra.Command {
	var o applyOptions
	c := &cobra.Command{
		Use:   "apply -f FILE --cluster CLUSTER",
		Short: "Create or change objects from OLM's YAML",
		Long: `Reads Subscription, OperatorGroup and CatalogSource documents (operators.coreos.com) as YAML or JSON, and creates or
changes them on each of the clusters. A CatalogSource is visible on that cluster only, and only in its namespace
unless that is a global catalog namespace; chandler catalog add adds a catalog for the whole fleet. A document
replaces the labels and annotations of the object: one that it does not name is removed. An OperatorHub
(config.openshift.io) enables and disables default catalogs of the whole fleet. An ApprovalPolicy
(chandler-fleet.io/v1) holds for what its selector selects, a FleetSubscription is an operator for many clusters; a
Role says what is allowed, a RoleBinding to whom and where, a Webhook where events are sent; the secret of a new one
is shown once. None of these needs --cluster.

An InstallPlan with spec.approved: true approves that plan as it is now, like chandler approve. The labels of a
Namespace are kept by the operator group in it, and written before its plans start. A secret that a CatalogSource of
the same call names is stored as a catalog secret. An OLMConfig sets whether the cluster has copies of
ClusterServiceVersions, like chandler cluster set --copied-csvs. The overrides of an OperatorCondition count for the
operator of that name in the place of what it says itself. Other Secrets are skipped with a warning. The output of
chandler get -o yaml or -o json can be applied again, and names its own cluster.

All documents are read and checked before the first one is sent. Several are applied at a time, in this order:
secrets and roles, catalogs and fleet-wide objects, operator groups, subscriptions, install plans. Documents about
the same object are applied in their order.

--dry-run=client reads and checks the files and asks nobody. --dry-run=server, or --dry-run, has the server make all
checks, and shows what would be done and the install plans that would follow; what it refuses is refused without it,
too.

--prune deletes what is not in the files any more: of the kinds and clusters that the files name, the objects whose
labels match --selector. It shows them first, and deletes none if more than --max-deletions would go.

--wait waits until catalogs are ready, the operators of subscriptions are installed at the latest version, and
approved plans are complete.`,
		Example: `  chandler apply -f subscription.yaml --cluster east-1
  cat *.yaml | chandler apply -f - --cluster east-1,west-2 -n ports
  chandler apply -f fleet/ -R --cluster east-1 --dry-run
  chandler apply -f fleet/ --cluster east-1 --prune -l app=harbor --max-deletions 2
  chandler apply -f subscription.yaml --cluster east-1 --wait --timeout 15m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed("timeout")); err != nil {
				return err
			}
			return apply(cmd.Context(), a, o)
		},
	}
	documents.Flags(c, &o.Options)
	command.DryRunFlag(c, &o.dryRun, "change nothing: client checks the files, server shows what would be done and planned",
		command.DryRunClient, command.DryRunServer)
	c.Flags().BoolVar(&o.wait, "wait", false, "wait until what was applied is there")
	c.Flags().DurationVar(&o.timeout, "timeout", waitDefault, "how long --wait waits")
	o.prune.flags(c)
	return c
}

// check refuses flags that say nothing together.
func (o *applyOptions) check(timeout bool) error {
	switch {
	case timeout && !o.wait:
		return command.Usagef("--timeout goes with --wait: give it, too")
	case o.timeout < 0:
		return command.Usagef("--timeout %s is negative; 0 looks once", o.timeout)
	case o.wait && o.dryRun.Asked():
		return command.Usagef("--wait would wait for what --dry-run does not do: give one of them")
	}
	return o.prune.check(o.dryRun)
}

func apply(ctx context.Context, a *command.Env, o applyOptions) error {
	all, err := documents.Read(a, o.Options)
	if err != nil {
		return err
	}
	chosen, err := o.prune.choose(a, all)
	if err != nil {
		return err
	}
	if err := printNotes(a, chosen); err != nil {
		return err
	}
	tasks := tasksOf(o.Options, chosen)
	if o.dryRun == command.DryRunClient {
		return checkedOnly(a, tasks)
	}
	c, err := checkedClient(ctx, a, o.Options, chosen)
	if err != nil {
		return err
	}
	if o.dryRun == command.DryRunServer {
		return tryApply(ctx, a, c, o, tasks, all)
	}
	gone, err := o.prune.find(ctx, c, o.Options, all)
	if err == nil {
		err = o.prune.agree(a, gone)
	}
	if err != nil {
		return err
	}
	results, err := runTasks(ctx, a, c, tasks, "applying", settle)
	if err != nil {
		return notPruned(gone, err)
	}
	if err := o.prune.remove(ctx, a, c, gone); err != nil || !o.wait {
		return err
	}
	return wait(ctx, a, c, waiting{objects: applied(tasks, results), timeout: o.timeout, say: true})
}

// checkedOnly says what was read.
func checkedOnly(a *command.Env, tasks []task) error {
	for _, t := range tasks {
		if err := a.Say("%s read%s", t.name, command.DryRunClient.Note()); err != nil {
			return err
		}
	}
	return nil
}

// checkedClient is the client, once the clusters of the documents are known to it.
func checkedClient(
	ctx context.Context, a *command.Env, o documents.Options, documents []olm.Document,
) (*client.Client, error) {
	c, err := a.Client()
	if err != nil {
		return nil, err
	}
	var clusters []string
	for _, d := range documents {
		clusters = append(clusters, d.On(o.Clusters)...)
	}
	slices.Sort(clusters)
	return c, command.CheckCluster(ctx, c, slices.Compact(clusters)...)
}

// printNotes tells once what is accepted and has no effect.
func printNotes(a *command.Env, documents []olm.Document) error {
	for _, d := range documents {
		if d.Skipped != "" {
			if _, err := fmt.Fprintf(a.Err, "warning: %s %s is skipped: %s\n", d.Kind, plain.Text(d.Name),
				d.Skipped); err != nil {
				return err
			}
		}
		for _, n := range d.Notes {
			if _, err := fmt.Fprintf(a.Err, "note: %s %s: %s\n", d.Kind, plain.Text(d.Name),
				plain.Text(n)); err != nil {
				return err
			}
		}
	}
	return nil
}
