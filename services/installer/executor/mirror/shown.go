package mirror

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// digestType is the type prefix of digests that stand for what a mirror is to be.
const digestType = "chandler.mirror.v1"

// Installed is an installed operator, with its InstalledOperator's UID and the ClusterServiceVersion as that has it.
type Installed struct {
	mirror.Operator
	UID string
	CSV bundle.CSV
	// Overrides are what its OperatorCondition is to say by Chandler in the place of the operator; nil for nothing.
	// Where they are not known, those that are there stay.
	Overrides      *protocol.Overrides
	OverridesKnown bool
}

// own makes the InstalledOperator the owner of an object in its namespace.
func (i Installed) own(body map[string]any) {
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		return
	}
	meta["ownerReferences"] = []any{map[string]any{
		"apiVersion": kube.GVKInstalledOperator.GroupVersion().String(), "kind": kube.GVKInstalledOperator.Kind,
		"name": i.Name, "uid": i.UID, "blockOwnerDeletion": false, "controller": false,
	}}
}

// Showing is how operators of a namespace are shown.
type Showing struct {
	Group  mirror.Group
	Copies mirror.Copies
	// Namespaces are those of the cluster by name; needed where copies may be made.
	Namespaces map[string]map[string]string
	Now        time.Time
	// Manifest fetches a ClusterServiceVersion as its author wrote it.
	Manifest func(ctx context.Context, content digest.Digest) (bundle.CSV, error)
}

// Operator is the ClusterServiceVersion of an operator, and its copies. wait is after which time its phase is worth
// showing; 0 is now.
func (s Showing) Operator(i Installed, content digest.Digest) (list []Wanted, wait time.Duration, err error) {
	body, err := digest.JSON(digestType, map[string]any{
		"content": content, "package": i.Package, "replaces": i.Replaces, "group": s.Group.Name,
		"targets": s.Group.Targets, "uid": i.UID,
	})
	if err != nil {
		return nil, 0, err
	}
	status, err := mirror.StatusOf(i.Status)
	if err != nil {
		return nil, 0, err
	}
	says := ""
	ok, wait := mirror.Settled(i.Status, s.Now)
	if ok {
		d, err := digest.JSON(digestType, status)
		if err != nil {
			return nil, 0, err
		}
		says = string(d)
	}
	build := s.builder(i, content, status)
	want := func(namespace string, build func(context.Context) (mirror.Object, error)) {
		list = append(list, Wanted{
			Key: Key{GVK: mirror.GVKCSV, Namespace: namespace, Name: i.Name}, Body: string(body),
			Status: says, Build: build,
		})
	}
	want(i.Namespace, build)
	list[0].Events = mirror.CSVEvents(i.Name, i.UID, i.Status.ConditionsDropped, history(i.Status))
	for _, ns := range mirror.CopiesTo(i.Operator, s.Group, s.Copies, s.Namespaces) {
		want(ns, func(ctx context.Context) (mirror.Object, error) {
			o, err := build(ctx)
			if err != nil {
				return o, err
			}
			c := mirror.Copy(o, ns)
			c.Status = mirror.CopyStatus(o.Status, i.Namespace)
			return c, nil
		})
	}
	return list, wait, nil
}

// history is the transitions of a status as they are reported.
func history(s csv.Status) []protocol.Transition {
	out := make([]protocol.Transition, len(s.Conditions))
	for i, c := range s.Conditions {
		out[i] = protocol.Transition{
			Phase: string(c.Phase), Reason: string(c.Reason), Message: c.Message,
			Time: c.LastTransitionTime,
		}
	}
	return out
}

// builder makes the ClusterServiceVersion, once for it and all copies.
func (s Showing) builder(i Installed, content digest.Digest, status map[string]any) func(
	context.Context) (mirror.Object, error) {
	var made *mirror.Object
	return func(ctx context.Context) (mirror.Object, error) {
		if made != nil {
			return *made, nil
		}
		c, err := s.Manifest(ctx, content)
		if err != nil {
			return mirror.Object{}, err
		}
		manifest, err := mirror.Manifest(c.Raw)
		if err != nil {
			return mirror.Object{}, err
		}
		o, err := mirror.ClusterServiceVersion(i.Operator, s.Group, manifest)
		if err != nil {
			return o, err
		}
		i.own(o.Body)
		o.Status = status
		made = &o
		return o, nil
	}
}

// Small are mirrors that are built already, in order.
func Small(objects []mirror.Object) ([]Wanted, error) {
	slices.SortFunc(objects, func(a, b mirror.Object) int {
		return cmp.Or(strings.Compare(a.GVK.Kind, b.GVK.Kind), strings.Compare(a.Name, b.Name))
	})
	out := make([]Wanted, 0, len(objects))
	for _, o := range objects {
		body, err := digest.JSON(digestType, o.Body)
		if err != nil {
			return nil, err
		}
		status, err := digest.JSON(digestType, mirror.Timeless(o.Status))
		if err != nil {
			return nil, err
		}
		out = append(out, Wanted{
			Key: Key{GVK: o.GVK, Namespace: o.Namespace, Name: o.Name}, Body: string(body), Status: string(status),
			Build: func(context.Context) (mirror.Object, error) { return o, nil }, Events: o.Events,
		})
	}
	return out, nil
}

// Plans are the plans whose executions are kept, those that began first first. bundles are those of the plans that the
// hub still names, packages those of installed operators by name. Steps are shown at the end: each batch would be a
// write of its own.
func Plans(executions []*kube.Execution, bundles map[string][]events.PlannedBundle,
	packages map[string]string,
) []mirror.Plan {
	var out []mirror.Plan
	for _, x := range executions {
		s := x.Status
		p := mirror.Plan{
			ID: x.Spec.Plan, Name: x.Spec.Name, Phase: s.Phase, Message: s.Message, Started: s.Started,
			Ended: s.Ended,
		}
		resolving := ""
		for _, step := range s.Steps {
			if step.Kind == kube.GVKCSV.Kind {
				resolving = step.Name
				p.Bundles = append(p.Bundles, events.PlannedBundle{CSV: step.Name, Package: packages[step.Name]})
			}
			if len(step.Warnings) > 0 && step.State == kube.StepDone { // those of others are Chandler's own notes
				p.Warned = append(p.Warned, mirror.WarnedStep{
					Index: step.Index - 1, Resolving: resolving, Kind: step.Kind, Name: step.Name, Texts: step.Warnings,
					Time: step.Time,
				})
			}
			if !s.Ended.IsZero() {
				p.Steps = append(p.Steps, mirror.PlanStep{
					Resolving: resolving, GVK: schema.GroupVersionKind{Group: step.Group, Kind: step.Kind},
					Name: step.Name, Done: step.State == kube.StepDone,
				})
			}
		}
		if b, ok := bundles[x.Spec.Plan]; ok {
			p.Bundles = b
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b mirror.Plan) int {
		return cmp.Or(
			a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return out
}
