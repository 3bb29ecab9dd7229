package scope

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Load reads the installed operators.
func (sc *Scope) Load(ctx context.Context) error {
	list, err := sc.Env.Client.ListServed(ctx, kube.GVKInstalledOperator, sc.Namespace)
	if err != nil {
		return err
	}
	var operators []*Operator
	unreadable := map[string]string{}
	for i := range list {
		o := &list[i]
		if o.GetLabels()[kube.LabelManaged] != "true" {
			if o, err = sc.relabel(ctx, o, unreadable); err != nil {
				return err
			}
		}
		if o == nil {
			continue
		}
		m, err := ParseOperator(o)
		if err != nil {
			unreadable[list[i].GetName()] = list[i].GetAnnotations()[AnnotationPlan]
			sc.Env.Log.WarnContext(ctx, "ClusterServiceVersion is not followed", "name", list[i].GetName(), "namespace",
				sc.Namespace, "error", err)
			continue
		}
		sc.Env.NoteOperator(o, m.CSV)
		if err := sc.Attempts.Alone(ctx, m.Name(), PartOrigin, sc.verify(ctx, m)); err != nil {
			return err
		}
		operators = append(operators, m)
	}
	sc.Snapshot.Installed = InstalledOf(operators, sc.Snapshot.Executions)
	sc.Snapshot.Installed.Unreadable, sc.Snapshot.Installed.Loaded = unreadable, true
	sc.Snapshot.Deployments.Forget()
	return nil
}

// Forget has the operators read again before the phases are reconciled.
func (sc *Scope) Forget() { sc.Snapshot.Installed.Loaded = false }

// SetUninstalling takes operators that are leaving by now out of those that are followed.
func (sc *Scope) SetUninstalling() {
	sc.Snapshot.Installed = sc.Snapshot.Installed.Without(sc.Snapshot.Executions)
}

// relabel puts Chandler's label back on an InstalledOperator of one of its plans. Until that is done nobody follows it,
// and it is not gone either, but unreadable; nil says so. One that neither a plan nor the record knows is nobody's.
func (sc *Scope) relabel(ctx context.Context, o *unstructured.Unstructured, unreadable map[string]string) (
	*unstructured.Unstructured, error,
) {
	plan := o.GetAnnotations()[AnnotationPlan]
	if sc.Snapshot.Executions.Of(plan) == nil && !slices.ContainsFunc(sc.Snapshot.Wanted.Installed,
		func(i protocol.Installed) bool { return i.CSV == o.GetName() }) {
		return nil, nil //nolint:nilnil // it is not followed
	}
	unreadable[o.GetName()] = plan
	if sc.Snapshot.RecordBehind || sc.Stopped() != nil || sc.Attempts.Waits(o.GetName(), PartLabel) {
		return nil, nil //nolint:nilnil // it is not followed now
	}
	if err := sc.Env.Points.At("before label put back"); err != nil {
		return nil, err
	}
	patch := []byte(`{"metadata":{"labels":{"` + kube.LabelManaged + `":"true"}}}`)
	labelled, err := sc.Env.Client.MergePatch(ctx, kube.GVKInstalledOperator, sc.Namespace, o.GetName(), patch)
	if err != nil {
		return nil, sc.Attempts.Alone(ctx, o.GetName(), PartLabel, err)
	}
	delete(unreadable, o.GetName())
	sc.Env.Log.InfoContext(ctx, "InstalledOperator has Chandler's label again", "name", o.GetName(), "namespace",
		sc.Namespace)
	return labelled, sc.Attempts.Alone(ctx, o.GetName(), PartLabel, sc.Env.Points.At("label put back"))
}

// verify makes of an operator what the hub granted, whatever its object says: where that differs, drift puts it right
// or tells of it. An error says why nothing can be known of it: then it is followed and reported of, and nothing is
// done for it, nor to what it says that it follows.
func (sc *Scope) verify(ctx context.Context, m *Operator) error {
	a := m.Object.GetAnnotations()
	claim := provenance.Claim{
		Plan:      m.Plan,
		Execution: sc.Snapshot.Executions.Of,
		Plans:     sc.Snapshot.Wanted.Plans,
		Installed: sc.Snapshot.Wanted.Installed,
		GrantedOperator: protocol.GrantedOperator{
			CSV: m.Name(), Package: a[AnnotationPackage], Content: a[AnnotationContent], Replaces: m.CSV.Spec.Replaces,
			Reason: a[AnnotationReason], Rendering: a[AnnotationRendering],
		},
	}
	plan, granted, err := claim.Verify()
	if err == nil {
		err = claim.CheckConfig(plan, granted)
	}
	var of *bundle.CSV
	first := false
	if err == nil {
		of, first, err = sc.Env.Specs.Compare(ctx, m.Object, granted, sc.Env.Contents)
	}
	if err != nil {
		m.Unverified, m.CSV.Spec.Replaces = true, granted.Replaces
		return err
	}
	if of != nil {
		m.CSV = *of
	}
	m.granted, m.Plan = map[string]string{
		AnnotationPlan: plan, AnnotationPackage: granted.Package, AnnotationContent: granted.Content,
		AnnotationReason: granted.Reason, AnnotationRendering: granted.Rendering,
	}, plan
	other := m.Take(m.Object)
	if first || len(other) > 0 {
		sc.Env.Log.WarnContext(ctx, "an InstalledOperator does not say what was granted; what was granted counts",
			"name", m.Name(), "namespace", sc.Namespace, "annotations", other)
	}
	return nil
}
