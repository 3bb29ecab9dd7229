package olm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// readNamespace reads the labels that a namespace is to have (ADR 0063). What the API server says of a namespace
// itself, as kubectl get writes it, is passed over.
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
	if kept := (model.Metadata{Annotations: o.Metadata.Annotations}).Kept(); len(kept.Annotations) > 0 {
		d.Notes = append(d.Notes, "annotations "+strings.Join(slices.Sorted(maps.Keys(kept.Annotations)), ", ")+
			": not set, Chandler keeps labels of namespaces alone: set them in the cluster with kubectl annotate")
	}
	return nil
}

// JoinNamespaces gives the labels of Namespaces to the operator groups of the same documents that are in them: they are
// part of a group's intent. Others change a group that is there.
func JoinNamespaces(all []Document) {
	for i := range all {
		n := &all[i]
		if n.NamespaceLabels == nil {
			continue
		}
		for j := range all {
			g := &all[j]
			// What chandler get writes of a group says its labels itself.
			if g.OperatorGroup == nil || g.Namespace != n.Name || g.Cluster != n.Cluster ||
				g.OperatorGroup.NamespaceLabels != nil {
				continue
			}
			g.OperatorGroup.NamespaceLabels = n.NamespaceLabels
			n.Joined = true
			n.Notes = append(n.Notes, "its labels are kept by OperatorGroup "+g.Name)
		}
	}
}

// readCondition says which overrides of an OperatorCondition are not set. Its other parts are the operator's own words.
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
	if len(s.Overrides) == 0 {
		d.Skipped = "it has no overrides, and the rest is what Chandler and the operator write in the cluster"
		return nil
	}
	overrides := make([]string, len(s.Overrides))
	for i, o := range s.Overrides {
		overrides[i] = o.Type + "=" + string(o.Status)
	}
	d.Skipped = "the override " + strings.Join(overrides, ", ") + " is not set, since the operator's condition of that " +
		"moment is what it answers: apply it in the cluster with kubectl, where Chandler heeds it"
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
