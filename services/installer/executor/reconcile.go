package executor

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/condition"
	"github.com/chandler-fleet/chandler/services/installer/executor/deferred"
	"github.com/chandler-fleet/chandler/services/installer/executor/drift"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/unready"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/webhooks"
	"github.com/chandler-fleet/chandler/services/installer/executor/lifecycle"
	"github.com/chandler-fleet/chandler/services/installer/executor/mirror"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/plan"
	"github.com/chandler-fleet/chandler/services/installer/executor/report"
	"github.com/chandler-fleet/chandler/services/installer/executor/rerender"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/serving"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
	"github.com/chandler-fleet/chandler/services/installer/executor/uninstall"
)

// stages are what a reconcile of a namespace consists of. They know each other by small interfaces alone; who is behind
// these says newStages.
type stages struct {
	env       *scope.Env
	logs      *steplog.Store
	config    *clusterconfig.Stage
	group     *group.Stage
	serving   *serving.Stage
	rerender  *rerender.Stage
	condition *condition.Stage
	lifecycle *lifecycle.Stage
	deferred  *deferred.Stage
	plan      *plan.Stage
	uninstall *uninstall.Stage
	drift     *drift.Stage
	mirror    *mirror.Stage
	report    *report.Stage
}

func (s *session) newStages() stages {
	timing, operators := s.cfg.Timing, uninstall.NewOperators()
	hooks := webhooks.New(s.client, s.cfg.Now)
	var t stages
	t.env = &scope.Env{
		Client: s.client, Log: s.cfg.Log, Now: s.cfg.Now, Points: s.points, Pause: timing.Pause, Contents: s.contents,
		Rendering: s.cfg.Rendering, Configs: s.cfg.Configs,
		Pace: pace.New(timing.Backoff, timing.Longest), Trail: s.trail, Specs: provenance.NewSpecs(),
		Rendered: scope.NewRenderedStates(), Parts: scope.NewParts(), Seen: s.positions.of, Note: s.positions.note,
		Stop:         s.stopped,
		NoteOperator: func(o *unstructured.Unstructured, csv bundle.CSV) { operators.Note(o, csv) },
	}
	t.logs = steplog.New(steplog.Config{
		GrantKey: s.cfg.GrantKey, ClusterID: s.cfg.ClusterID, Grace: timing.Grace, Backoff: timing.Backoff,
		Longest: timing.Longest, Webhooks: hooks,
	})
	write := objects.New(s.overlays, s.wake, s.inbox.All)
	t.config = &clusterconfig.Stage{Cache: s.configCache}
	t.serving = &serving.Stage{Objects: write, Store: s.certificates, Facts: s.facts}
	t.rerender = &rerender.Stage{Objects: write, Conversions: t.serving}
	t.deferred = &deferred.Stage{Objects: write, Await: s.waiting.awaitGroups}
	t.drift = &drift.Stage{Objects: write, Store: drift.NewStore(), Facts: s.facts, Conversions: t.serving}
	t.report = &report.Stage{Reporter: s.reporter, Logs: t.logs, Drifts: t.drift.Store}
	t.uninstall = &uninstall.Stage{
		Client: s.client, Cluster: s.cfg.Cluster, Objects: write, Logs: t.logs, Known: operators,
		Conversions: t.serving, Describe: t.report.Operator,
	}
	t.lifecycle = &lifecycle.Stage{
		Objects: write, Facts: s.facts, Unready: unready.New(s.client, s.cfg.Now, timing.Grace), Webhooks: hooks,
		Serving: t.serving, Deferred: t.deferred, Rerender: t.rerender, Remover: t.uninstall, Version: s.version,
		Await: s.waiting.await,
	}
	t.uninstall.Lifecycle = t.lifecycle
	t.group = &group.Stage{
		Groups: s.groups, Hub: s.inbox, Facts: s.facts, Wake: s.wakeOnes, RolesWait: timing.Roles,
		Halt: t.uninstall.Halt,
	}
	t.mirror = &mirror.Stage{Keeper: s.mirrors, GroupReport: t.group.Report}
	t.condition = &condition.Stage{Mirrors: t.mirror, Facts: s.facts}
	t.report.Group, t.report.Removals = t.group.Report, t.uninstall.Reports
	t.plan = plan.New(plan.Deps{
		Objects: write, Logs: t.logs, Webhooks: hooks, Signals: s.signals, Facts: s.facts, Group: t.group,
		Serving: t.serving, Conditions: t.condition, Version: s.version, Await: s.waiting.await,
	})
	return t
}

// overlays are all overlays of a namespace, in the order in which they are applied.
func (s *session) overlays(sc *scope.Scope) overlay.Set {
	return overlay.Set{s.group.Overlay(sc), s.serving.Overlay(sc), s.config.Proxy(sc), s.config.PullSecrets(sc)}
}

// scope is a namespace of which nothing was read yet.
func (s *session) scope(wanted protocol.ScopePlans) *scope.Scope {
	return scope.New(s.env, wanted, s.renders.Slot(), s.cfg.Timing.Resync)
}

// reconcile does everything that can be done for one namespace now.
func (s *session) reconcile(ctx context.Context, namespace string) (again time.Duration, err error) {
	wanted, behind, known := s.inbox.Get(namespace)
	if !known {
		return s.cfg.Timing.Resync, nil // the hub has not said yet what is wanted; a phase depends on it
	}
	if err := s.checkOLM(ctx); err != nil {
		return 0, err
	}
	sc := s.scope(wanted)
	defer sc.Slot.Release()
	// A record that is behind what was acted on here, or holds another event there, has lost commits.
	acted := s.positions.of(namespace)
	sc.Snapshot.RecordBehind = behind || wanted.Position.Less(acted.Position) ||
		acted.Contradicts(wanted.Position, wanted.Proof)
	if err := s.logs.In(sc).Read(ctx); err != nil {
		return 0, err
	}
	if sc.Snapshot.Resting() {
		if err := sc.Slot.Acquire(ctx); err != nil {
			return 0, err
		}
	}
	if err = s.stageList().run(ctx, sc); err != nil && !failure.Final(ctx, err) {
		s.report.SendBegun(ctx, sc)
	}
	if err == nil && !sc.Snapshot.RecordBehind && wanted.Nothing() && len(sc.Snapshot.Installed.Everybody()) == 0 &&
		s.positions.of(namespace).Less(s.positions.highest().Position) {
		// Nothing here can be acted on any more. The cluster's highest position stays: it is what tells of a loss.
		err = s.positions.forget(ctx, namespace)
	}
	return sc.Attempts.Again(), err
}

// stageList are the stages of a reconcile, in their order. Most run once; what one has found out the next finds in the
// scope:
//
//	read the cluster's configuration, the operator group, the certificates: overlays depend on them
//	note the Deployments of plans that have begun: a phase depends on whether these run
//	plans, which may need the phases to be reconciled on the way
//	removals, before phases are reconciled: who is being uninstalled is not repaired
//	phases, then what plans have left
//	components, for the mirrors and the report; roles of users, once nobody waits for a phase
//	drift, when phases have written what they write; mirrors, which show the outcome; old step logs
//	the report, which says what has become of all
func (s *session) stageList() stageList {
	phases := phases{stageList{
		{"operator group", s.group},
		{"pull secrets", s.config},
		{"serving", s.serving},
		{"overlays", s.rerender},
		{"operator conditions", s.condition},
		{"phases", s.lifecycle},
	}}
	return stageList{
		{"configuration of the cluster", clusterconfig.Reader{Cache: s.configCache}},
		{"targets of the operator group", group.Reader{Stage: s.group}},
		{"certificates", serving.Reader{Stage: s.serving}},
		{"expected Deployments", plan.Deployments{Stage: s.plan}},
		{"plans", plans{steps: s.plan.Steps(), phases: phases}},
		{"removals", s.uninstall},
		{"phases", phases},
		{"objects left by plans", s.deferred},
		{"components", report.Components{}},
		{"roles of users", group.Users{Stage: s.group}},
		{"drift", s.drift},
		{"mirrors", s.mirror},
		{"old step logs", steplog.Pruner{}},
		{"report", s.report},
	}
}

// stageList are stages that run one after the other; the first error ends them.
type stageList []namedStage

type namedStage struct {
	name  string // for the log
	stage scope.Stage
}

// run runs the stages once each. An error, and what the log has of a panic, names the stage.
func (l stageList) run(ctx context.Context, sc *scope.Scope) error {
	for _, s := range l {
		err := failure.Guard(ctx, sc.Env.Log, s.name+" of namespace "+sc.Namespace, func() error {
			_, err := s.stage.Reconcile(ctx, sc)
			return err
		})
		if err != nil && stageOf(err) == "" { // else it is a stage within this one
			err = stageError{stage: s.name, error: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stageError is an error with the stage that met it, for the log: what people are told of a failure is its own text.
type stageError struct {
	stage string
	error
}

func (e stageError) Unwrap() error { return e.error }

// stageOf names the stage that an error comes from, "" where that was met before the first.
func stageOf(err error) string {
	e, _ := errors.AsType[stageError](err)
	return e.stage
}

// plans carries the plans as far as they go. A plan that waits for the phase of an operator goes on after the phases
// were reconciled.
type plans struct {
	steps  steps
	phases scope.Stage
}

// steps are those of the plans of one reconcile (plan.Steps).
type steps interface {
	scope.Stage
	PhasesFailed(err error)
}

// Reconcile runs the plans, and the phases as often as a plan waits for them.
func (p plans) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	if !sc.Snapshot.Resting() {
		sc.Slot.Release() // a plan may take its time
	}
	result, err := p.steps.Reconcile(ctx, sc)
	for err == nil && result.Again {
		sc.Env.Log.DebugContext(ctx, "plans wait for phases", "namespace", sc.Namespace, "for", result.Why)
		_, failed := p.phases.Reconcile(ctx, sc)
		p.steps.PhasesFailed(failed)
		result, err = p.steps.Reconcile(ctx, sc)
	}
	return result, err
}

// phases keeps what the operators need beside the objects of their plans, and moves them through their phases.
type phases struct{ stageList }

// Reconcile reads the operators where that is not done, and runs the stages.
func (p phases) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	if !sc.Snapshot.Installed.Loaded || len(sc.Snapshot.Wanted.Removals) > 0 {
		if err := sc.Load(ctx); err != nil {
			return res, err
		}
	}
	if sc.Snapshot.RecordBehind {
		return res, nil
	}
	return res, p.run(ctx, sc)
}
