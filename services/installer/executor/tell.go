package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/group"
)

// stepLogType is the type prefix of a step log's digest.
const stepLogType = "chandler.steplog.v1"

// maxUnlistedLogs bounds the bytes of the step logs of plans that the hub does not ask for: a quarter of a
// NATS message, so that they never crowd out what it asks for.
const maxUnlistedLogs = 256 << 10

// report hands everything that is known of the namespace to the reporter.
func (w *work) report() {
	r := w.scopeReport()
	for _, p := range w.Wanted.Plans {
		if o, ok := w.Outcomes[p.ID]; ok {
			r.Plans = append(r.Plans, o)
		}
	}
	r.Plans = append(r.Plans, w.unlisted()...)
	r.CSVs = append(w.FinalReports(), w.Deleted...)
	for _, m := range w.Operators {
		r.CSVs = append(r.CSVs, w.describe(m))
	}
	for _, tell := range []func(*protocol.ScopeReport){w.tellGroup, w.tellRemovals} {
		tell(&r)
	}
	w.reporter.Scope(r)
}

// scopeReport is a report that says nothing yet.
func (w *work) scopeReport() protocol.ScopeReport {
	seen := w.seenAt(w.Namespace)
	return protocol.ScopeReport{Scope: w.Wanted.Scope, Epoch: w.Client.Number, Seen: seen.Position, Proof: seen.Proof}
}

// describe is what the hub is told of a member.
func (w *work) describe(m *scope.Operator) protocol.CSVReport {
	r := m.Report()
	r.Drift = w.driftOf(m.Name())
	rows, err := json.Marshal(csv.Brief(m.Status.RequirementStatus))
	if err != nil {
		w.Log.Error("requirements cannot be encoded", "csv", m.Name(), "namespace", w.Namespace, "error", err)
	}
	if len(m.Status.RequirementStatus) > 0 {
		r.Requirements = rows
	}
	if c, ok := w.Live.Conditions[m.Name()]; ok {
		r.Condition = &c
	}
	r.Components = w.Live.Components[m.Name()]
	r.Message, r.Conditions = m.Status.Message, w.ConditionsOf(m)
	unready := w.Live.Unready[m.Name()]
	for _, name := range slices.Sorted(maps.Keys(unready)) {
		r.NotReady = append(r.NotReady, unready[name])
	}
	return r
}

// driftOf is what is told of an operator, by object.
func (w *work) driftOf(name string) []protocol.Drift {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []protocol.Drift
	for ref, d := range w.drifts[w.Namespace] {
		if d.operator != name {
			continue
		}
		if age := w.Now().Sub(d.Since); d.Corrected && age > correctedFor {
			delete(w.drifts[w.Namespace], ref)
			continue
		}
		out = append(out, d.Drift)
	}
	slices.SortFunc(out, func(a, b protocol.Drift) int { return strings.Compare(a.Group+a.String(), b.Group+b.String()) })
	return out
}

// drifted is one drift with the operator that it concerns.
type drifted struct {
	protocol.Drift
	operator string
}

func (w *work) noteDrift(m *scope.Operator, d protocol.Drift) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drifts[w.Namespace] == nil {
		w.drifts[w.Namespace] = map[protocol.ObjectRef]drifted{}
	}
	w.drifts[w.Namespace][d.ObjectRef] = drifted{Drift: d, operator: m.Name()}
}

// forgetDrifts forgets what was told of operators that are gone.
func (w *work) forgetDrifts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.drifts[w.Namespace], func(_ protocol.ObjectRef, d drifted) bool { return !w.Lives(d.operator) })
	w.Pace.Keep(w.Namespace, w.Lives)
}

// lookAtComponents finds the state of every object of the operators (R-CSV-62). What the watch knows is believed; what
// it does not know may just have been made, and is asked for.
func (w *work) lookAtComponents(ctx context.Context) error {
	w.Live.Components = map[string][]protocol.Component{}
	if w.RecordBehind {
		return nil
	}
	for _, m := range w.Operators {
		refs, err := w.partsOf(ctx, m)
		if err != nil { // its bundle is not to be had now
			w.Log.DebugContext(ctx, "components are not known", "csv", m.Name(), "namespace", w.Namespace, "error", err)
			continue
		}
		list := make([]protocol.Component, 0, len(refs))
		for _, ref := range refs {
			c, err := w.component(ctx, m, ref)
			if err := w.Alone(ctx, m.Name(), scope.PartComponents, err); err != nil {
				return err
			}
			if err == nil {
				list = append(list, c)
			}
		}
		w.Live.Components[m.Name()] = scope.WithWaiting(list, w.WaitingComponents(m))
	}
	return nil
}

func (w *work) component(ctx context.Context, m *scope.Operator, ref protocol.ObjectRef) (protocol.Component, error) {
	gvk := schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}
	if gvk == kube.GVKInstalledOperator {
		return csv.ComponentOfPhase(ref, m.Status), nil
	}
	if o, listed := w.Live.Deployments.ByName[ref.Name]; listed && gvk == kube.GVKDeployment {
		c := csv.ComponentOf(ref, o)
		if d, ok := w.Live.Unready[m.Name()][ref.Name]; ok && d.Message != "" {
			c.Message = d.Message
		}
		return c, nil
	}
	if there, leaving := w.Watcher.There(gvk, ref.Namespace, ref.Name); there && gvk != kube.GVKDeployment {
		return csv.ComponentOfRow(ref, leaving, m.Status.RequirementStatus), nil
	}
	if x := w.Execution(m.Plan); x != nil && !scope.Ended(x) && !x.Status.Wrote(gvk.Group, gvk.Kind, ref.Namespace, ref.Name) {
		return csv.ComponentOf(ref, nil), nil // its step is still to come
	}
	o, err := w.Client.Get(ctx, gvk, ref.Namespace, ref.Name)
	if err != nil {
		return protocol.Component{}, err
	}
	return csv.ComponentOf(ref, o), nil
}

// outcome notes what the report says of a plan. f is a block that no log holds. A transient failure is
// told when it has lasted for a while: what is over by itself is no fact worth recording.
func (w *work) outcome(p protocol.Plan, x *kube.Execution, f *failure.Failure) {
	r := protocol.PlanReport{ID: p.ID, Steps: hubclient.CountSteps(p), TraceParent: p.TraceParent}
	if w.tell(&r, x, f) {
		w.Outcomes[p.ID] = r
	}
}

// tell fills in what the execution and the block say, and reports whether there is anything to be told.
func (w *work) tell(r *protocol.PlanReport, x *kube.Execution, f *failure.Failure) bool {
	r.Phase = protocol.PlanBlocked
	if x != nil {
		s := x.Status
		r.Warnings = s.Warnings()
		r.Begun, r.Done, r.Class, r.Reason, r.Message = s.Begun, s.Done(), s.Class, s.Reason, s.Message
		if s.Phase != "" {
			r.Phase = s.Phase
		}
		if scope.Ended(x) {
			r.StepLog = w.stepLog(x)
		}
	}
	if f != nil {
		r.Phase, r.Class, r.Reason, r.Message = protocol.PlanBlocked, f.Class, f.Reason, f.Message
	}
	if r.Phase == protocol.PlanBlocked && w.young(r.ID, r.Class, x) {
		if !r.Begun {
			return false
		}
		r.Phase, r.Class, r.Reason, r.Message = protocol.PlanStarted, "", "", ""
	}
	return true
}

// young reports a transient block that is not told yet, and sees to it that it will be.
func (w *work) young(id, class string, x *kube.Execution) bool {
	if class == "" {
		return true // opened, and nothing has happened yet
	}
	if class != failure.Transient {
		return false
	}
	since := w.Now()
	if x != nil {
		since = x.Status.Since
	} else {
		w.mu.Lock()
		if note, ok := w.retry[id]; ok {
			since = note.since
		}
		w.mu.Unlock()
	}
	left := w.cfg.Timing.Grace - w.Now().Sub(since)
	w.Soon(left)
	return left > 0
}

// stepLog is the log as canonical JSON.
func (w *work) stepLog(x *kube.Execution) []byte {
	log, err := digest.Canonical(map[string]any{"type": stepLogType, "plan": x.Spec.Plan, "digest": x.Spec.Digest, "steps": x.Status.Steps})
	if err != nil {
		w.Log.Error("step log cannot be encoded", "plan", x.Spec.Name, "error", errs.Wrap(errs.Internal, err, "encode"))
		return nil
	}
	return log
}

// unlisted are the reports of plans that were begun and that the hub does not name (any more): one that was
// superseded while its first step was on the way here is known to the hub as never begun until it is told.
// Those under way come first, then the ended ones as long as they are kept, newest first, within a bound.
func (w *work) unlisted() []protocol.PlanReport {
	var out []protocol.PlanReport
	logs := 0
	for _, x := range newestFirst(w.Executions) {
		if !x.Status.Begun || x.Spec.Removal != nil || slices.ContainsFunc(w.Wanted.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }) {
			continue
		}
		r := protocol.PlanReport{ID: x.Spec.Plan, Steps: x.Spec.Steps}
		if !w.tell(&r, x, nil) {
			continue
		}
		if logs += len(r.StepLog); logs > maxUnlistedLogs {
			break
		}
		out = append(out, r)
	}
	return out
}

// newestFirst sorts those that are under way before all, then by their end.
func newestFirst(all []*kube.Execution) []*kube.Execution {
	return slices.SortedFunc(slices.Values(all), func(a, b *kube.Execution) int {
		under := func(x *kube.Execution) int {
			if scope.Ended(x) {
				return 1
			}
			return 0
		}
		return cmp.Or(under(a)-under(b), b.Status.Ended.Compare(a.Status.Ended), strings.Compare(a.Spec.Plan, b.Spec.Plan))
	})
}

// reportBegun tells after a look that ended in an error what is certain all the same: the plans that are
// begun, as their logs in the cluster say. What was noted since and not written is left out.
func (w *work) reportBegun(ctx context.Context) {
	stored := scope.New(w.Env, w.Wanted, w.Slot, w.Again())
	of := &work{session: w.session, Scope: stored}
	for _, x := range w.Executions {
		s, err := x.Stored()
		if err != nil {
			w.Log.WarnContext(ctx, "a step log is not reported", "plan", x.Spec.Name, "namespace", w.Namespace, "error", err)
			continue
		}
		stored.Executions = append(stored.Executions, s)
	}
	r := w.scopeReport()
	for _, p := range w.Wanted.Plans {
		if x := stored.Execution(p.ID); x != nil && x.Status.Begun {
			of.outcome(p, x, nil)
			r.Plans = append(r.Plans, stored.Outcomes[p.ID])
		}
	}
	r.Plans = append(r.Plans, of.unlisted()...)
	w.reporter.Begun(r)
}

func (s *session) reportCluster() {
	seen := s.seenHighest()
	s.mu.Lock()
	tokenAuth := s.tokenAuth
	s.mu.Unlock()
	r := protocol.ClusterReport{
		Tenant: s.cfg.Tenant, Cluster: s.cfg.Cluster, ClusterID: s.cfg.ClusterID,
		State: "Connected", KubernetesVersion: s.version, HolderEpoch: s.client.Number, Seen: seen.Position, Proof: seen.Proof,
		TokenAuth: tokenAuth,
	}
	if r.Message = s.olmMessage(); r.Message != "" {
		r.Reason = failure.ReasonOLM
	}
	s.reporter.Cluster(r)
}

// tokensPause is the wait after the mode of cloud tokens could not be found out: it holds up nothing.
const tokensPause = time.Minute

// tellTokens finds out which mode of cloud tokens the cluster is in, and again after each hint (R-TOK-1).
func (s *session) tellTokens(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := clusterconfig.TokenAuth(ctx, s.client)
		if err != nil {
			s.cfg.Log.DebugContext(ctx, "the mode of cloud tokens is not known", "error", err)
			pause(ctx, tokensPause)
			continue
		}
		s.mu.Lock()
		changed := s.tokenAuth != found
		s.tokenAuth = found
		s.mu.Unlock()
		if changed {
			s.reportCluster()
		}
		select {
		case <-ctx.Done():
		case <-s.tokens:
		}
	}
}

// tokensChanged takes a change of what clusterconfig.TokenKinds name; false where it concerns something else.
func (s *session) tokensChanged(c watch.Change) bool {
	if !clusterconfig.IsTokenKind(c.GVK) {
		return false
	}
	select {
	case s.tokens <- struct{}{}:
	default: // somebody looks already
	}
	return true
}

// tellGroup says what the group comes to.
func (w *work) tellGroup(r *protocol.ScopeReport) {
	g := w.Live.Group
	if !g.One {
		return
	}
	out := &protocol.GroupReport{ID: g.ID, Name: g.Name, Targets: g.Targets, ProvidedAPIs: w.groups.Claims.Provided(w.Namespace), Conditions: g.Conditions}
	if texts := w.Pace.Notes(w.Namespace, w.Now()); len(texts) > 0 {
		out.Conditions = append(slices.Clone(g.Conditions), group.UpkeepFailed(texts))
	}
	out.Roles = group.RoleNames(g.Group)
	r.Group = out
}
