package executor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// forger is somebody whom no admission policy keeps from writing what Chandler remembers.
type forger struct {
	*bed
	t   *testing.T
	iop dynamic.ResourceInterface
}

// TestProvenance: who gets past the admission policy, or writes while it is away, has nothing of his own applied with
// Chandler's rights: what is put back, given and followed is what the hub granted (R-OG-44, DESIGN D6).
func TestProvenance(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	tide := operator{name: "tide", version: "1.0.0", configMap: "settings"}
	s := b.scope("ops")
	s.OperatorGroup.Spec.TargetNamespaces = []string{"ops", "default"}
	b.publish(s)
	p := b.plan("ops", "tide", planned{content: tide.content(t)})
	b.want("ops", p)
	c := b.finishes(t, "ops", p, tide.csv())
	executor, err := dynamic.NewForConfig(b.asExecutor())
	must(t, err)
	f := forger{bed: b, t: t, iop: executor.Resource(installedOperators()).Namespace("ops")}
	evil := operator{name: "tide", version: "1.0.0", configMap: "evil"}
	content := string(b.store(evil.content(t)))
	f.edits(tide, c.Content, content)

	// The record holds it by now; what it was told stays what it is.
	s = b.scope("ops")
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: tide.csv(), Content: c.Content, Plan: p.ID}}
	b.publish(s)
	f.edits(tide, c.Content, content)
	f.makes(p, content)
	_, err = b.kube.CoreV1().ConfigMaps("ops").Get(t.Context(), "evil", metav1.GetOptions{})
	must(t, wantNotFound(err))
}

// edits gives an operator another content and more rights, and takes its Deployment away so that it is to be put back.
func (f forger) edits(o operator, content, evil string) {
	f.t.Helper()
	patch := fmt.Sprintf(
		`{"metadata":{"annotations":{"chandler-fleet.io/content":%q}},"spec":{"install":{"spec":{"permissions":[
		{"serviceAccountName":"tide","rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}]}}}}`, evil)
	_, err := f.iop.Patch(f.t.Context(), o.csv(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(f.t, err)
	must(f.t, f.kube.AppsV1().Deployments("ops").Delete(f.t.Context(), "tide-controller", metav1.DeleteOptions{}))
	await(f.t, "the Deployment, and the operator as it was", func(ctx context.Context) error {
		if err := f.clean(ctx); err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.kube.AppsV1().Deployments("ops").Get(ctx, "tide-controller", metav1.GetOptions{}); err != nil {
			return err
		}
		found, err := f.iop.Get(ctx, o.csv(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		rules, _, err := unstructured.NestedSlice(found.Object, "spec", "install", "spec", "permissions")
		if err != nil || found.GetAnnotations()["chandler-fleet.io/content"] != content ||
			strings.Contains(fmt.Sprint(rules), "*") {
			return fmt.Errorf("it is %v with %v, %w", found.GetAnnotations(), rules, err)
		}
		return nil
	})
	f.awaitCSV("ops", o.csv(), reached("Succeeded"))
}

// clean wants no role of a target to give everything.
func (f forger) clean(ctx context.Context) error {
	roles, err := f.kube.RbacV1().Roles("default").List(
		ctx, metav1.ListOptions{LabelSelector: "olm.owner.namespace=ops"})
	if err != nil || len(roles.Items) != 1 {
		return fmt.Errorf("the operator has %d roles in its target, %w", len(roles.Items), err)
	}
	if r := roles.Items[0].Rules; len(r) != 1 || !slices.Equal(r[0].Resources, []string{"configmaps"}) {
		return fmt.Errorf("it has %v there", r)
	}
	return nil
}

// makes writes an InstalledOperator that no plan brought: nothing is done for it, and somebody is told.
func (f forger) makes(p protocol.Plan, evil string) {
	f.t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "chandler-fleet.io/v1", "kind": "InstalledOperator",
		"metadata": map[string]any{
			"name": "forged.v1", "labels": map[string]any{"chandler-fleet.io/managed": "true"},
			"annotations": map[string]any{
				"chandler-fleet.io/plan": p.ID, "chandler-fleet.io/content": evil,
				"chandler-fleet.io/package": "forged",
			},
		},
		"spec": map[string]any{
			"version": "1.0.0", "replaces": "tide.v1.0.0",
			"installModes": []any{map[string]any{"type": "MultiNamespace", "supported": true}},
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
				"deployments": []any{}, "permissions": []any{
					map[string]any{"serviceAccountName": "default", "rules": []any{
						map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}},
					}},
				},
			}},
		},
	}}
	_, err := f.iop.Create(f.t.Context(), made, metav1.CreateOptions{})
	must(f.t, err)
	f.awaitReport(f.t, "the one that nobody granted", func(r protocol.ScopeReport) bool {
		return r.Group != nil && slices.ContainsFunc(r.Group.Conditions, func(c protocol.GroupCondition) bool {
			return c.Type == protocol.GroupUnattended && strings.Contains(c.Message, "InstalledOperator forged.v1") &&
				strings.Contains(c.Message, "is not what the hub granted")
		})
	})
	must(f.t, f.clean(f.t.Context()))
	f.awaitCSV("ops", "tide.v1.0.0", reached("Succeeded")) // which it says that it follows
}
