package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

var (
	gvkCRD     = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	gvkPolicy  = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}
	gvkBinding = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"}
	gvkRole    = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

// Ensure makes what a setting of mirror needs: definitions, none over an existing one, and the admission policy. It
// does so once for a setting, and again after a definition went.
func (k *Keeper) Ensure(ctx context.Context, setting string) error {
	k.ensuring.Lock()
	defer k.ensuring.Unlock()
	lost := k.lost.Load()
	if k.ensured == setting && k.made == lost {
		return nil
	}
	var made []*unstructured.Unstructured // all before the first is waited for
	for _, crd := range mirror.CRDs(setting) {
		o, err := k.ensureCRD(ctx, crd)
		if err != nil {
			return fmt.Errorf("definition %s: %w", crd.Name, err)
		}
		made = append(made, o)
	}
	for _, o := range made {
		if _, err := k.Client.AwaitEstablished(ctx, o, nil); err != nil {
			return err
		}
	}
	if err := k.ensurePolicy(ctx, setting); err != nil {
		return fmt.Errorf("admission policy %s: %w", mirror.PolicyName, err)
	}
	k.ensured, k.made = setting, lost
	return nil
}

// DefinitionGone takes the news that a definition was deleted, and reports whether mirrors or conditions need it: then all
// of them are made again.
func (k *Keeper) DefinitionGone(name string) bool {
	if !slices.ContainsFunc(mirror.CRDs(events.MirrorAll), func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name }) {
		return false
	}
	k.lost.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.conditions {
		n.kept = false
	}
	maps.DeleteFunc(k.notes, func(key Key, _ note) bool { // the watch of the kind ends, perhaps before it told of these
		r := cluster.Resource(key.GVK)
		return r.Resource+"."+r.Group == name
	})
	return true
}

// PolicyGone takes the news that an admission policy or a binding was deleted, and reports whether it was that of the
// mirrors: then it is made again.
func (k *Keeper) PolicyGone(name string) bool {
	if name != mirror.PolicyName {
		return false
	}
	k.lost.Add(1)
	return true
}

func (k *Keeper) ensureCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	found, err := k.Client.Get(ctx, gvkCRD, "", crd.Name)
	if err != nil || found != nil {
		return found, err
	}
	body, err := toObject(crd)
	if err != nil {
		return nil, err
	}
	if err := k.at("before mirror"); err != nil {
		return nil, err
	}
	// Where somebody else makes it in the same moment this is an error, and the next look finds that one.
	made, err := k.Client.Dynamic.Resource(cluster.Resource(gvkCRD)).Create(ctx, body, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return nil, err
	}
	return made, k.at("mirrored")
}

// ensurePolicy makes the admission policy, its binding and the role of those who may read, or takes them away where
// nothing is mirrored.
func (k *Keeper) ensurePolicy(ctx context.Context, setting string) error {
	policy, binding := mirror.Policy(cluster.ExecutorUser)
	for _, p := range []struct {
		gvk  schema.GroupVersionKind
		body any
	}{{gvkPolicy, policy}, {gvkBinding, binding}, {gvkRole, mirror.ViewRole()}} {
		if setting == events.MirrorNone {
			found, err := k.Client.Get(ctx, p.gvk, "", mirror.PolicyName)
			if err != nil {
				return err
			}
			if found != nil {
				if err := k.Client.Delete(ctx, found); err != nil {
					return err
				}
			}
			continue
		}
		body, err := toObject(p.body)
		if err != nil {
			return err
		}
		body.SetGroupVersionKind(p.gvk)
		force := true // the name is Chandler's
		how := metav1.PatchOptions{FieldManager: manager, Force: &force}
		if _, err := k.write(ctx, Key{GVK: p.gvk, Name: mirror.PolicyName}, applyPatch, body.Object, how); err != nil {
			return err
		}
	}
	return nil
}

func toObject(v any) (*unstructured.Unstructured, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode")
	}
	u := &unstructured.Unstructured{Object: body}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	return u, nil
}

// Copies says whether ClusterServiceVersions are copied to the namespaces that they serve, and keeps the status of
// OLMConfig at that (R-CFG-1, R-CFG-2). With offer, a cluster without an OLMConfig gets one that says what holds.
func (k *Keeper) Copies(ctx context.Context, offer bool, now time.Time) (mirror.Copies, error) {
	k.mu.Lock()
	known, absent, turn := k.copies, k.absent, k.turn
	k.mu.Unlock()
	if known != nil && (!absent || !offer) {
		return *known, nil
	}
	key := Key{GVK: mirror.GVKOLMConfig, Name: mirror.ConfigName}
	found, err := k.read(ctx, key)
	if err != nil {
		return "", err
	}
	if found == nil && offer {
		_, _, err := k.apply(ctx, key, "", mirror.Config().Body)
		return mirror.CopiesUnsaid, err // the watch tells of it
	}
	copies := mirror.CopiesUnsaid
	if found != nil {
		copies = mirror.CopiesIn(found.Object)
		if status, ok := mirror.ConfigStatus(found.Object, copies, now); ok {
			if err := k.setStatus(ctx, key, found.GetUID(), status); err != nil {
				return "", err
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if turn == k.turn { // otherwise it changed meanwhile, and is read again
		k.copies, k.absent = &copies, found == nil
	}
	return copies, nil
}

// ConfigChanged has OLMConfig read again.
func (k *Keeper) ConfigChanged() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.copies = nil
	k.turn++
}

// Copying reports whether copies are made, as far as it is known.
func (k *Keeper) Copying() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.copies != nil && *k.copies == mirror.CopiesEnabled
}
