package mirror

import (
	"maps"
	"slices"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// unmarshal keeps whole numbers whole.
func unmarshal(raw []byte, into any) error { return utiljson.Unmarshal(raw, into) }

// Operator is an installed operator as the cluster knows it.
type Operator struct {
	Namespace string
	Name      string // of the ClusterServiceVersion
	Package   string
	Replaces  string            // as its plan decided
	Labels    map[string]string // of its InstalledOperator
	Status    csv.Status
}

// Group is the operator group that an operator is a member of; the zero value is none.
type Group struct {
	Name    string
	Targets []string // sorted; [""] is all namespaces
}

// Global reports whether the group serves all namespaces.
func (g Group) Global() bool { return len(g.Targets) == 1 && g.Targets[0] == "" }

// ClusterServiceVersion shows an operator: the whole manifest that its author wrote, with what its plan and its
// operator group add (R-CSV-22, R-OG §7.3). Its status is not set.
func ClusterServiceVersion(op Operator, g Group, manifest map[string]any) (Object, error) {
	o := newObject(GVKCSV, op.Namespace, op.Name, nil, nil)
	meta, ok := manifest["metadata"].(map[string]any)
	if !ok {
		return o, errs.New(errs.Invalid, "the manifest of ClusterServiceVersion %s has no metadata", op.Name).At(
			"/metadata", "R-CSV-1")
	}
	spec, ok := manifest["spec"].(map[string]any)
	if !ok {
		return o, errs.New(errs.Invalid, "the manifest of ClusterServiceVersion %s has no spec", op.Name).At(
			"/spec", "R-CSV-1")
	}
	labels, annotations := strs(meta["labels"]), strs(meta["annotations"])
	for k, v := range op.Labels {
		if strings.HasPrefix(k, render.LabelAPIPrefix) {
			labels[k] = v
		}
	}
	maps.Copy(labels, shown(op.Namespace))
	if op.Package != "" {
		labels[ComponentLabel(op.Package, op.Namespace)] = ""
	}
	if g.Name != "" {
		annotations[render.AnnotationOperatorGroup] = g.Name
		annotations[render.AnnotationOperatorNamespace] = op.Namespace
		annotations[render.AnnotationTargetNamespaces] = strings.Join(g.Targets, ",")
	}
	o = newObject(GVKCSV, op.Namespace, op.Name, labels, annotations)
	o.OwnedBy = op.Name
	spec = maps.Clone(spec)
	if op.Replaces != "" {
		spec["replaces"] = op.Replaces
	}
	o.Body["spec"] = spec
	return o, nil
}

// Manifest reads the manifest of a bundle.
func Manifest(raw []byte) (map[string]any, error) {
	var out map[string]any
	if err := unmarshal(raw, &out); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "ClusterServiceVersion")
	}
	return out, nil
}

// strs is a copy of the strings of a JSON object.
func strs(v any) map[string]string {
	out := map[string]string{}
	m, ok := v.(map[string]any)
	if !ok {
		return out
	}
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// StatusOf is a status as tools for OLM read it.
func StatusOf(s csv.Status) (map[string]any, error) {
	s.ConditionsDropped = 0 // Chandler's own note
	return jsonOf(s)
}

// settle is how long an operator must stay in a passing phase until its mirror shows that.
const settle = 2 * time.Second

// Settled reports whether a status is worth showing now; wait is after which time to ask again otherwise. An install
// passes through several phases within a second: each shown would be a write of the mirror, and of every copy.
func Settled(s csv.Status, now time.Time) (ok bool, wait time.Duration) {
	switch s.Phase {
	case csv.PhaseNone, csv.PhasePending, csv.PhaseInstallReady, csv.PhaseInstalling:
	default:
		return true, 0
	}
	wait = s.LastTransitionTime.Add(settle).Sub(now)
	return wait <= 0, max(wait, 0)
}

// reasonCopied is the reason of every copy (R-OG-25).
const reasonCopied = "Copied"

// Copy is the copy of a shown ClusterServiceVersion in a namespace that it serves (R-OG-25). The targets are left
// out, so that tenants do not learn of each other (R-OG §7.3).
func Copy(o Object, namespace string) Object {
	meta, _ := o.Body["metadata"].(map[string]any)
	labels, annotations := strs(meta["labels"]), strs(meta["annotations"])
	maps.DeleteFunc(labels, func(k, _ string) bool { return strings.HasPrefix(k, groupOLM+"/") })
	delete(annotations, render.AnnotationTargetNamespaces)
	labels[LabelCopiedFrom] = o.Namespace
	c := newObject(GVKCSV, namespace, o.Name, labels, annotations)
	c.Body["spec"] = o.Body["spec"]
	return c
}

// CopyStatus is the status of a copy: that of its source, with reason and message of a copy (R-OG-25).
func CopyStatus(source map[string]any, namespace string) map[string]any {
	s := maps.Clone(source)
	s["reason"] = reasonCopied
	s["message"] = "The operator is running in " + namespace + " but is managing this namespace"
	return s
}

// GlobalCopies is the namespace in which operators that serve all namespaces are shown to everybody while copies are
// switched off (R-CFG-1, R-CFG-3), in clusters that have it.
const GlobalCopies = "openshift"

// CopiesTo are the namespaces that get a copy, sorted, from those that the cluster has, by name:
//
//	copies are switched on                                the targets but the operator's own
//	they are not, and the operator serves all namespaces  GlobalCopies
//	otherwise                                             none
//
// A member that lost an intersection is copied nowhere (R-OG-26).
func CopiesTo(op Operator, g Group, copies Copies, namespaces map[string]map[string]string) []string {
	if op.Status.Reason == reasonIntersects {
		return nil
	}
	var out []string
	for ns := range namespaces {
		switch {
		case ns == op.Namespace:
		case copies == CopiesEnabled && (g.Global() || slices.Contains(g.Targets, ns)), g.Global() &&
			ns == GlobalCopies:
			out = append(out, ns)
		}
	}
	slices.Sort(out)
	return out
}

// reasonIntersects is the reason of a member whose APIs another group provides (R-OG §7.7).
const reasonIntersects csv.Reason = "InterOperatorGroupOwnerConflict"
