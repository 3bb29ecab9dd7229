package kubesim

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/rand"
)

// request is one that names a kind.
type request struct {
	*kind
	version     string // of the API
	at          key
	subresource string
	manager     string // of the fields that it writes
	epoch       string // in which it is written, "" of who is no executor
	dryRun      bool
	force       bool
}

// fieldManager is Kubernetes' own.
func (r *request) fieldManager() (*managedfields.FieldManager, error) {
	gvk := r.gvk(r.version)
	return managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), sameVersion{}, nothing{},
		creator{}, gvk, gvk.GroupVersion(), r.subresource, nil)
}

// creator, sameVersion and nothing are what the field manager wants to know of kinds.
type creator struct{}

func (creator) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

type sameVersion struct{}

func (sameVersion) Convert(_, _, _ any) error { return nil }

func (sameVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

type nothing struct{}

func (nothing) Default(runtime.Object) {}

// create makes an object.
func (c *Cluster) create(r *request, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + rand.String(5))
	}
	if r.namespaced {
		o.SetNamespace(r.at.namespace)
	}
	r.at.name = o.GetName()
	if err := c.admit(r); err != nil {
		return nil, err
	}
	if _, there := r.byKey[r.at]; there {
		return nil, apierrors.NewAlreadyExists(r.resource(), r.at.name)
	}
	if err := c.namespaceOf(r); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(r.gvk(r.version))
	if r.status {
		delete(o.Object, "status")
	}
	fields, err := r.fieldManager()
	if err != nil {
		return nil, err
	}
	empty, err := creator{}.New(r.gvk(r.version))
	if err != nil {
		return nil, err
	}
	made := fields.UpdateNoErrors(empty, o, r.manager).(*unstructured.Unstructured)
	return c.store(r, nil, made), nil
}

// namespaceOf wants the namespace of a new object to be there.
func (c *Cluster) namespaceOf(r *request) error {
	if !r.namespaced {
		return nil
	}
	namespaces := c.kinds[schema.GroupResource{Resource: "namespaces"}]
	if _, ok := namespaces.byKey[key{name: r.at.namespace}]; !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.at.namespace)
	}
	return nil
}

// update replaces an object, or its status.
func (c *Cluster) update(r *request, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := r.get(r.at)
	if live == nil {
		return nil, apierrors.NewNotFound(r.resource(), r.at.name)
	}
	if err := c.admit(r); err != nil {
		return nil, err
	}
	if v := o.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.resource(), r.at.name, errModified)
	}
	return c.change(r, live, o)
}

// change stores what becomes of an object, with whose fields are whose.
func (c *Cluster) change(r *request, live, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	fields, err := r.fieldManager()
	if err != nil {
		return nil, err
	}
	r.confine(live, next)
	managed := next.GetManagedFields()
	if len(managed) == 0 {
		next.SetManagedFields(live.GetManagedFields())
	}
	made := fields.UpdateNoErrors(live.DeepCopy(), next, r.manager).(*unstructured.Unstructured)
	return c.store(r, live, made), nil
}

// confine keeps a write to what it may write: the status, or everything else.
func (r *request) confine(live, next *unstructured.Unstructured) {
	next.SetGroupVersionKind(r.gvk(r.version))
	if !r.status {
		return
	}
	if r.subresource == "status" {
		status, has := next.Object["status"]
		clear(next.Object)
		maps.Copy(next.Object, live.DeepCopy().Object)
		if has {
			next.Object["status"] = status
		}
		return
	}
	delete(next.Object, "status")
	if status, has := live.Object["status"]; has {
		next.Object["status"] = runtime.DeepCopyJSONValue(status)
	}
}

// apply is server-side apply.
func (c *Cluster) apply(r *request, patch []byte) (*unstructured.Unstructured, error) {
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(patch, &wanted.Object); err != nil {
		return nil, apierrors.NewBadRequest("the applied configuration is not JSON: " + err.Error())
	}
	if err := c.admit(r); err != nil {
		return nil, err
	}
	live := r.get(r.at)
	from := live
	if live == nil {
		if err := c.namespaceOf(r); err != nil {
			return nil, err
		}
		from = &unstructured.Unstructured{Object: map[string]any{}}
		from.SetGroupVersionKind(r.gvk(r.version))
		from.SetName(r.at.name)
		from.SetNamespace(r.at.namespace)
	} else if v := wanted.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.resource(), r.at.name, errModified)
	}
	fields, err := r.fieldManager()
	if err != nil {
		return nil, err
	}
	o, err := fields.Apply(from.DeepCopy(), wanted, r.manager, r.force)
	if err != nil {
		return nil, err
	}
	made := o.(*unstructured.Unstructured)
	if live != nil {
		managed := made.GetManagedFields()
		r.confine(live, made)
		made.SetManagedFields(managed)
	}
	return c.store(r, live, made), nil
}

// patch is a patch by its content type.
func (c *Cluster) patch(r *request, typ types.PatchType, patch []byte) (*unstructured.Unstructured, error) {
	if typ == types.ApplyPatchType {
		return c.apply(r, patch)
	}
	live := r.get(r.at)
	if live == nil {
		return nil, apierrors.NewNotFound(r.resource(), r.at.name)
	}
	if err := c.admit(r); err != nil {
		return nil, err
	}
	merged, err := merge(typ, encode(live.Object), patch)
	if err != nil {
		return nil, apierrors.NewBadRequest("the patch cannot be applied: " + err.Error())
	}
	next := decode(merged)
	if v := next.GetResourceVersion(); v != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.resource(), r.at.name, errModified)
	}
	return c.change(r, live, next)
}

func merge(typ types.PatchType, live, patch []byte) ([]byte, error) {
	if typ != types.JSONPatchType {
		return jsonpatch.MergePatch(live, patch)
	}
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return p.Apply(live)
}

// store keeps what became of an object, nil of none, unless nothing did.
func (c *Cluster) store(r *request, live, next *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		c.born(next)
	} else {
		keep(live, next)
		if same(live, next) {
			return live
		}
		if r.subresource == "" && !sameSpec(live, next) {
			next.SetGeneration(live.GetGeneration() + 1)
		}
	}
	if r.dryRun {
		return next
	}
	c.settle(r.kind, next)
	c.put(r.kind, next)
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		c.end(r.kind, next.DeepCopy())
	}
	return next
}

// keep is what nobody changes of an object.
func keep(live, next *unstructured.Unstructured) {
	next.SetUID(live.GetUID())
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	next.SetResourceVersion(live.GetResourceVersion())
	next.SetGeneration(live.GetGeneration())
	next.SetName(live.GetName())
	next.SetNamespace(live.GetNamespace())
}

// same reports that nothing changed but the times at which fields were written.
func same(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(timeless(a), timeless(b))
}

func timeless(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	fields := c.GetManagedFields()
	for i := range fields {
		fields[i].Time = nil
	}
	c.SetManagedFields(fields)
	var plain map[string]any
	if err := json.Unmarshal(encode(c.Object), &plain); err != nil { // numbers in one form
		panic("kubesim: its own JSON: " + err.Error())
	}
	return plain
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	without := func(o *unstructured.Unstructured) map[string]any {
		m := timeless(o)
		delete(m, "metadata")
		delete(m, "status")
		return m
	}
	return reflect.DeepEqual(without(a), without(b))
}

// delete takes an object away.
func (c *Cluster) delete(r *request, o metav1.DeleteOptions) (*unstructured.Unstructured, error) {
	live := r.get(r.at)
	if live == nil {
		return nil, apierrors.NewNotFound(r.resource(), r.at.name)
	}
	if err := c.admit(r); err != nil {
		return nil, err
	}
	if p := o.Preconditions; p != nil && (p.UID != nil && *p.UID != live.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion()) {
		return nil, apierrors.NewConflict(r.resource(), r.at.name, errModified)
	}
	if !r.dryRun && len(o.DryRun) == 0 {
		c.remove(r.kind, live.DeepCopy())
	}
	return live, nil
}

// Names of the admission policies that the executor tries before it begins (services/installer/executor/kube).
const (
	fence       = "chandler-fence.chandler-fleet.io"
	memory      = "chandler-memory.chandler-fleet.io"
	memoryProbe = "chandler-memory-probe"
	ownGroup    = "chandler-fleet.io"
	epochOf     = "chandler-fleet.io/epoch"
)

// admit is what the two policies say of a write.
func (c *Cluster) admit(r *request) error {
	if r.epoch == "" || r.group == "admissionregistration.k8s.io" {
		return nil
	}
	if stands := c.policy(fence); stands != nil {
		if least := stands.GetAnnotations()[epochOf]; len(r.epoch) < len(least) ||
			len(r.epoch) == len(least) && r.epoch < least {
			return refused(r, fence, "chandler: a newer executor holds this cluster")
		}
	}
	if c.policy(memory) != nil && r.group == ownGroup && r.at.name == memoryProbe {
		return refused(r, memory, r.kind.kind+" is what Chandler itself remembers")
	}
	return nil
}

// policy is an admission policy that is in force, nil where it is not.
func (c *Cluster) policy(name string) *unstructured.Unstructured {
	of := func(resource string) *unstructured.Unstructured {
		kind := c.kinds[schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: resource}]
		return kind.get(key{name: name})
	}
	if of("validatingadmissionpolicybindings") == nil {
		return nil
	}
	return of("validatingadmissionpolicies")
}

func refused(r *request, policy, message string) error {
	err := apierrors.NewForbidden(r.resource(), r.at.name, nil)
	err.ErrStatus.Message = fmt.Sprintf("%s %q is forbidden: ValidatingAdmissionPolicy '%s' with binding '%s' denied "+
		"request: %s", r.resource().String(), r.at.name, policy, policy, message)
	err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, 422
	return err
}

// managerOf is the field manager of a request that names none: the program that sends it.
func managerOf(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	return name
}
