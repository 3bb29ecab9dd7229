package olm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// subscriptionSpec is R-SUB §4.1 in OLM's words.
type subscriptionSpec struct {
	Package             string          `json:"name"`
	Channel             string          `json:"channel"`
	Source              string          `json:"source"`
	SourceNamespace     string          `json:"sourceNamespace"`
	StartingCSV         string          `json:"startingCSV"`
	InstallPlanApproval string          `json:"installPlanApproval"`
	Config              json.RawMessage `json:"config"`
}

func (d *Document) readSubscription(raw json.RawMessage) error {
	var s subscriptionSpec
	if err := strict(raw, &s); err != nil {
		return err
	}
	if s.Package == "" || s.Source == "" {
		return fmt.Errorf("spec.name (the package) and spec.source (the catalog) are required (R-SUB §4.1)")
	}
	d.Subscription = &model.SubscriptionSpec{
		Package: s.Package, Channel: s.Channel, Catalog: s.Source, CatalogNamespace: s.SourceNamespace,
		StartingCSV: s.StartingCSV, Approval: s.InstallPlanApproval, Config: s.Config,
	}
	return nil
}

// operatorGroupSpec is R-OG §7.1; colocation is Chandler's own.
type operatorGroupSpec struct {
	TargetNamespaces   []string             `json:"targetNamespaces"`
	Selector           events.LabelSelector `json:"selector"`
	ServiceAccountName string               `json:"serviceAccountName"`
	StaticProvidedAPIs bool                 `json:"staticProvidedAPIs"`
	UpgradeStrategy    string               `json:"upgradeStrategy"`
	Colocation         string               `json:"colocation"`
}

func (d *Document) readOperatorGroup(raw json.RawMessage, annotations map[string]string) error {
	var s operatorGroupSpec
	if err := strict(raw, &s); err != nil {
		return err
	}
	d.OperatorGroup = &model.OperatorGroupSpec{
		TargetNamespaces: s.TargetNamespaces, Selector: s.Selector, StaticProvidedAPIs: s.StaticProvidedAPIs,
		ServiceAccountName: s.ServiceAccountName, UpgradeStrategy: s.UpgradeStrategy, Colocation: s.Colocation,
		ExcludeGlobalCatalogs: annotations[model.AnnotationExcludeGlobal] == "true",
	}
	if s.StaticProvidedAPIs { // of any other group the annotation is what OLM noted, and not an intent
		d.OperatorGroup.ProvidedAPIs = providedAPIs(annotations[model.AnnotationProvidedAPIs])
	}
	return nil
}

// providedAPIs are the parts of a comma list, which people write with spaces, too.
func providedAPIs(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// readWide reads the spec of what belongs to no namespace: its scope says where it holds.
func (d *Document) readWide(raw json.RawMessage, what string, into any) error {
	if d.Namespace != "" {
		return fmt.Errorf("metadata.namespace is %s: %s belongs to no namespace, spec.scope says where it holds",
			d.Namespace, what)
	}
	return strict(raw, into)
}

func (d *Document) readFleetSubscription(raw json.RawMessage) error {
	if d.Namespace != "" {
		return fmt.Errorf("metadata.namespace is %s: a fleet subscription is for the whole fleet, spec.namespace says in "+
			"which namespace of the clusters", d.Namespace)
	}
	d.FleetSubscription = &fleetmodel.FleetSubscriptionSpec{}
	return strict(raw, d.FleetSubscription)
}

func (d *Document) readPolicy(raw json.RawMessage) error {
	if d.Namespace != "" {
		return fmt.Errorf(
			"metadata.namespace is %s: an approval policy is for the whole fleet, spec.selector says for which "+
				"namespaces", d.Namespace)
	}
	d.Policy = &model.ApprovalPolicySpec{}
	return strict(raw, d.Policy)
}
