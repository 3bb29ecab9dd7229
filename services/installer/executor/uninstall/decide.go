package uninstall

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// asPlan is a removal as the log of executions, back-off and reports know a plan.
func asPlan(r protocol.Removal) protocol.Plan {
	return protocol.Plan{ID: r.ID, Name: removalNamePrefix + r.CSV}
}

// removals are those that were asked for, oldest first, and those that were begun and that nobody asks for any more:
// what was begun is brought to its end.
func removals(s *scope.Snapshot) []protocol.Removal {
	out := slices.Clone(s.Wanted.Removals)
	for _, x := range s.Executions {
		r := x.Spec.Removal
		if r != nil && !scope.Ended(x) && !slices.ContainsFunc(
			out, func(o protocol.Removal) bool { return o.ID == r.ID }) {
			out = append(out, *r)
		}
	}
	return out
}

// checkGrant asks before a removal begins whether the hub wants it, here and now (DESIGN D6).
func checkGrant(r protocol.Removal, c steplog.Config, namespace string, now time.Time) *failure.Failure {
	d, err := r.Digest()
	switch err = errors.Join(err, r.Grant.Verify(c.GrantKey)); {
	case err != nil:
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: err.Error()}
	case r.Grant.Plan != r.ID || r.Grant.Digest != string(d) || r.Grant.Cluster != c.ClusterID ||
		r.Grant.Namespace != namespace:
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true,
			Message: "the grant is for another removal, cluster or namespace",
		}
	case r.Grant.Expired(now):
		return failure.GrantExpired(r.Grant)
	}
	return nil
}

// busy: an operator that is on its way in, or out already, is not removed beside that.
func busy(s *scope.Snapshot, r protocol.Removal) *failure.Failure {
	if x := s.Executions.UnderWay(r.CSV); x != nil && !s.Stuck(x) {
		return &failure.Failure{
			Class: failure.Conflict, Reason: reasonPlanUnderWay, Quick: true,
			Message: "the install plan that brings " + r.CSV + " is under way: its removal begins when that has ended",
		}
	}
	if i := slices.IndexFunc(s.Installed.Operators,
		func(m *scope.Operator) bool { return m.CSV.Spec.Replaces == r.CSV }); i >= 0 {
		next := s.Installed.Operators[i].Name()
		return &failure.Failure{
			Class: failure.Conflict, Reason: reasonReplacing, Quick: true,
			Message: next + " takes the place of " + r.CSV +
				", which goes when that has succeeded: to have neither, uninstall " + next,
		}
	}
	return nil
}

// Log is the plan as entries of a step log, none of them done. Those of one index go together.
func (f Found) Log(epoch int64, now time.Time) []kube.Step {
	var out []kube.Step
	for i, s := range f.Plan.Steps {
		for _, o := range s.Objects {
			out = append(out, kube.Step{
				Index: i + 1, Action: s.Action, Group: o.Group, Version: o.Version, Kind: o.Kind,
				Namespace: o.Namespace, Name: o.Name, UID: f.UIDs[o], Epoch: epoch, Time: now,
			})
		}
	}
	return out
}

// Next are the first entries that go together and are not done; empty at the end. They are part of what is given.
func Next(steps []kube.Step) []kube.Step {
	from := slices.IndexFunc(steps, func(s kube.Step) bool { return s.State != kube.StepDone })
	if from < 0 {
		return nil
	}
	steps = steps[from:]
	if n := slices.IndexFunc(steps, func(s kube.Step) bool { return s.Index != steps[0].Index }); n >= 0 {
		steps = steps[:n]
	}
	return steps
}

// Last are the entries of a log for the InstalledOperator itself: none where it was gone when the removal began.
func Last(steps []kube.Step) []kube.Step {
	var out []kube.Step
	for _, s := range steps {
		if s.Group == kube.GVKInstalledOperator.Group && s.Kind == kube.GVKInstalledOperator.Kind {
			out = append(out, s)
		}
	}
	return out
}

// Another reports an InstalledOperator that is not the one which a removal with this log began with. nil is none at
// all: what is left of that one goes.
func Another(live *unstructured.Unstructured, steps []kube.Step) bool {
	return live != nil && !slices.ContainsFunc(Last(steps),
		func(s kube.Step) bool { return s.UID == string(live.GetUID()) })
}

// of are the steps that name objects of the plan, by action and UID; of definitions, those that were asked for.
func (f Found) of(steps []kube.Step, crds []string) []kube.Step {
	type part struct {
		action, uid string
		object      protocol.ObjectRef
	}
	goes := map[part]bool{}
	for _, s := range f.Plan.Steps {
		for _, o := range s.Objects {
			goes[part{s.Action, f.UIDs[o], o}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s kube.Step) bool {
		o := protocol.ObjectRef{Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
		unasked := s.Action != protocol.RemovalObjects && !slices.Contains(crds, s.Name) &&
			!slices.Contains(crds, removal.All)
		return s.UID == "" || unasked || !goes[part{s.Action, s.UID, o}]
	})
}
