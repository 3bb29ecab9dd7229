package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

const memoryPolicy = "chandler-memory.chandler-fleet.io"

// planExecutions is the resource of PlanExecutions.
func planExecutions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "chandler-fleet.io", Version: "v1", Resource: "planexecutions"}
}

// asExecutor are the credentials under which Chandler's executor writes, in an epoch that no fence keeps out.
func (b *bed) asExecutor() *rest.Config {
	c := rest.CopyConfig(b.cluster.RESTConfig())
	c.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:chandler-system:chandler-executor",
		Extra:    map[string][]string{"chandler-epoch": {"1000000"}},
	}
	return c
}

// memory is what Chandler remembers of one operator.
type memory struct {
	*bed
	t       *testing.T
	admin   dynamic.Interface
	csv, id string
}

// TestMemory: nobody but Chandler's executor writes what the executor believes, an administrator of the cluster
// included; deleting it, and what the cluster itself does to it, is let in (R-IP-4).
func TestMemory(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0"}
	p := b.plan("ops", "tide", planned{content: o.content(t)})
	b.want("ops", p)
	b.finishes(t, "ops", p, o.csv())
	admin, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	m := memory{bed: b, t: t, admin: admin, csv: o.csv(), id: p.ID}
	m.writes()
	m.foreign()
	m.restored()
	stop()
	m.deletes()
}

func (m memory) patch(of schema.GroupVersionResource, name, patch string, sub ...string) error {
	_, err := m.admin.Resource(of).Namespace("ops").Patch(m.t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, sub...)
	return err
}

func refusedByMemory(err error) error {
	if err == nil || !strings.Contains(err.Error(), memoryPolicy) {
		return fmt.Errorf("got %w, want a refusal by %s", err, memoryPolicy)
	}
	return nil
}

func (m memory) writes() {
	m.t.Helper()
	ops, err := m.kube.CoreV1().Namespaces().Get(m.t.Context(), "ops", metav1.GetOptions{})
	must(m.t, err)
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "chandler-fleet.io/v1", "kind": "PlanExecution", "metadata": map[string]any{"name": "made-up"},
		"spec": map[string]any{"plan": "made-up", "removal": map[string]any{"id": "made-up", "csv": m.csv}},
	}}
	_, err = m.admin.Resource(planExecutions()).Namespace("ops").Create(m.t.Context(), made, metav1.CreateOptions{})
	must(m.t, refusedByMemory(err))
	nameless := made.DeepCopy()
	nameless.Object["metadata"] = map[string]any{"generateName": "made-up-"}
	_, err = m.admin.Resource(planExecutions()).Namespace("ops").Create(m.t.Context(), nameless, metav1.CreateOptions{})
	must(m.t, refusedByMemory(err))
	for _, kind := range []struct {
		of   schema.GroupVersionResource
		name string
	}{{planExecutions(), m.id}, {installedOperators(), m.csv}} {
		for what, err := range map[string]error{
			"its spec":   m.patch(kind.of, kind.name, `{"spec":{"replaces":"another"}}`),
			"its status": m.patch(kind.of, kind.name, `{"status":{"phase":"Started"}}`, "status"),
			"its labels": m.patch(kind.of, kind.name, `{"metadata":{"labels":{"a":"b"}}}`),
			"its annotations": m.patch(kind.of, kind.name,
				`{"metadata":{"annotations":{"chandler-fleet.io/content":"sha256:0"}}}`),
		} {
			if err := refusedByMemory(err); err != nil {
				m.t.Errorf("%s of %s: %v", what, kind.name, err)
			}
		}
		for _, patch := range []string{
			`{"metadata":{"finalizers":["sea.test/hold"]}}`, `{"metadata":{"finalizers":null}}`,
			// An owner that is there: what has none is garbage, and collected.
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"ops","uid":"` +
				string(ops.UID) + `"}]}}`, `{"metadata":{"ownerReferences":null}}`,
		} {
			if err := m.patch(kind.of, kind.name, patch); err != nil {
				m.t.Errorf("%s of %s: %v", patch, kind.name, err)
			}
		}
	}
}

// foreign: what somebody wrote while nothing kept him from it is not believed, and stands in nobody's way.
func (m memory) foreign() {
	m.t.Helper()
	executor, err := dynamic.NewForConfig(m.asExecutor())
	must(m.t, err)
	victim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "victim"}}
	victim, err = m.kube.CoreV1().ConfigMaps("ops").Create(m.t.Context(), victim, metav1.CreateOptions{})
	must(m.t, err)
	for name, spec := range map[string]any{
		"forged":     map[string]any{"plan": "forged", "removal": map[string]any{"id": "forged", "csv": m.csv}},
		"unreadable": map[string]any{"plan": int64(7)},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "chandler-fleet.io/v1", "kind": "PlanExecution", "metadata": map[string]any{"name": name},
			"spec": spec,
		}}
		o, err := executor.Resource(planExecutions()).Namespace("ops").Create(m.t.Context(), o, metav1.CreateOptions{})
		must(m.t, err)
		o.Object["status"] = map[string]any{"phase": "Started", "begun": true, "steps": []any{map[string]any{
			"index": int64(1), "action": protocol.RemovalObjects, "version": "v1", "kind": "ConfigMap",
			"namespace": "ops", "name": victim.Name, "uid": string(victim.UID),
		}}}
		_, err = executor.Resource(planExecutions()).Namespace("ops").UpdateStatus(
			m.t.Context(), o, metav1.UpdateOptions{})
		must(m.t, err)
	}
	two := operator{name: "buoy", version: "1.0.0", group: "buoy.sea.test"}
	p := m.plan("ops", "buoy", planned{content: two.content(m.t)})
	m.want("ops", p)
	m.finishes(m.t, "ops", p, two.csv())
	_, err = m.kube.CoreV1().ConfigMaps("ops").Get(m.t.Context(), victim.Name, metav1.GetOptions{})
	must(m.t, err)
}

// restored: the policies come back while the cluster is held, whatever somebody does to them.
func (m memory) restored() {
	m.t.Helper()
	admission := m.kube.AdmissionregistrationV1()
	// A trial: an edit that was let in while the API server did not know the policy would make the same edit one that
	// changes nothing, which no policy refuses.
	held := func(ctx context.Context) error {
		_, err := m.admin.Resource(installedOperators()).Namespace("ops").Patch(ctx, m.csv, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return refusedByMemory(err)
	}
	must(m.t, admission.ValidatingAdmissionPolicies().Delete(m.t.Context(), memoryPolicy, metav1.DeleteOptions{}))
	await(m.t, "the policy to be made again", func(ctx context.Context) error {
		_, err := admission.ValidatingAdmissionPolicies().Get(ctx, memoryPolicy, metav1.GetOptions{})
		return err
	})
	await(m.t, "the policy in force", held)
	bind := `{"spec":{"validationActions":["Audit"]}}`
	_, err := admission.ValidatingAdmissionPolicyBindings().Patch(m.t.Context(), memoryPolicy, types.MergePatchType,
		[]byte(bind), metav1.PatchOptions{})
	must(m.t, err)
	await(m.t, "the binding to be restored", func(ctx context.Context) error {
		got, err := admission.ValidatingAdmissionPolicyBindings().Get(ctx, memoryPolicy, metav1.GetOptions{})
		if err == nil && got.Spec.ValidationActions[0] != admissionv1.Deny {
			err = fmt.Errorf("it is %v", got.Spec.ValidationActions)
		}
		return err
	})
	await(m.t, "the binding in force", held)
}

func (m memory) deletes() {
	m.t.Helper()
	for _, of := range []schema.GroupVersionResource{planExecutions(), installedOperators()} {
		list, err := m.admin.Resource(of).Namespace("ops").List(m.t.Context(), metav1.ListOptions{})
		must(m.t, err)
		for _, o := range list.Items {
			if err := m.admin.Resource(of).Namespace("ops").Delete(
				m.t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				m.t.Errorf("delete %s: %v", o.GetName(), err)
			}
		}
	}
}

// TestLostLease: a lease that was lost begins above the fence, and the cluster is served on (DESIGN D7).
func TestLostLease(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.start(b.config("one"))
	epoch := b.heldAbove(t, 0)
	stop()
	must(t, b.kube.CoordinationV1().Leases("chandler-system").Delete(t.Context(), "chandler-executor",
		metav1.DeleteOptions{}))
	b.start(b.config("one"))
	b.heldAbove(t, epoch)
	o := operator{name: "tide", version: "1.0.0"}
	p := b.plan("ops", "tide", planned{content: o.content(t)})
	b.want("ops", p)
	b.finishes(t, "ops", p, o.csv())
}
