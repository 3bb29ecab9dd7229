package kube

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Execution is one PlanExecution object: which plan is carried out, and its step log. It lies in the
// plan's namespace under the plan's id, and is the only memory of an executor.
type Execution struct {
	Namespace string
	Spec      ExecutionSpec
	Status    ExecutionStatus
	raw       *unstructured.Unstructured
}

// ExecutionSpec never changes.
type ExecutionSpec struct {
	Plan      string `json:"plan"` // id
	Name      string `json:"name"`
	Digest    string `json:"digest"`
	Component string `json:"component"`
	Steps     int    `json:"steps"`
	// Removal is set where an operator is removed: Plan is the id of the request then.
	Removal *protocol.Removal `json:"removal,omitempty"`
	// Grant is that under which the plan was opened; a removal has its own. It says that the hub wants what is written
	// here, whoever wrote it.
	Grant protocol.Grant `json:"grant,omitzero"`
	// Account is the user name under which the plan's objects are written (R-OG-60), "" for Chandler itself.
	Account string `json:"account,omitempty"`
	// Operators are the ClusterServiceVersions that the plan brings, so that they are known while it cannot be read.
	Operators []string `json:"operators,omitempty"`
	// Configs are the subscriptions' configurations by ClusterServiceVersion, to render its Deployments again when one
	// is lost. They are sealed to the executors of the cluster: whoever reads PlanExecutions reads no values.
	Configs map[string]json.RawMessage `json:"configs,omitempty"`
}

// ExecutionStatus is the step log and what stands in its way.
type ExecutionStatus struct {
	Phase   string `json:"phase,omitempty"` // Started, Blocked, Finished, Failed as in protocol
	Begun   bool   `json:"begun,omitempty"` // the first step was taken
	Class   string `json:"class,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when what stands in the way was met first.
	Since time.Time `json:"since,omitzero"`
	// Attempts counts tries of the step that is in the way; NotBefore is when the next may start.
	Attempts  int       `json:"attempts,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Steps     []Step    `json:"steps,omitempty"`
	// Removed are the final report of ClusterServiceVersions that this plan's ones replaced, or that were uninstalled.
	Removed []protocol.CSVReport `json:"removed,omitempty"`
	// Left is what stays when an operator is removed.
	Left []protocol.Leftover `json:"left,omitempty"`
}

// States of a step in the log.
const (
	StepTaken = "Taken" // somebody set about it; whether it was done shows the object
	StepDone  = "Done"
	StepLeft  = "Left" // a caller that was not written, since the Deployments that are to answer had failed
)

// Step is one entry of the log.
type Step struct {
	Index     int    `json:"index"`            // 1-based place in the plan
	Action    string `json:"action,omitempty"` // of a removal; the steps of one index go together
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"` // of a removal
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Digest    string `json:"digest"`
	State     string `json:"state"`
	// of a step that was left: the ClusterServiceVersion to which it belongs
	Operator string `json:"operator,omitempty"`
	UID      string `json:"uid,omitempty"`
	Epoch    int64  `json:"epoch"` // of the holder that set about it
	// Found is set when the object already was as wanted after a crash, and was not written again.
	Found bool `json:"found,omitempty"`
	// Warnings are those of the API server, and fields that it would not keep (R-IP-25).
	Warnings []string  `json:"warnings,omitempty"`
	Time     time.Time `json:"time"`
}

// Done counts the steps that are finished.
func (s ExecutionStatus) Done() int {
	n := 0
	for _, step := range s.Steps {
		if step.State == StepDone {
			n++
		}
	}
	return n
}

// Wrote reports an object of a step that is finished.
func (s ExecutionStatus) Wrote(group, kind, namespace, name string) bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool {
		return step.State == StepDone && step.Group == group && step.Kind == kind && step.Namespace == namespace &&
			step.Name == name
	})
}

// Warnings counts those of all steps.
func (s ExecutionStatus) Warnings() int {
	n := 0
	for _, step := range s.Steps {
		n += len(step.Warnings)
	}
	return n
}

// Taken are the places of steps that were set about and are not known to be done.
func (s ExecutionStatus) Taken() []int {
	var out []int
	for i, step := range s.Steps {
		if step.State == StepTaken {
			out = append(out, i)
		}
	}
	return out
}

// StepLogs are the PlanExecutions of the cluster.
type StepLogs struct{ *Epoch }

// Execution reads the execution of a plan, nil when there is none.
func (e StepLogs) Execution(ctx context.Context, namespace, plan string) (*Execution, error) {
	o, err := e.Get(ctx, gvkExecution, namespace, plan)
	if err != nil || o == nil {
		return nil, err
	}
	return parseExecution(o)
}

// Executions lists those of a namespace, and why others cannot be read: those stand in nobody else's way.
func (e StepLogs) Executions(ctx context.Context, namespace string) (out []*Execution, unread []error, err error) {
	list, err := e.List(ctx, gvkExecution, namespace, "")
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		x, err := parseExecution(&list[i])
		if err != nil {
			unread = append(unread, err)
			continue
		}
		out = append(out, x)
	}
	return out, unread, nil
}

// Open creates the execution of a plan, or returns the one that is there.
func (e StepLogs) Open(ctx context.Context, namespace string, spec ExecutionSpec) (*Execution, error) {
	body, err := toMap(spec)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode execution of plan %s", spec.Name)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": body}}
	o.SetGroupVersionKind(gvkExecution)
	o.SetNamespace(namespace)
	o.SetName(spec.Plan)
	o.SetLabels(ownLabels())
	made, err := e.objects(gvkExecution, namespace).Create(ctx, o, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return e.Execution(ctx, namespace, spec.Plan)
	}
	if err != nil {
		return nil, err
	}
	return parseExecution(made)
}

// Save writes the status by compare-and-set on what was read: an execution that somebody else moved
// on is a conflict, and nothing is written.
func (e StepLogs) Save(ctx context.Context, x *Execution) error {
	body, err := toMap(x.Status)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode step log of plan %s", x.Spec.Name)
	}
	next := x.raw.DeepCopy()
	next.Object["status"] = body
	written, err := e.UpdateStatus(ctx, next)
	if err != nil {
		return err
	}
	x.raw = written
	return nil
}

// Stored returns the execution as it was last read or written: what is noted since may be lost.
func (x *Execution) Stored() (*Execution, error) { return parseExecution(x.raw) }

// Proven reports errs.Forbidden unless the hub granted what the execution says that it is, in this cluster. Whether the
// grant has run out counts before the first step only (DESIGN D6), and is another question.
func (x *Execution) Proven(key keys.Accepted, clusterID string) error {
	g, want := x.Spec.Grant, x.Spec.Digest
	if r := x.Spec.Removal; r != nil {
		d, err := r.Digest()
		if err != nil {
			return err
		}
		g, want = r.Grant, string(d)
	}
	user := ""
	if g.Account != "" {
		user = Account{Namespace: g.Namespace, Name: g.Account}.User()
	}
	same := g.Plan == x.Spec.Plan && g.Digest == want && g.Cluster == clusterID && g.Namespace == x.Namespace &&
		user == x.Spec.Account
	if err := g.Verify(key); err != nil || !same {
		return errs.New(errs.Forbidden,
			"PlanExecution %s/%s is not what the hub granted: nothing is done for it; delete it, and what the hub "+
				"wants begins anew", x.Namespace, x.Spec.Plan)
	}
	return nil
}

// Discard removes an execution that nobody needs any more.
func (e StepLogs) Discard(ctx context.Context, x *Execution) error { return e.Delete(ctx, x.raw) }

func parseExecution(o *unstructured.Unstructured) (*Execution, error) {
	x := &Execution{Namespace: o.GetNamespace(), raw: o}
	for key, into := range map[string]any{"spec": &x.Spec, "status": &x.Status} {
		part, ok := o.Object[key].(map[string]any)
		if !ok {
			continue
		}
		if err := fromMap(part, into); err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "PlanExecution %s/%s: %s", o.GetNamespace(), o.GetName(), key)
		}
	}
	if x.Spec.Plan != o.GetName() {
		return nil, errs.New(errs.Invalid, "PlanExecution %s/%s is named otherwise than its plan, %q", o.GetNamespace(),
			o.GetName(), x.Spec.Plan)
	}
	return x, nil
}
