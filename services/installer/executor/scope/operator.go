package scope

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Annotations that Chandler puts on what it applies.
const (
	AnnotationDigest      = "chandler-fleet.io/applied-digest"
	AnnotationRendered    = "chandler-fleet.io/dressed-digest" // with the overlays, where a kind has some
	AnnotationPlan        = "chandler-fleet.io/plan"
	AnnotationComponent   = "chandler-fleet.io/component"
	AnnotationContent     = "chandler-fleet.io/content"
	AnnotationRendering   = "chandler-fleet.io/rendering" // rules by which its objects are rendered
	AnnotationPackage     = kube.AnnotationPackage
	AnnotationReason      = "chandler-fleet.io/reason" // why the plan brings it (events.PlannedBundle)
	AnnotationTraceParent = "chandler-fleet.io/traceparent"
)

const (
	// FailForward is the upgrade strategy by which a failed operator may be replaced.
	FailForward = "TechPreviewUnsafeFailForward"
	// ReasonRollback is why a plan brings a version that was installed before.
	ReasonRollback = "Rollback"
)

// Operator is one installed operator of the namespace: its InstalledOperator, which stands for its
// ClusterServiceVersion.
type Operator struct {
	Object *unstructured.Unstructured
	CSV    bundle.CSV
	Status csv.Status
	Plan   string
	// Unverified is set where nobody knows whether the hub granted what the object says: nothing is done for it.
	Unverified bool
	granted    map[string]string // annotations as they are to be
}

// ParseOperator reads an InstalledOperator.
func ParseOperator(o *unstructured.Unstructured) (*Operator, error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "ClusterServiceVersion %s", o.GetName())
	}
	m := &Operator{Object: o, Plan: o.GetAnnotations()[AnnotationPlan]}
	if m.CSV, err = bundle.ParseCSV(raw); err != nil {
		return nil, err
	}
	var s struct {
		Status csv.Status `json:"status"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "status of ClusterServiceVersion %s", o.GetName())
	}
	m.Status = s.Status
	return m, nil
}

// Name is that of the ClusterServiceVersion.
func (m *Operator) Name() string { return m.Object.GetName() }

// Report is what the hub is notified of a ClusterServiceVersion.
func (m *Operator) Report() protocol.CSVReport {
	a := m.Object.GetAnnotations()
	r := protocol.CSVReport{
		Name: m.Name(), Package: a[AnnotationPackage], Version: m.CSV.Spec.Version, Content: a[AnnotationContent],
		Plan: m.Plan, UID: string(m.Object.GetUID()), Dropped: m.Status.ConditionsDropped,
		TraceParent: a[AnnotationTraceParent],
	}
	for _, c := range m.Status.Conditions {
		r.History = append(r.History, protocol.Transition{
			Phase: string(c.Phase), Reason: string(c.Reason), Message: c.Message, Time: c.LastTransitionTime.UTC(),
		})
	}
	return r
}

// Take makes an object that the cluster holds the operator's, and returns which of its annotations count for nothing.
func (m *Operator) Take(o *unstructured.Unstructured) (other []string) {
	m.Object = o
	return provenance.SetAnnotations(o, m.granted)
}

// Halted reports an operator whose phase says that its APIs are another group's.
func Halted(m *Operator) bool {
	return m.Status.Phase == csv.PhaseFailed && (m.Status.Reason == operatorgroup.ReasonOwnerConflict ||
		m.Status.Reason == operatorgroup.ReasonStatic)
}

// MayDeploy reports phases in which a Deployment of the ClusterServiceVersion may be written (R-CSV-20).
func MayDeploy(p csv.Phase) bool {
	return p == csv.PhaseInstallReady || p == csv.PhaseInstalling || p == csv.PhaseSucceeded
}
