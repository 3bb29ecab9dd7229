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
	list, err := sc.Client.ListServed(ctx, kube.GVKInstalledOperator, sc.Namespace)
	if err != nil {
		return err
	}
	sc.Operators, sc.Uninstalling, sc.Unreadable = sc.Operators[:0], nil, map[string]string{}
	for i := range list {
		o := &list[i]
		if o.GetLabels()[kube.LabelManaged] != "true" {
			if o, err = sc.relabel(ctx, o); err != nil {
				return err
			}
		}
		if o == nil {
			continue
		}
		m, err := ParseOperator(o)
		if err != nil {
			sc.Unreadable[list[i].GetName()] = list[i].GetAnnotations()[AnnotationPlan]
			sc.Log.WarnContext(ctx, "ClusterServiceVersion is not followed", "name", list[i].GetName(), "namespace",
				sc.Namespace, "error", err)
			continue
		}
		sc.Found(o, m.CSV)
		if err := sc.Alone(ctx, m.Name(), PartOrigin, sc.verify(ctx, m)); err != nil {
			return err
		}
		sc.Operators = append(sc.Operators, m)
	}
	sc.SetUninstalling()
	sc.Follow(sc.Operators)
	sc.Loaded, sc.Live.Deployments.list = true, nil
	return nil
}

// relabel puts Chandler's label back on an InstalledOperator of one of its plans. Until that is done nobody follows it,
// and it is not gone either; nil says so. One that neither a plan nor the record knows is nobody's.
func (sc *Scope) relabel(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	plan := o.GetAnnotations()[AnnotationPlan]
	if sc.Execution(plan) == nil && !slices.ContainsFunc(sc.Wanted.Installed,
		func(i protocol.Installed) bool { return i.CSV == o.GetName() }) {
		return nil, nil //nolint:nilnil // it is not followed
	}
	sc.Unreadable[o.GetName()] = plan
	if sc.RecordBehind || sc.Stopped() != nil || sc.Waits(o.GetName(), PartLabel) {
		return nil, nil //nolint:nilnil // it is not followed now
	}
	if err := sc.Points.At("before label put back"); err != nil {
		return nil, err
	}
	patch := []byte(`{"metadata":{"labels":{"` + kube.LabelManaged + `":"true"}}}`)
	labelled, err := sc.Client.MergePatch(ctx, kube.GVKInstalledOperator, sc.Namespace, o.GetName(), patch)
	if err != nil {
		return nil, sc.Alone(ctx, o.GetName(), PartLabel, err)
	}
	delete(sc.Unreadable, o.GetName())
	sc.Log.InfoContext(ctx, "InstalledOperator has Chandler's label again", "name", o.GetName(), "namespace",
		sc.Namespace)
	return labelled, sc.Alone(ctx, o.GetName(), PartLabel, sc.Points.At("label put back"))
}

// verify makes of an operator what the hub granted, whatever its object says: where that differs, drift puts it right
// or tells of it. An error says why nothing can be known of it: then it is followed and reported of, and nothing is
// done for it, nor to what it says that it follows.
func (sc *Scope) verify(ctx context.Context, m *Operator) error {
	a := m.Object.GetAnnotations()
	claim := provenance.Claim{
		Plan: m.Plan, Execution: sc.Execution, Plans: sc.Wanted.Plans, Installed: sc.Wanted.Installed,
		GrantedOperator: protocol.GrantedOperator{
			CSV: m.Name(), Package: a[AnnotationPackage], Content: a[AnnotationContent], Replaces: m.CSV.Spec.Replaces,
			Reason: a[AnnotationReason],
		},
	}
	plan, granted, err := claim.Verify()
	if err == nil {
		err = claim.CheckConfig(plan, granted)
	}
	var of *bundle.CSV
	first := false
	if err == nil {
		of, first, err = sc.Specs.Compare(ctx, m.Object, granted, sc.Contents)
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
		AnnotationReason: granted.Reason,
	}, plan
	other := m.Take(m.Object)
	if first || len(other) > 0 {
		sc.Log.WarnContext(ctx, "an InstalledOperator does not say what was granted; what was granted counts", "name",
			m.Name(), "namespace", sc.Namespace, "annotations", other)
	}
	return nil
}
