package scope

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Resting reports a namespace in which nothing is under way: it can wait for others.
func (sc *Scope) Resting() bool {
	return len(sc.Wanted.Removals) == 0 && !slices.ContainsFunc(sc.Wanted.Plans, func(p protocol.Plan) bool {
		x := sc.Execution(p.ID)
		return x == nil || !Ended(x)
	})
}

// Moving reports whether operators of the namespace are on their way, and not held up.
func (sc *Scope) Moving() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(sc.Outcomes)),
		func(r protocol.PlanReport) bool { return r.Phase == protocol.PlanStarted }) ||
		slices.ContainsFunc(sc.Operators, func(m *Operator) bool {
			return m.Status.Phase == csv.PhaseInstallReady || m.Status.Phase == csv.PhaseInstalling
		})
}

// AtRest reports an operator that no plan is about to change and that is installed, as far as it can be.
func (sc *Scope) AtRest(m *Operator) bool {
	return !sc.Planned(m.Name()) && sc.Chain.Successor(m.Name()) == "" && !Halted(m) &&
		(MayDeploy(m.Status.Phase) || m.Status.Phase == csv.PhaseFailed)
}

// ServesOn reports an operator that goes on serving while the one that is to replace it does not yet, or not at all.
// How one that the record does not name any more is configured is not known.
func (sc *Scope) ServesOn(m *Operator) bool {
	named := slices.ContainsFunc(sc.Wanted.Installed, func(i protocol.Installed) bool { return i.CSV == m.Name() })
	return m.Status.Phase == csv.PhaseReplacing && named && !sc.Planned(m.Name())
}

// LacksRequirements reports an operator that was installed and now lacks what it requires, perhaps an object of its
// own.
func (sc *Scope) LacksRequirements(m *Operator) bool {
	return m.Status.Phase == csv.PhasePending && m.Status.Reason == csv.ReasonRequirementsNotMet &&
		!sc.Planned(m.Name()) && sc.Chain.Successor(m.Name()) == ""
}

// Frozen reports an operator whose plan is under way and cannot be read in this reconcile: what is still to come for it
// is not known, so that its phase stays as it is, and nothing that it replaces goes.
func (sc *Scope) Frozen(m *Operator) bool {
	x := sc.UnderWay(m.Name())
	if x == nil {
		return false
	}
	_, read := sc.Opened[x.Spec.Plan]
	return !read
}

// ToCall reports an operator whose plan has yet to tell the API server of it.
func (sc *Scope) ToCall(m *Operator) bool {
	x := sc.UnderWay(m.Name())
	if x == nil {
		return len(sc.DeferredSteps(m)) > 0
	}
	for i, o := range sc.Opened[x.Spec.Plan].Objects {
		if o.Resolving == m.Name() && render.Calls(o.GVK) &&
			(i >= len(x.Status.Steps) || x.Status.Steps[i].State != kube.StepDone) {
			return true
		}
	}
	return false
}

// Stuck reports a plan that is under way and does not go on by itself now.
func (sc *Scope) Stuck(x *kube.Execution) bool {
	listed := slices.ContainsFunc(sc.Wanted.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan })
	return !listed || x.Status.Phase == protocol.PlanBlocked
}

// CheckGroup says why no plan may be carried out for the operator group: no plan is carried out among Chandler's own
// objects, whose accounts may do everything; elsewhere a plan needs exactly one operator group in its namespace
// (R-IP-42).
func (sc *Scope) CheckGroup() *failure.Failure {
	switch {
	case sc.Namespace == kube.SystemNamespace:
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonReserved, Quick: true,
			Message: "namespace " + sc.Namespace +
				" is Chandler's own: no operator is installed there; choose another namespace",
		}
	case sc.Wanted.OperatorGroups == 0:
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonNoGroup, Quick: true,
			Message: "attenuated service account query failed - no operator group found that is managing this namespace",
		}
	case sc.Wanted.OperatorGroups > 1:
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonManyGroups, Quick: true,
			Message: fmt.Sprintf(
				"attenuated service account query failed - more than one operator group(s) are managing this "+
					"namespace count=%d", sc.Wanted.OperatorGroups),
		}
	}
	return nil
}

// Account is who carries out a plan (R-OG-60): who it was begun as, else the one that the operator group names now. So
// a group that names another account, or none any more, changes the next plan and nothing that runs (R-OG-64).
func (sc *Scope) Account(plan string) (kube.Account, error) {
	if x := sc.Execution(plan); x != nil && x.Status.Begun {
		return kube.ParseAccount(x.Spec.Account)
	}
	return sc.GroupAccount(), nil
}

// GroupAccount is the account that the operator group names, the zero value where it names none.
func (sc *Scope) GroupAccount() kube.Account {
	name := sc.Wanted.OperatorGroup.Spec.ServiceAccountName
	if name == "" {
		return kube.Account{}
	}
	return kube.Account{Namespace: sc.Namespace, Name: name}
}

// SetUninstalling takes operators that are leaving out of those that are followed.
func (sc *Scope) SetUninstalling() {
	sc.Operators = slices.DeleteFunc(sc.Operators, func(m *Operator) bool {
		gone := sc.Leaving(m.Name())
		if gone {
			sc.Uninstalling = append(sc.Uninstalling, m)
		}
		return gone
	})
}

// Optional reports a kind that the cluster's settings do not have an operator wait for.
func (sc *Scope) Optional(gvk schema.GroupVersionKind) bool {
	return sc.Wanted.Settings.IsOptional(gvk.Group, gvk.Kind)
}

// Unserved reports an error that says that the kind of an object is not served, where that is no reason to wait.
func (sc *Scope) Unserved(gvk schema.GroupVersionKind, err error) bool {
	return err != nil && sc.Optional(gvk) && failure.Classify(err).Reason == failure.ReasonNotServed
}

// FinalReports are the last reports of replaced ClusterServiceVersions: as long as the hub still holds them as
// installed, and for a while in any case.
func (sc *Scope) FinalReports() []protocol.CSVReport {
	var out []protocol.CSVReport
	for _, x := range sc.Executions {
		if x.Spec.Removal != nil && !Ended(x) {
			continue // the report is kept, and the operator is still there
		}
		for _, c := range x.Status.Removed {
			listed := slices.ContainsFunc(sc.Wanted.Installed,
				func(i protocol.Installed) bool { return i.CSV == c.Name && (c.UID != "" || i.Plan == c.Plan) })
			alive := slices.ContainsFunc(sc.Operators,
				func(m *Operator) bool { return string(m.Object.GetUID()) == c.UID })
			fresh := len(c.History) > 0 && sc.Now().Sub(c.History[len(c.History)-1].Time) < removedFor
			if !alive && (listed || fresh) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b protocol.CSVReport) int { return strings.Compare(a.Name+a.UID, b.Name+b.UID) })
	return out
}

// RefOf names an object of the cluster.
func RefOf(o *unstructured.Unstructured) protocol.ObjectRef {
	gvk := o.GroupVersionKind()
	return protocol.ObjectRef{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.GetNamespace(),
		Name: o.GetName(),
	}
}

// RefIn names the object of the cluster that a rendered object becomes.
func RefIn(o render.Object) protocol.ObjectRef {
	gvk := o.GVK
	if gvk == kube.GVKCSV {
		gvk = kube.GVKInstalledOperator
	}
	return protocol.ObjectRef{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.Namespace,
		Name: o.Name,
	}
}

// SortOf tells apart what must not be set about together (R-IP-20): the ClusterServiceVersion goes alone, since
// the others name it as their owner; accounts and rights need no CRD, so they do not wait for the API
// server to establish one; other kinds may need one; Deployments come after all, and what calls them after these.
func SortOf(o render.Object) string {
	switch o.GVK.Kind {
	case kube.GVKCRD.Kind, kube.GVKServiceAccount.Kind, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return kube.GVKCRD.Kind
	case kube.GVKCSV.Kind, kube.GVKDeployment.Kind:
		return o.GVK.Kind
	}
	if render.Calls(o.GVK) {
		return render.GVKAPIService.Kind
	}
	return ""
}

// removedFor is how long the final report of a replaced operator is sent at least.
const removedFor = time.Hour
