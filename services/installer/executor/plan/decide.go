package plan

import (
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
)

// mayFail reports whether a plan may be failed for good before it is begun: only what no retry can
// change, and only under a grant that was checked.
func mayFail(f *failure.Failure) bool {
	return f.Reason == failure.ReasonDigest || f.Reason == failure.ReasonUnsupported
}

// admission is what a plan is admitted by.
type admission struct {
	snapshot *scope.Snapshot
	logs     steplog.Config
	seen     kube.Seen        // the position of the record that was acted on
	stopped  *failure.Failure // why nothing may be changed, nil where it may
	now      time.Time
}

// decide asks what needs neither cluster nor content (DESIGN D6, R-IP-42):
//
//  1. a record that has gone back: nothing is done at all
//  2. the stop switch: no further step
//  3. a grant that is not the hub's, or about something else
//  4. before the first step: a grant for another service account than the operator group names, or that has run out,
//     which is asked once more right before the log says that the plan has begun
//  5. no operator group, or several: whom the operators serve is not known; a namespace where no operator may be
func (a admission) decide(p protocol.Plan, begun bool) *failure.Failure {
	if a.snapshot.RecordBehind {
		return &failure.Failure{
			Class: failure.Stopped, Reason: failure.ReasonBehind, Quick: true,
			Message: fmt.Sprintf("the record stands at %s, this cluster has acted on %s, of which that record knows "+
				"nothing", a.snapshot.Wanted.Position, a.seen.Position),
		}
	}
	if a.stopped != nil {
		return a.stopped
	}
	g := p.Grant
	if err := g.Verify(a.logs.GrantKey); err != nil {
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: err.Error()}
	}
	if g.Plan != p.ID || g.Digest != p.Digest || g.Cluster != a.logs.ClusterID ||
		g.Namespace != a.snapshot.Wanted.Scope.Namespace {
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true,
			Message: "the grant is for another plan, digest, cluster or namespace",
		}
	}
	if !begun && g.Expired(a.now) {
		return failure.GrantExpired(g)
	}
	if f := checkGroup(a.snapshot.Wanted); f != nil || begun {
		return f
	}
	if g.Account != a.snapshot.GroupAccount().Name {
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true,
			Message: "the grant is for another service account than the operator group names",
		}
	}
	return nil
}

// checkGroup says why no plan may be carried out for the operator group: no plan is carried out among Chandler's own
// objects, whose accounts may do everything; elsewhere a plan needs exactly one operator group in its namespace
// (R-IP-42).
func checkGroup(wanted protocol.ScopePlans) *failure.Failure {
	switch {
	case wanted.Scope.Namespace == kube.SystemNamespace:
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonReserved, Quick: true,
			Message: "namespace " + wanted.Scope.Namespace +
				" is Chandler's own: no operator is installed there; choose another namespace",
		}
	case wanted.OperatorGroups == 0:
		return &failure.Failure{
			Class:   failure.Conflict,
			Reason:  failure.ReasonNoGroup,
			Quick:   true,
			Message: "attenuated service account query failed - no operator group found that is managing this namespace",
		}
	case wanted.OperatorGroups > 1:
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonManyGroups, Quick: true,
			Message: fmt.Sprintf(
				"attenuated service account query failed - more than one operator group(s) are managing this "+
					"namespace count=%d", wanted.OperatorGroups),
		}
	}
	return nil
}

// following returns how many steps from i on may be set about together: neighbours of one sort, of one
// ClusterServiceVersion.
func following(objects []render.Object, i int) int {
	n := i
	for n < len(objects) && n-i < maxBatch && objects[n].Resolving == objects[i].Resolving &&
		scope.SortOf(objects[n]) == scope.SortOf(objects[i]) {
		n++
		if objects[i].GVK.Kind == kube.GVKCSV.Kind {
			break
		}
	}
	return n - i
}

func binds(o render.Object) bool {
	return o.GVK.Kind == "RoleBinding" || o.GVK.Kind == "ClusterRoleBinding"
}

// sameOrigin reports an object that was written by the step that would write it, under the same overlays.
func sameOrigin(live, want map[string]string) bool {
	return live[scope.AnnotationDigest] == want[scope.AnnotationDigest] &&
		live[scope.AnnotationRendered] == want[scope.AnnotationRendered] &&
		live[scope.AnnotationPlan] == want[scope.AnnotationPlan]
}
