package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/plans"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// What apply did with a document.
const (
	created    = "created"
	configured = "configured"
	unchanged  = "unchanged"
)

// ApplyCommand is chandler apply.
func ApplyCommand(a *command.Env) *cobra.Command {
	var o documents.Options
	var dryRun bool
	c := &cobra.Command{
		Use:   "apply -f FILE --cluster CLUSTER",
		Short: "Create or change objects from OLM's YAML",
		Long: `Reads Subscription, OperatorGroup and CatalogSource documents (operators.coreos.com) as YAML or JSON, and creates or
changes them on each of the clusters. A CatalogSource is visible on that cluster only, and only in its namespace
unless that is a global catalog namespace; chandler catalog add adds a catalog for the whole fleet. A document
replaces the labels and annotations of the object: one that it does not name is removed. An OperatorHub
(config.openshift.io) enables and disables default catalogs of the whole fleet. An ApprovalPolicy
(chandler-fleet.io/v1) holds for what its selector selects; a Role says what is allowed, a RoleBinding to whom and
where. None of these needs --cluster.

An InstallPlan with spec.approved: true approves that plan as it is now, like chandler approve. A pull secret that a
CatalogSource of the same call names is stored as a catalog secret. Other Secrets, Namespaces and an OLMConfig are
skipped with a warning. The output of chandler get -o yaml or -o json can be applied again, and names its own
cluster.

All documents are read and checked before the first one is sent. Several are applied at a time, in this order:
secrets and roles, catalogs and fleet-wide objects, operator groups, subscriptions, install plans. Documents about
the same object are applied in their order.`,
		Example: `  chandler apply -f subscription.yaml --cluster east-1
  cat *.yaml | chandler apply -f - --cluster east-1,west-2 -n ports`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dryRun {
				return plans.Preview(cmd.Context(), a, plans.PreviewOptions{Options: o})
			}
			return apply(cmd.Context(), a, o)
		},
	}
	documents.Flags(c, &o.Files, &o.Clusters, &o.Namespace)
	c.Flags().BoolVar(&dryRun, "dry-run", false,
		"change nothing, and show the install plans that would follow, as chandler plan does")
	return c
}

func apply(ctx context.Context, a *command.Env, o documents.Options) error {
	documents, err := documents.Read(a, o)
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	var clusters []string
	for _, d := range documents {
		clusters = append(clusters, d.On(o.Clusters)...)
	}
	slices.Sort(clusters)
	if err := command.CheckCluster(ctx, c, slices.Compact(clusters)...); err != nil {
		return err
	}
	if err := printNotes(a, documents); err != nil {
		return err
	}
	return runTasks(ctx, a, c, tasksOf(o, documents))
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

func applySubscription(ctx context.Context, c *client.Client, r client.Ref, want model.ChangeSubscription) (
	did string, warnings []string, err error,
) {
	have, err := c.Subscription(ctx, r)
	if client.IsStatus(err, http.StatusNotFound) {
		made, err := c.CreateSubscription(ctx, r, want)
		return created, made.Warnings, err
	}
	if err != nil {
		return "", nil, err
	}
	if sameSubscription(have.Spec, want.SubscriptionSpec) && want.Same(have.Metadata) {
		return unchanged, nil, nil
	}
	changed, err := c.ChangeSubscription(ctx, r, want)
	return configured, changed.Warnings, err
}

// sameSubscription compares what two specs mean: approval has a default, config is JSON.
func sameSubscription(a, b model.SubscriptionSpec) bool {
	a.Approval, b.Approval = printer.Or(a.Approval, "Automatic"), printer.Or(b.Approval, "Automatic")
	var x, y any
	if len(a.Config) > 0 && json.Unmarshal(a.Config, &x) != nil || len(b.Config) > 0 &&
		json.Unmarshal(b.Config, &y) != nil {
		return false
	}
	a.Config, b.Config = nil, nil
	return reflect.DeepEqual(a, b) && reflect.DeepEqual(x, y)
}

func applyOperatorGroup(ctx context.Context, c *client.Client, r client.Ref, want model.ChangeOperatorGroup) (
	string, error,
) {
	have, err := c.OperatorGroup(ctx, r)
	if client.IsStatus(err, http.StatusNotFound) {
		_, err = c.CreateOperatorGroup(ctx, r, want)
		return created, err
	}
	if err != nil {
		return "", err
	}
	if sameOperatorGroup(have.Spec, want.OperatorGroupSpec) && want.Same(have.Metadata) {
		return unchanged, nil
	}
	_, err = c.ChangeOperatorGroup(ctx, r, want)
	return configured, err
}

// sameOperatorGroup takes target namespaces, APIs and the values of selectors as the sets that they are.
func sameOperatorGroup(a, b model.OperatorGroupSpec) bool {
	sorted := func(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }
	same := slices.Equal(sorted(a.TargetNamespaces), sorted(b.TargetNamespaces)) &&
		slices.Equal(sorted(a.ProvidedAPIs), sorted(b.ProvidedAPIs)) &&
		slices.EqualFunc(a.Selector.MatchExpressions, b.Selector.MatchExpressions,
			func(x, y events.LabelRequirement) bool {
				return x.Key == y.Key && x.Operator == y.Operator && slices.Equal(sorted(x.Values), sorted(y.Values))
			}) && maps.Equal(a.Selector.MatchLabels, b.Selector.MatchLabels)
	a.TargetNamespaces, b.TargetNamespaces, a.ProvidedAPIs, b.ProvidedAPIs = nil, nil, nil, nil
	a.Selector, b.Selector = events.LabelSelector{}, events.LabelSelector{}
	a.UpgradeStrategy, b.UpgradeStrategy = printer.Or(a.UpgradeStrategy, "Default"),
		printer.Or(b.UpgradeStrategy, "Default")
	return same && reflect.DeepEqual(a, b)
}

func applyCatalog(ctx context.Context, c *client.Client, r client.Ref, metadata model.Metadata, want olm.Catalog) (
	string, error,
) {
	have, err := c.Catalog(ctx, r)
	if client.IsStatus(err, http.StatusNotFound) {
		in := model.AddCatalog{
			Name: r.Name, Cluster: r.Cluster, Namespace: r.Namespace, Metadata: metadata, Source: want.Source,
			Display: want.Display, Priority: want.Priority, Visibility: want.Visibility, Disabled: want.Disabled,
		}
		_, err = c.AddCatalog(ctx, in, model.ValidateDefault)
		return created, err
	}
	if err != nil {
		return "", err
	}
	if sameCatalog(have, want) && metadata.Same(have.Metadata) {
		return unchanged, nil
	}
	// What a CatalogSource cannot say stays as it is.
	in := model.ChangeCatalog{
		Metadata: metadata, Source: want.Source, Display: want.Display, Priority: want.Priority,
		Disabled: have.Disabled,
	}
	switch {
	case have.Visibility.Namespace != "":
		in.Visibility = "namespace"
	case have.Visibility.Cluster != "":
		in.Visibility = "cluster"
	}
	if want.Whole {
		in.Visibility, in.Disabled = want.Visibility, want.Disabled
	}
	_, err = c.ChangeCatalog(ctx, r, in, model.ValidateDefault)
	return configured, err
}

// sameCatalog compares what two catalogs say in the form in which it is kept.
func sameCatalog(have model.Catalog, want olm.Catalog) bool {
	if want.Whole && (have.Disabled != want.Disabled ||
		(have.Visibility.Namespace != "") != (want.Visibility == "namespace")) {
		return false
	}
	return have.Priority == want.Priority && have.Source.Type == want.Source.Type &&
		reflect.DeepEqual(have.Source.Settings(have.Display), want.Source.Settings(want.Display))
}

func applyHub(ctx context.Context, c *client.Client, want model.SetOperatorHub) (
	did string, warnings []string, err error,
) {
	have, err := c.OperatorHub(ctx)
	if err != nil {
		return "", nil, err
	}
	did = unchanged
	if have.DisableAllDefaultSources != want.DisableAllDefaultSources || !sameSources(have.Sources, want.Sources) {
		did = configured
		if have, err = c.SetOperatorHub(ctx, want); err != nil {
			return "", nil, err
		}
	}
	for _, s := range have.Status {
		if s.Status != "Success" {
			warnings = append(warnings, "source "+s.Name+": "+s.Message)
		}
	}
	return did, warnings, nil
}

func sameSources(a, b []model.HubSource) bool {
	byName := func(list []model.HubSource) map[string]bool {
		m := map[string]bool{}
		for _, s := range list {
			m[s.Name] = s.Disabled
		}
		return m
	}
	return maps.Equal(byName(a), byName(b))
}

func applyPolicy(ctx context.Context, c *client.Client, name string, want model.SetApprovalPolicy) (string, error) {
	did := configured
	have, err := c.ApprovalPolicy(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		did, err = created, nil
	}
	if err != nil {
		return "", err
	}
	now, err := c.SetApprovalPolicy(ctx, name, want)
	if err != nil {
		return "", err
	}
	if did == configured && now.Stream == have.Stream && now.Version == have.Version {
		did = unchanged
	}
	return did, nil
}

func applyRole(ctx context.Context, c *client.Client, name string, want model.RoleSpec) (string, error) {
	have, err := c.Role(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		_, err = c.SetRole(ctx, name, want)
		return created, err
	}
	if err != nil {
		return "", err
	}
	now, err := c.SetRole(ctx, name, want)
	if err == nil && reflect.DeepEqual(now.Spec, have.Spec) {
		return unchanged, nil
	}
	return configured, err
}

func applyBinding(ctx context.Context, c *client.Client, name string, want model.RoleBindingSpec) (string, error) {
	have, err := c.RoleBinding(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		_, err = c.SetRoleBinding(ctx, name, want)
		return created, err
	}
	if err != nil {
		return "", err
	}
	now, err := c.SetRoleBinding(ctx, name, want)
	if err == nil && reflect.DeepEqual(now.Spec, have.Spec) {
		return unchanged, nil
	}
	return configured, err
}
