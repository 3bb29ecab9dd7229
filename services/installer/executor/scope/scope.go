package scope

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/renderlimit"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// Env is what all stages work with while the cluster is held.
type Env struct {
	Client *kube.Epoch
	Log    *slog.Logger
	Now    func() time.Time
	Points failure.Points
	// Pause is how soon what waits, or failed, and has no back-off of its own is tried again if no hint comes.
	Pause    time.Duration
	Contents Contents
	Pace     *pace.Pace
	Watcher  *watch.Watch
	Trail    *watch.Trail
	Specs    *provenance.Specs
	Rendered *RenderedStates
	Parts    *Parts
	// Found is called with each InstalledOperator that was read.
	Found func(o *unstructured.Unstructured, csv bundle.CSV)
	// Seen is the position of the record that was acted on in a namespace.
	Seen func(namespace string) kube.Seen
	// Stop says why nothing may be changed in a namespace now, nil where it may.
	Stop func(namespace string) *failure.Failure
}

// Contents fetches bundles by their digest.
type Contents interface {
	Get(ctx context.Context, d digest.Digest) (bundle.Content, error)
}

// Scope is one namespace of the cluster in one reconcile.
type Scope struct {
	*Env
	*Attempts
	Executions
	Installed

	Namespace string
	// Wanted is what the hub wants, as it was when the reconcile began.
	Wanted protocol.ScopePlans
	// RecordBehind is set where the hub's message comes from a record that has lost commits: nothing may follow from
	// it.
	RecordBehind bool
	Opened       map[string]Plan                // plans that were opened, by id
	Outcomes     map[string]protocol.PlanReport // what is reported of plans and removals, by id
	// Expected are the digests, with overlays, of the Deployments that begun plans are about to write, by
	// ClusterServiceVersion and name.
	Expected map[string]map[string]string
	// Deleted are operators of the record that somebody deleted in the cluster.
	Deleted []protocol.CSVReport
	// Vacant are objects of plans that were not there in this reconcile, and those that several operators have.
	Vacant preflight.Vacant
	// Slot keeps what operators at rest render to.
	Slot *renderlimit.Slot
	Live Live
}

// Live is what the cluster itself says. Overlays depend on it.
type Live struct {
	Config clusterconfig.All
	Group  Group
	// Certificates are those under which operators serve, by name of the Secret.
	Certificates map[string]certs.Kept
	// Former are CRDs of which a new form keeps something until its operator answers.
	Former map[string]certs.Former
	// Conditions are what the operators say of upgrades, by ClusterServiceVersion.
	Conditions map[string]protocol.OperatorCondition
	// Unready are the Deployments that are not ready, by ClusterServiceVersion and name.
	Unready map[string]map[string]protocol.NotReady
	// Components are the objects of the operators with their states, by ClusterServiceVersion.
	Components  map[string][]protocol.Component
	Deployments Deployments
}

// Group is the operator group of the namespace as it is in the cluster now.
type Group struct {
	operatorgroup.Standing

	One        bool     // there is exactly one group; else nothing is known of it
	Served     []string // targets beside its own namespace that exist
	Limits     Limits
	Conditions []protocol.GroupCondition
	// Verdicts are what becomes of the APIs of the operators, by ClusterServiceVersion.
	Verdicts map[string]operatorgroup.Verdict
	Moved    bool // a phase changed in this reconcile
}

// New returns a scope of which nothing was read yet. It is reconciled again after resync at the latest.
func New(env *Env, wanted protocol.ScopePlans, slot *renderlimit.Slot, resync time.Duration) *Scope {
	ns := wanted.Scope.Namespace
	return &Scope{
		Env: env, Attempts: &Attempts{
			namespace: ns, pace: env.Pace, log: env.Log, now: env.Now, pause: env.Pause,
			again: resync,
		},
		Namespace: ns, Wanted: wanted, Opened: map[string]Plan{}, Outcomes: map[string]protocol.PlanReport{},
		Expected: map[string]map[string]string{}, Slot: slot,
	}
}

// Stopped says why nothing may be changed now, not as it was when the reconcile began; nil where it may.
func (sc *Scope) Stopped() *failure.Failure { return sc.Stop(sc.Namespace) }

// Corrects reports whether drift is put right.
func (sc *Scope) Corrects() bool {
	return sc.Wanted.Settings.WithDefaults().Drift == events.DriftCorrect && sc.Stopped() == nil
}

// Left notes an object as Chandler has just left it, so that the watch tells it from what others write.
func (sc *Scope) Left(o *unstructured.Unstructured) { sc.Trail.Clean(RefOf(o), watch.Mark(o)) }

// Manager names the field manager of an operator of the namespace.
func (sc *Scope) Manager(packageName string) string { return kube.Manager(sc.Namespace, packageName) }

// Targets are the namespaces that the operators of the namespace serve.
func (sc *Scope) Targets() []string { return sc.Live.Group.Targets }

// Annotations name to an operator, and its pods, its group and the targets (R-OG §7.3).
func (g Group) Annotations(operator string) map[string]string {
	return map[string]string{
		render.AnnotationOperatorGroup:     g.Name,
		render.AnnotationOperatorNamespace: g.Namespace,
		render.AnnotationTargetNamespaces:  strings.Join(g.Limits.Targets(operator, g.Targets), ","),
	}
}
