package mirror

import (
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// InstalledOf is an operator as mirrors show it.
func InstalledOf(sc *scope.Scope, m *scope.Operator) Installed {
	out := Installed{UID: string(m.Object.GetUID()), CSV: m.CSV, Operator: mirror.Operator{
		Namespace: sc.Namespace, Name: m.Name(), Package: m.Object.GetAnnotations()[scope.AnnotationPackage],
		Replaces: m.CSV.Spec.Replaces, Labels: m.Object.GetLabels(), Status: m.Status,
	}}
	out.Overrides, out.OverridesKnown = sc.Snapshot.Overrides(m.Name())
	return out
}
