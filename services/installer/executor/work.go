package executor

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
)

const (
	// keptExecutions is how many ended executions stay beside those that are still referred to (R-IP-4).
	keptExecutions = 5
	// gatePause is how soon a plan that waits for requirements looks again if no hint comes.
	gatePause = 5 * time.Second
	// removedFor is how long the last words of a replaced ClusterServiceVersion are reported at least.
	removedFor = time.Hour
)

// work is one look at one namespace.
type work struct {
	*session
	ns         string
	plans      protocol.ScopePlans
	refused    bool // the message comes from a record that has gone back
	executions []*cluster.Execution
	opened     map[string]ready               // by plan id
	outcomes   map[string]protocol.PlanReport // by plan id
	// wanted are the hashes of the Deployments that begun plans are about to write, by ClusterServiceVersion.
	wanted  map[string]map[string]string
	members []*member
	// unread are the ClusterServiceVersions that exist and cannot be read, with their plans.
	unread map[string]string
	gone   []protocol.CSVReport
	again  time.Duration
}

func (w *work) soon(d time.Duration) {
	if d > 0 && d < w.again {
		w.again = d
	}
}

func (w *work) execution(plan string) *cluster.Execution {
	i := slices.IndexFunc(w.executions, func(x *cluster.Execution) bool { return x.Spec.Plan == plan })
	if i < 0 {
		return nil
	}
	return w.executions[i]
}

// ready is a plan with everything that its steps need.
type ready struct {
	protocol.Plan
	document installplan.Document
	objects  []render.Object
}

// open reads and checks a plan, once for a look: its digest, before it is begun the operator group that it
// stands on, then what rendering gives against its steps. A plan that was begun goes on with the
// group and the configurations that it was begun with.
func (w *work) open(ctx context.Context, p protocol.Plan, x *cluster.Execution) (ready, *failure) {
	if r, ok := w.opened[p.ID]; ok {
		return r, nil
	}
	r, f := w.parse(p)
	if f != nil {
		return r, f
	}
	group := w.group()
	switch {
	case x != nil:
		group.Name, group.Targets, r.Configs = x.Spec.Group, x.Spec.Targets, x.Spec.Configs
	case !w.standsOn(r.document.Base.OperatorGroup):
		return r, &failure{class: classConflict, reason: reasonBase, quick: true, message: "the operator group is another one than the plan was made for"}
	}
	for _, b := range r.document.Bundles {
		objects, f := w.render(ctx, b, r.Configs[b.CSV], group)
		if f != nil {
			return r, f
		}
		r.objects = append(r.objects, objects...)
	}
	if f := r.compare(); f != nil {
		return r, f
	}
	w.opened[p.ID] = r
	return r, nil
}

// standsOn compares the operator group with the one of a plan's base; a plan that names none stands on any.
func (w *work) standsOn(want string) bool {
	if want == "" {
		return true
	}
	g := w.plans.OperatorGroup
	have, err := installplan.BaseFacts{OperatorGroup: installplan.GroupFacts{Name: g.Name, Spec: g.Spec}}.Base()
	return err == nil && have.OperatorGroup == want
}

func (w *work) parse(p protocol.Plan) (ready, *failure) {
	r := ready{Plan: p}
	got, err := digest.JSON(installplan.DocumentType, p.Document)
	if err != nil || string(got) != p.Digest {
		return r, &failure{class: classPermanent, reason: reasonDigest, message: "the plan's document has digest " + string(got) + ", not " + p.Digest}
	}
	if err := json.Unmarshal(p.Document, &r.document); err != nil {
		return r, &failure{class: classPermanent, reason: reasonDigest, message: err.Error()}
	}
	return r, nil
}

func (w *work) group() render.OperatorGroup {
	return render.OperatorGroup{Name: w.plans.OperatorGroup.Name, Namespace: w.ns, Targets: w.plans.OperatorGroup.Spec.TargetNamespaces}
}

func (w *work) render(ctx context.Context, b events.PlannedBundle, config json.RawMessage, group render.OperatorGroup) ([]render.Object, *failure) {
	var objects []render.Object
	err := guard(ctx, w.cfg.Log, "render of "+b.CSV, func() error {
		content, err := w.contents.Get(ctx, digest.Digest(b.Content))
		if err != nil {
			return err
		}
		objects, err = render.Render(render.Input{Content: content, Namespace: w.ns, Group: group, Config: config})
		return err
	})
	if err == nil {
		return objects, nil
	}
	f := classifyContent(errs.Wrap(errs.KindOf(err), err, "bundle %s", b.CSV))
	return nil, &f
}

// compare refuses a plan whose steps are not what rendering gives here.
func (r ready) compare() *failure {
	mismatch := func(text string) *failure {
		return &failure{class: classPermanent, reason: reasonDigest, message: text}
	}
	if len(r.objects) != len(r.document.Steps) {
		return mismatch("the plan has a different number of steps than its bundles give")
	}
	for i, o := range r.objects {
		s := r.document.Steps[i]
		d, err := o.Digest()
		if err != nil {
			return mismatch(err.Error())
		}
		if s.Group != o.GVK.Group || s.Version != o.GVK.Version || s.Kind != o.GVK.Kind || s.Namespace != o.Namespace || s.Name != o.Name || s.Digest != d {
			return mismatch("step " + s.Kind + " " + s.Name + " is not what its bundle gives: " + o.String() + " with digest " + string(d))
		}
	}
	return nil
}

// collectWanted notes the Deployments of plans that are begun and not ended, so that a
// ClusterServiceVersion that runs with other ones is seen to need an install.
func (w *work) collectWanted(ctx context.Context) {
	for _, p := range w.plans.Plans {
		x := w.execution(p.ID)
		if x == nil || !x.Status.Begun || ended(x) {
			continue
		}
		if r, f := w.open(ctx, p, x); f == nil {
			w.want(r)
		}
	}
}

func (w *work) want(r ready) {
	for _, o := range r.objects {
		if o.GVK.Kind != "Deployment" {
			continue
		}
		if w.wanted[o.Resolving] == nil {
			w.wanted[o.Resolving] = map[string]string{}
		}
		w.wanted[o.Resolving][o.Name] = labelOf(o.Body, render.LabelDeploymentHash)
	}
}

func labelOf(body map[string]any, key string) string {
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		return ""
	}
	labels, ok := meta["labels"].(map[string]any)
	if !ok {
		return ""
	}
	s, ok := labels[key].(string)
	if !ok {
		return ""
	}
	return s
}

func ended(x *cluster.Execution) bool {
	return x.Status.Phase == protocol.PlanFinished || x.Status.Phase == protocol.PlanFailed
}

// prune removes executions that nobody refers to any more, but the newest few.
func (w *work) prune(ctx context.Context) error {
	var old []*cluster.Execution
	for _, x := range w.executions {
		referred := slices.ContainsFunc(w.members, func(m *member) bool { return m.plan == x.Spec.Plan }) ||
			slices.Contains(slices.Collect(maps.Values(w.unread)), x.Spec.Plan) ||
			slices.ContainsFunc(w.plans.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan })
		if ended(x) && !referred {
			old = append(old, x)
		}
	}
	if len(old) <= keptExecutions {
		return nil
	}
	slices.SortFunc(old, func(a, b *cluster.Execution) int {
		if c := a.Status.Ended.Compare(b.Status.Ended); c != 0 {
			return c
		}
		return strings.Compare(a.Spec.Plan, b.Spec.Plan)
	})
	for _, x := range old[:len(old)-keptExecutions] {
		if err := w.client.Discard(ctx, x); err != nil {
			return err
		}
	}
	return nil
}
