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
	"github.com/chandler-fleet/chandler/services/installer/chandlercrd"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

var (
	gvkCRD    = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	gvkPolicy = schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingAdmissionPolicy",
	}
	gvkBinding = schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingAdmissionPolicyBinding",
	}
	gvkRole = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

// Ensure makes what a setting of mirror needs: definitions, none over one of somebody else's, and the admission
// policies. It does so once for a setting, and again after a definition went.
func (k *Keeper) Ensure(ctx context.Context, setting string) error {
	k.ensuring.Lock()
	defer k.ensuring.Unlock()
	lost := k.lost.Load()
	if k.ensured == setting && k.made == lost {
		return nil
	}
	k.mu.Lock()
	for _, crd := range mirror.CRDs(setting) {
		delete(k.retiring, crd.Name)
	}
	k.mu.Unlock()
	var made []*unstructured.Unstructured // all before the first is waited for
	for _, crd := range mirror.CRDs(setting) {
		o, err := k.ensureCRD(ctx, crd)
		if err != nil {
			return fmt.Errorf("definition %s: %w", crd.Name, err)
		}
		made = append(made, o)
	}
	for _, o := range made {
		if _, err := (kube.Definitions{Epoch: k.Client}).AwaitEstablished(ctx, o, nil); err != nil {
			return err
		}
	}
	if err := k.ensurePolicy(ctx, setting); err != nil {
		return fmt.Errorf("admission policy %s: %w", mirror.PolicyName, err)
	}
	k.ensured, k.made, k.stoodBack = setting, lost, false
	return nil
}

// DefinitionGone takes the news that a definition was deleted, and reports whether mirrors or conditions need it: then
// all of them are made again.
func (k *Keeper) DefinitionGone(name string) bool {
	if !slices.ContainsFunc(mirror.CRDs(events.MirrorAll),
		func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name }) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.notes, func(key Key, _ note) bool { // the watch of the kind ends, perhaps before it told of these
		r := kube.Resource(key.GVK)
		return r.Resource+"."+r.Group == name
	})
	if k.retiring[name] {
		return false // nothing needs it
	}
	k.lost.Add(1)
	for _, n := range k.conditions {
		n.kept = false
	}
	return true
}

// PolicyGone takes the news that an admission policy or a binding was deleted, and reports whether it was one of the
// mirrors': then it is made again.
func (k *Keeper) PolicyGone(name string) bool {
	if !slices.Contains(mirror.PolicyNames(), name) {
		return false
	}
	k.lost.Add(1)
	return true
}

func (k *Keeper) ensureCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (
	*unstructured.Unstructured, error,
) {
	return kube.Definitions{Epoch: k.Client}.Ensure(ctx,
		kube.Definition{CRD: crd, Manager: manager, Ours: ours, At: k.at})
}

// ours reports whether a definition is what Chandler wrote, and nobody has changed it.
func ours(o metav1.Object) bool { return chandlercrd.MadeBy(o, manager) }

// ensurePolicy makes the admission policies, their bindings and the role of those who may read, or takes them away
// where nothing is mirrored. What people create stays refused until Retire is done with the definitions.
func (k *Keeper) ensurePolicy(ctx context.Context, setting string) error {
	policy, binding := mirror.Policy(kube.ExecutorUser)
	intents, intentsBinding := mirror.Intents(kube.ExecutorUser)
	for _, p := range []struct {
		gvk  schema.GroupVersionKind
		name string
		body any
	}{
		{gvkPolicy, mirror.PolicyName, policy},
		{gvkBinding, mirror.PolicyName, binding},
		{gvkRole, mirror.PolicyName, mirror.ViewRole()},
		{gvkPolicy, mirror.IntentsName, intents},
		{gvkBinding, mirror.IntentsName, intentsBinding},
	} {
		if setting == events.MirrorNone {
			if p.name == mirror.IntentsName {
				continue
			}
			if err := k.dismiss(ctx, p.gvk, p.name); err != nil {
				return err
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
		if _, err := k.write(ctx, Key{GVK: p.gvk, Name: p.name}, applyPatch, body.Object, how); err != nil {
			return err
		}
	}
	return nil
}

// dismiss takes away an object of Chandler's own name.
func (k *Keeper) dismiss(ctx context.Context, gvk schema.GroupVersionKind, name string) error {
	found, err := k.Client.Get(ctx, gvk, "", name)
	if err != nil || found == nil {
		return err
	}
	return k.Client.Delete(ctx, found)
}

// allowIntents lets people create what they like of OLM's kinds: Chandler is not, or not any more, in charge of them.
func (k *Keeper) allowIntents(ctx context.Context) error {
	for _, gvk := range []schema.GroupVersionKind{gvkBinding, gvkPolicy} {
		if err := k.dismiss(ctx, gvk, mirror.IntentsName); err != nil {
			return fmt.Errorf("admission policy %s: %w", mirror.IntentsName, err)
		}
	}
	return nil
}

// StandBack lets OLM, which is at work, and those who use it write. Ensure takes that back.
func (k *Keeper) StandBack(ctx context.Context) error {
	k.ensuring.Lock()
	defer k.ensuring.Unlock()
	if k.stoodBack {
		return nil
	}
	if err := k.allowIntents(ctx); err != nil {
		return err
	}
	k.stoodBack, k.ensured = true, ""
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
// OLMConfig at that (R-CFG-1, R-CFG-2). A cluster with mirrors of all kinds and without an OLMConfig gets one, unless
// the settings say what holds: that the OLMConfig would not be asked is no offer.
func (k *Keeper) Copies(ctx context.Context, s events.ClusterSettings, now time.Time) (mirror.Copies, error) {
	s = s.WithDefaults()
	offer := s.Mirror == events.MirrorAll && s.CopiedCSVs == events.CopiedCSVsOLMConfig
	k.mu.Lock()
	known, absent, turn := k.copies, k.absent, k.turn
	if k.copiesFor != s.CopiedCSVs {
		known = nil
	}
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
		_, err := k.apply(ctx, key, "", mirror.Config().Body)
		return mirror.CopiesUnsaid, err // the watch tells of it
	}
	copies := mirror.CopiesUnsaid
	if found != nil {
		copies = mirror.CopiesIn(found.Object)
	}
	copies = mirror.CopiesOf(s.CopiedCSVs, copies)
	if found != nil {
		if status, ok := mirror.ConfigStatus(found.Object, copies, now); ok {
			if _, err := k.setStatus(ctx, key, found.GetUID(), status); err != nil {
				return "", err
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if turn == k.turn { // otherwise it changed meanwhile, and is read again
		k.copies, k.copiesFor, k.absent = &copies, s.CopiedCSVs, found == nil
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
