package olm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// readNamespace reads the labels and annotations that a namespace is to have (ADR 0063). What the API server says of a
// namespace itself, as kubectl get writes it, is passed over.
func (d *Document) readNamespace(o object) error {
	if d.Namespace != "" {
		return fmt.Errorf("metadata.namespace is %s: a Namespace is in none", d.Namespace)
	}
	if err := strict(o.Spec, &struct {
		Finalizers []string `json:"finalizers"`
	}{}); err != nil {
		return err
	}
	d.Namespace = d.Name
	d.NamespaceLabels = map[string]string{}
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(o.Metadata.Labels)) {
		switch {
		case key == corev1.LabelMetadataName:
		case render.OwnWord(key):
			lost = append(lost, "label "+key)
		default:
			d.NamespaceLabels[key] = o.Metadata.Labels[key]
		}
	}
	wrong := validation.ValidateLabels(d.NamespaceLabels, field.NewPath("metadata", "labels"))
	if err := wrong.ToAggregate(); err != nil {
		return err
	}
	d.Metadata = model.Metadata{Labels: d.NamespaceLabels} // --selector chooses by them
	if len(lost) > 0 {
		d.Notes = append(d.Notes, strings.Join(lost, ", ")+
			": not kept, by these keys objects of operators are found in clusters")
	}
	return d.readNamespaceAnnotations(o.Metadata.Annotations)
}

// readNamespaceAnnotations keeps the settings of a namespace, and says which annotations are none: kubectl get writes
// what clusters and programs note there, too.
func (d *Document) readNamespaceAnnotations(given map[string]string) error {
	kept := (model.Metadata{Annotations: given}).Kept().Annotations
	d.NamespaceAnnotations = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		why := operatorgroup.ReservedAnnotation(key)
		if n := len(kept[key]); why == "" && n > operatorgroup.MaxNamespaceAnnotation {
			why = fmt.Sprintf("it has %d bytes, and settings have at most %d", n, operatorgroup.MaxNamespaceAnnotation)
		}
		if why != "" {
			d.Notes = append(d.Notes, "annotation "+key+": not kept, "+why)
			continue
		}
		d.NamespaceAnnotations[key] = kept[key]
	}
	wrong := apivalidation.ValidateAnnotations(d.NamespaceAnnotations, field.NewPath("metadata", "annotations"))
	return wrong.ToAggregate()
}

// JoinNamespaces gives the labels and annotations of Namespaces to the operator groups of the same documents that are
// in them: they are part of a group's intent. Others change a group that is there.
func JoinNamespaces(all []Document) {
	for i := range all {
		n := &all[i]
		if n.NamespaceLabels == nil {
			continue
		}
		for j := range all {
			g := &all[j]
			// What chandler get writes of a group says them itself.
			if g.OperatorGroup == nil || g.Namespace != n.Name || g.Cluster != n.Cluster ||
				g.OperatorGroup.NamespaceLabels != nil {
				continue
			}
			g.OperatorGroup.NamespaceLabels = n.NamespaceLabels
			g.OperatorGroup.NamespaceAnnotations = n.NamespaceAnnotations
			n.Joined = true
			n.Notes = append(n.Notes, "its labels and annotations are kept by OperatorGroup "+g.Name)
		}
	}
}

// KeepNamespace leaves to an operator group the labels and annotations of its namespace where a document does not say
// them, as OLM's cannot.
func KeepNamespace(want, have model.OperatorGroupSpec) model.OperatorGroupSpec {
	if want.NamespaceLabels == nil {
		want.NamespaceLabels = have.NamespaceLabels
	}
	if want.NamespaceAnnotations == nil {
		want.NamespaceAnnotations = have.NamespaceAnnotations
	}
	return want
}

// upgradeable is the one condition of an operator that has an effect (R-COND-3).
const upgradeable = "Upgradeable"

// readCondition reads the overrides of an OperatorCondition (R-COND-6): none as a list take those away that are set.
// Its other parts are the operator's own words, and what is written in the cluster.
func (d *Document) readCondition(raw json.RawMessage) error {
	var s struct {
		Overrides   []metav1.Condition `json:"overrides"`
		Conditions  []metav1.Condition `json:"conditions"`
		Deployments []string           `json:"deployments"`
		Accounts    []string           `json:"serviceAccounts"`
	}
	if err := strict(raw, &s); err != nil {
		return err
	}
	if s.Overrides == nil {
		d.Skipped = "it has no overrides, and the rest is what Chandler and the operator write in the cluster"
		return nil
	}
	d.Overrides = &model.SetOverrides{Conditions: []model.ConditionOverride{}}
	var messages, others []string
	for _, o := range s.Overrides {
		d.Overrides.Conditions = append(d.Overrides.Conditions, model.ConditionOverride{
			Type: o.Type, Status: string(o.Status), Reason: o.Reason,
		})
		if o.Message != "" {
			messages = append(messages, o.Type)
		}
		if o.Type != upgradeable {
			others = append(others, o.Type)
		}
	}
	if len(messages) > 0 {
		d.Notes = append(d.Notes, "message of "+strings.Join(messages, ", ")+": not kept, Chandler keeps the reason")
	}
	if len(others) > 0 {
		d.Notes = append(d.Notes, "override of "+strings.Join(others, ", ")+": kept, and has no effect: only "+
			upgradeable+" has one")
	}
	return nil
}

// olmConfigName is the name of the one OLMConfig of a cluster.
const olmConfigName = "cluster"

// readOLMConfig reads the one setting of OLM in a cluster that Chandler has, too: whether ClusterServiceVersions are
// copied. A document that says nothing of it leaves the setting as it is.
func (d *Document) readOLMConfig(raw json.RawMessage) error {
	var s struct {
		Features struct {
			DisableCopiedCSVs         *bool            `json:"disableCopiedCSVs"`
			PackageServerSyncInterval *metav1.Duration `json:"packageServerSyncInterval"`
		} `json:"features"`
	}
	if err := strict(raw, &s); err != nil {
		return err
	}
	if d.Name != olmConfigName {
		return errors.New("an OLMConfig is named " + olmConfigName)
	}
	if d.Namespace != "" {
		return fmt.Errorf("metadata.namespace is %s: an OLMConfig is in none", d.Namespace)
	}
	if s.Features.PackageServerSyncInterval != nil {
		d.Notes = append(d.Notes, "packageServerSyncInterval: has no effect, packages are always up to date: nothing is lost")
	}
	switch off := s.Features.DisableCopiedCSVs; {
	case off == nil:
		d.Skipped = "it says nothing of copied ClusterServiceVersions: nothing is lost"
	case *off:
		d.CopiedCSVs = events.CopiedCSVsOff
	default:
		d.CopiedCSVs = events.CopiedCSVsOn
	}
	return nil
}
