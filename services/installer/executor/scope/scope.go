package scope

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/renderlimit"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// Scope is one namespace of the cluster in one reconcile.
type Scope struct {
	Namespace string
	Env       *Env
	Attempts  *Attempts
	Snapshot  Snapshot
	Found     Findings
	// Slot keeps what operators at rest render to.
	Slot   *renderlimit.Slot
	opened map[string]Plan // plans that were opened, by id
}

// New returns a scope of which nothing was read yet. It is reconciled again after resync at the latest.
func New(env *Env, wanted protocol.ScopePlans, slot *renderlimit.Slot, resync time.Duration) *Scope {
	ns := wanted.Scope.Namespace
	return &Scope{
		Namespace: ns, Env: env,
		Attempts: &Attempts{
			namespace: ns, pace: env.Pace, log: env.Log, now: env.Now, pause: env.Pause, again: resync,
		},
		Snapshot: Snapshot{Wanted: wanted},
		Found: Findings{
			Outcomes: map[string]protocol.PlanReport{}, Expected: map[string]map[string]string{},
		},
		Slot: slot, opened: map[string]Plan{},
	}
}

// Stopped says why nothing may be changed now, not as it was when the reconcile began; nil where it may.
func (sc *Scope) Stopped() *failure.Failure { return sc.Env.Stop(sc.Namespace) }

// Left notes an object as Chandler has just left it, so that the watch tells it from what others write.
func (sc *Scope) Left(o *unstructured.Unstructured) { sc.Env.Trail.Clean(RefOf(o), watch.Mark(o)) }

// Manager names the field manager of an operator of the namespace.
func (sc *Scope) Manager(packageName string) string { return kube.Manager(sc.Namespace, packageName) }

// Targets are the namespaces that the operators of the namespace serve.
func (sc *Scope) Targets() []string { return sc.Found.Group.Targets }
