package objects

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// What apply does with a document.
const (
	created    = "created"
	configured = "configured"
	unchanged  = "unchanged"
	set        = "set" // whether it was so before nobody can see
)

// written is what became of a write: another word for what was done, where the server knows better, and warnings.
type written struct {
	did      string
	warnings []string
}

type write func(ctx context.Context, c *client.Client) (written, error)

// comparison is what a document wants beside what is there, in one form, and how to get from one to the other.
type comparison struct {
	did      string
	have     any // nil: nothing is there
	want     any // nil: nobody can see it
	warnings []string
	write    write // nil: nothing is to be sent
}

// form is what is compared, and what chandler diff shows.
type form struct {
	Metadata model.Metadata `json:"metadata,omitzero"`
	Spec     any            `json:"spec,omitempty"`
}

// plainForm is a value as JSON says it, so that what is left out and what is empty are one.
func plainForm(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode what is compared: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out any
	err = dec.Decode(&out)
	return out, err
}

// compared decides what is to be done for a document: have is there, unless err says that nothing is.
func compared(have, want any, err error, create, change write) (comparison, error) {
	out := comparison{did: created, write: create}
	var wrong error
	if out.want, wrong = plainForm(want); wrong != nil {
		return out, wrong
	}
	if client.IsStatus(err, http.StatusNotFound) {
		return out, nil
	}
	if err == nil {
		out.have, err = plainForm(have)
	}
	out.did, out.write = configured, change
	if reflect.DeepEqual(out.have, out.want) {
		out.did, out.write = unchanged, nil
	}
	return out, err
}

func sorted[T cmp.Ordered](s []T) []T {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func compareSubscription(
	ctx context.Context, c *client.Client, r client.Ref, want model.ChangeSubscription,
) (comparison, error) {
	have, err := c.Subscription(ctx, r)
	return compared(form{have.Metadata.Kept(), subscriptionForm(have.Spec)},
		form{want.Metadata.Kept(), subscriptionForm(want.SubscriptionSpec)}, err,
		func(ctx context.Context, c *client.Client) (written, error) {
			made, err := c.CreateSubscription(ctx, r, want)
			return written{warnings: made.Warnings}, err
		},
		func(ctx context.Context, c *client.Client) (written, error) {
			changed, err := c.ChangeSubscription(ctx, r, have.Tag(), want)
			return written{warnings: changed.Warnings}, err
		})
}

// subscriptionForm says defaults openly.
func subscriptionForm(s model.SubscriptionSpec) model.SubscriptionSpec {
	s.Approval = cmp.Or(s.Approval, "Automatic")
	return s
}

func compareOperatorGroup(
	ctx context.Context, c *client.Client, r client.Ref, want model.ChangeOperatorGroup,
) (comparison, error) {
	have, err := c.OperatorGroup(ctx, r)
	want.OperatorGroupSpec = olm.KeepNamespace(want.OperatorGroupSpec, have.Spec)
	return compared(form{have.Metadata.Kept(), groupForm(have.Spec)},
		form{want.Metadata.Kept(), groupForm(want.OperatorGroupSpec)}, err,
		func(ctx context.Context, c *client.Client) (written, error) {
			_, err := c.CreateOperatorGroup(ctx, r, want)
			return written{}, err
		},
		func(ctx context.Context, c *client.Client) (written, error) {
			_, err := c.ChangeOperatorGroup(ctx, r, have.Tag(), want)
			return written{}, err
		})
}

// alone is what is done with a namespace whose labels and annotations no one operator group could keep.
const alone = "skipped"

// compareNamespace compares the labels and annotations of a namespace with those that the operator group in it wants.
func compareNamespace(
	ctx context.Context, c *client.Client, r client.Ref, m model.Metadata,
) (comparison, error) {
	groups, err := c.OperatorGroups(ctx, client.Selection{Cluster: r.Cluster, Namespace: r.Name})
	switch {
	case err != nil:
		return comparison{}, err
	case len(groups) != 1 && len(m.Labels)+len(m.Annotations) == 0:
		return comparison{did: unchanged}, nil
	case len(groups) != 1:
		return comparison{did: alone, warnings: []string{fmt.Sprintf("labels and annotations of a namespace are kept by "+
			"the one operator group in it, and %s has %d: apply an OperatorGroup with it", r.Name, len(groups))}}, nil
	}
	group := client.Ref{Cluster: r.Cluster, Namespace: r.Name, Name: groups[0].Name}
	have, err := c.OperatorGroup(ctx, group)
	if err != nil {
		return comparison{}, err
	}
	want := model.ChangeOperatorGroup{Metadata: have.Metadata, OperatorGroupSpec: have.Spec}
	want.NamespaceLabels, want.NamespaceAnnotations = m.Labels, m.Annotations
	is := model.Metadata{Labels: have.Spec.NamespaceLabels, Annotations: have.Spec.NamespaceAnnotations}
	return compared(form{Metadata: is}, form{Metadata: m}, nil, nil,
		func(ctx context.Context, c *client.Client) (written, error) {
			_, err := c.ChangeOperatorGroup(ctx, group, have.Tag(), want)
			return written{}, err
		})
}

// compareOLMConfig compares what an OLMConfig says of copied ClusterServiceVersions with the setting of a cluster.
func compareOLMConfig(ctx context.Context, c *client.Client, cluster, want string) (comparison, error) {
	have, err := c.Cluster(ctx, cluster)
	if err != nil {
		return comparison{}, err
	}
	form := func(setting string) form { return form{Spec: map[string]string{"copiedCSVs": setting}} }
	return compared(form(have.Settings.CopiedCSVs), form(want), nil, nil,
		func(ctx context.Context, c *client.Client) (written, error) {
			_, err := c.ConfigureCluster(ctx, cluster, model.ConfigureCluster{CopiedCSVs: want})
			return written{}, err
		})
}

// compareOverrides compares the overrides of an OperatorCondition with those that are set. They answer what an operator
// says that is installed, and end with it.
func compareOverrides(
	ctx context.Context, c *client.Client, r client.Ref, want model.SetOverrides,
) (comparison, error) {
	have, err := c.Operator(ctx, r)
	switch {
	case client.IsStatus(err, http.StatusNotFound) && len(want.Conditions) == 0:
		return comparison{did: unchanged}, nil
	case client.IsStatus(err, http.StatusNotFound):
		return comparison{did: alone, warnings: []string{"operator " + r.Name + " is not installed: overrides are of " +
			"one version and end with it, apply them again when it is there"}}, nil
	case err != nil:
		return comparison{}, err
	}
	var set []model.ConditionOverride
	if have.Overrides != nil {
		set = have.Overrides.Conditions
	}
	form := func(list []model.ConditionOverride) form {
		list = slices.SortedFunc(slices.Values(list), func(a, b model.ConditionOverride) int {
			return cmp.Compare(a.Type, b.Type)
		})
		return form{Spec: map[string]any{"overrides": append([]model.ConditionOverride{}, list...)}}
	}
	return compared(form(set), form(want.Conditions), nil, nil,
		func(ctx context.Context, c *client.Client) (written, error) {
			if len(want.Conditions) == 0 {
				_, err := c.RemoveOverrides(ctx, r)
				return written{}, err
			}
			_, err := c.SetOverrides(ctx, r, have.Tag(), want)
			return written{}, err
		})
}

// groupForm takes target namespaces, APIs and the values of selectors as the sets that they are.
func groupForm(s model.OperatorGroupSpec) model.OperatorGroupSpec {
	s.TargetNamespaces, s.ProvidedAPIs = sorted(s.TargetNamespaces), sorted(s.ProvidedAPIs)
	s.UpgradeStrategy = cmp.Or(s.UpgradeStrategy, "Default")
	s.Selector.MatchExpressions = slices.Clone(s.Selector.MatchExpressions)
	for i := range s.Selector.MatchExpressions {
		e := &s.Selector.MatchExpressions[i]
		e.Values = sorted(e.Values)
	}
	return s
}

func compareCatalog(
	ctx context.Context, c *client.Client, r client.Ref, metadata model.Metadata, want olm.Catalog,
) (comparison, error) {
	have, err := c.Catalog(ctx, r)
	there := olm.Catalog{
		Source: have.Source, Display: have.Display, Priority: have.Priority, Disabled: have.Disabled,
		Visibility: visibilityOf(have), Whole: want.Whole,
	}
	return compared(form{have.Metadata.Kept(), catalogForm(there)}, form{metadata.Kept(), catalogForm(want)}, err,
		func(ctx context.Context, c *client.Client) (written, error) {
			_, err := c.AddCatalog(ctx, model.AddCatalog{
				Name: r.Name, Cluster: r.Cluster, Namespace: r.Namespace, Metadata: metadata, Source: want.Source,
				Display: want.Display, Priority: want.Priority, Visibility: want.Visibility, Disabled: want.Disabled,
			}, model.ValidateDefault)
			return written{}, err
		},
		func(ctx context.Context, c *client.Client) (written, error) {
			// What a CatalogSource cannot say stays as it is.
			in := model.ChangeCatalog{
				Metadata: metadata, Source: want.Source, Display: want.Display, Priority: want.Priority,
				Disabled: have.Disabled, Visibility: there.Visibility,
			}
			if want.Whole {
				in.Visibility, in.Disabled = want.Visibility, want.Disabled
			}
			_, err := c.ChangeCatalog(ctx, r, have.Tag(), in, model.ValidateDefault)
			return written{}, err
		})
}

func visibilityOf(c model.Catalog) string {
	switch {
	case c.Visibility.Namespace != "":
		return "namespace"
	case c.Visibility.Cluster != "":
		return "cluster"
	}
	return ""
}

// catalogForm is what a catalog says in the form in which it is kept. A CatalogSource does not say who sees it, and
// whether it is disabled.
func catalogForm(c olm.Catalog) any {
	out := map[string]any{
		"type": c.Source.Type, "source": c.Source.Settings(c.Display), "priority": c.Priority,
	}
	if c.Whole {
		out["disabled"], out["onlyInNamespace"] = c.Disabled, c.Visibility == "namespace"
	}
	return out
}

func compareHub(ctx context.Context, c *client.Client, want model.SetOperatorHub) (comparison, error) {
	have, err := c.OperatorHub(ctx)
	if err != nil {
		return comparison{}, err
	}
	out, err := compared(form{Spec: hubForm(have.DisableAllDefaultSources, have.Sources)},
		form{Spec: hubForm(want.DisableAllDefaultSources, want.Sources)}, nil, nil,
		func(ctx context.Context, c *client.Client) (written, error) {
			now, err := c.SetOperatorHub(ctx, want)
			return written{warnings: hubWarnings(now)}, err
		})
	if out.did == unchanged {
		out.warnings = hubWarnings(have)
	}
	return out, err
}

func hubForm(all bool, sources []model.HubSource) any {
	byName := map[string]bool{}
	for _, s := range sources {
		byName[s.Name] = s.Disabled
	}
	return map[string]any{"disableAllDefaultSources": all, "disabled": byName}
}

func hubWarnings(hub model.OperatorHub) (warnings []string) {
	for _, s := range hub.Status {
		if s.Status != "Success" {
			warnings = append(warnings, "source "+s.Name+": "+s.Message)
		}
	}
	return warnings
}

func comparePolicy(
	ctx context.Context, c *client.Client, name string, want model.SetApprovalPolicy,
) (comparison, error) {
	have, err := c.ApprovalPolicy(ctx, name)
	put := func(ctx context.Context, c *client.Client) (out written, err error) {
		now, err := c.SetApprovalPolicy(ctx, name, have.Tag(), want)
		if err == nil && now.Stream == have.Stream && now.Version == have.Version {
			out.did = unchanged // only the server knows all defaults
		}
		return out, err
	}
	return compared(form{have.Metadata.Kept(), have.Spec}, form{want.Metadata.Kept(), want.ApprovalPolicySpec}, err,
		put, put)
}

func compareFleetSubscription(
	ctx context.Context, c *client.Client, name string, want fleetmodel.FleetSubscriptionSpec,
) (comparison, error) {
	have, err := c.FleetSubscription(ctx, name)
	put := func(ctx context.Context, c *client.Client) (out written, err error) {
		now, err := c.SetFleetSubscription(ctx, name, have.Tag(),
			fleetmodel.SetFleetSubscription{FleetSubscriptionSpec: want})
		if err == nil && now.Stream == have.Stream && now.Version == have.Version {
			out.did = unchanged
		}
		return out, err
	}
	return compared(form{Spec: fleetForm(have.Spec)}, form{Spec: fleetForm(want)}, err, put, put)
}

// fleetForm says defaults openly, and takes names as the sets that they are.
func fleetForm(s fleetmodel.FleetSubscriptionSpec) fleetmodel.FleetSubscriptionSpec {
	s.Approval, s.DeletionPolicy = cmp.Or(s.Approval, "Automatic"), cmp.Or(s.DeletionPolicy, "Orphan")
	s.Placement.Clusters, s.Placement.Except = sorted(s.Placement.Clusters), sorted(s.Placement.Except)
	s.OperatorGroup.Spec = groupForm(s.OperatorGroup.Spec)
	s.Strategy.Waves = slices.Clone(s.Strategy.Waves)
	for i, w := range s.Strategy.Waves {
		s.Strategy.Waves[i].Promotion = cmp.Or(w.Promotion, "Automatic")
		s.Strategy.Waves[i].Gates = slices.Clone(w.Gates)
		for n, g := range w.Gates {
			s.Strategy.Waves[i].Gates[n] = g.WithDefaults()
		}
	}
	return s
}

func compareRole(ctx context.Context, c *client.Client, name string, want model.RoleSpec) (comparison, error) {
	have, err := c.Role(ctx, name)
	put := func(ctx context.Context, c *client.Client) (out written, err error) {
		now, err := c.SetRole(ctx, name, have.Tag(), want)
		if err == nil && reflect.DeepEqual(now.Spec, have.Spec) {
			out.did = unchanged
		}
		return out, err
	}
	return compared(form{Spec: have.Spec}, form{Spec: want}, err, put, put)
}

func compareBinding(
	ctx context.Context, c *client.Client, name string, want model.RoleBindingSpec,
) (comparison, error) {
	have, err := c.RoleBinding(ctx, name)
	put := func(ctx context.Context, c *client.Client) (out written, err error) {
		now, err := c.SetRoleBinding(ctx, name, have.Tag(), want)
		if err == nil && reflect.DeepEqual(now.Spec, have.Spec) {
			out.did = unchanged
		}
		return out, err
	}
	return compared(form{Spec: have.Spec}, form{Spec: want}, err, put, put)
}

// setSecret sends a secret always: nobody can read the one that is there.
func setSecret(name string, want model.SetCatalogSecret) comparison {
	return comparison{did: set, write: func(ctx context.Context, c *client.Client) (written, error) {
		_, err := c.SetCatalogSecret(ctx, name, want)
		return written{}, err
	}}
}

// comparePlan approves a plan whose document says spec.approved: true, as it is now (R-IP-10). A document cannot make a
// plan, and cannot take an approval back. Labels and annotations are the document's, whatever became of the plan.
func comparePlan(ctx context.Context, c *client.Client, ref client.Ref, metadata model.Metadata, want olm.Plan) (
	comparison, error,
) {
	p, err := kinds.FindPlan(ctx, c, ref)
	if err != nil {
		return comparison{}, err
	}
	var csvs []string
	for _, b := range p.Bundles {
		csvs = append(csvs, b.CSV)
	}
	for _, name := range want.CSVs {
		if !slices.Contains(csvs, name) {
			return comparison{}, command.Refused(
				fmt.Errorf("the document names %s, but the plan installs %v: nothing is approved", name, csvs))
		}
	}
	approved := p.Approved != nil || p.Begun
	if !want.Approved && approved && p.Phase == kinds.PhaseRequiresApproval {
		return comparison{}, command.Refused(
			errors.New("the plan is approved already, and a document cannot revoke that: use chandler reject"))
	}
	approve := want.Approved && !approved // without approval it goes by itself, or waits
	return compared(form{p.Metadata.Kept(), map[string]any{"approved": approved}},
		form{metadata.Kept(), map[string]any{"approved": approved || approve}}, nil, nil,
		func(ctx context.Context, c *client.Client) (out written, err error) {
			if !metadata.Same(p.Metadata) {
				if _, err := c.SetPlanMetadata(ctx, p.ID, metadata); err != nil {
					return out, err
				}
			}
			if !approve {
				return out, nil
			}
			now, err := c.Approve(ctx, p.ID, model.ApprovePlan{Digest: cmp.Or(want.Digest, p.Digest), Base: &p.Base})
			return written{did: kinds.ApprovedText(now)}, err
		})
}
