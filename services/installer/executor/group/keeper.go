package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/side"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// Manager is the field manager of what is kept here. It is one for all groups, since they share the roles of an API.
const Manager = "chandler/operatorgroups"

const (
	// setType is the type prefix of the digest of a set.
	setType = "chandler.kept-set.v1"
	// writes is how many objects are written at a time.
	writes = 4
)

// Cluster is what the keeper does in a cluster.
type Cluster interface {
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace, selector string) (
		[]unstructured.Unstructured, error)
	Apply(ctx context.Context, body *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, o *unstructured.Unstructured) error
}

// Noting is a cluster with a note of every object as it was left.
type Noting struct {
	Cluster
	Left func(o *unstructured.Unstructured)
}

// Apply implements Cluster.
func (n Noting) Apply(ctx context.Context, body *unstructured.Unstructured, manager string) (
	*unstructured.Unstructured, error,
) {
	applied, err := n.Cluster.Apply(ctx, body, manager)
	if err == nil {
		n.Left(applied)
	}
	return applied, err
}

// Set is what is to be there of some kinds of objects.
type Set struct {
	Name      string // among all sets of the cluster
	Namespace string // whose reconcile keeps it
	Kinds     []schema.GroupVersionKind
	Selector  string // chooses, in all namespaces, what belongs to the set or did
	Want      []render.Object
	Leave     []string // values of olm.owner: objects of these are somebody else's to remove
	Hold      []string // single objects, as their Kind namespace/name: they stay as they are
	// Open sets share what they choose with others: they leave what they do not want, and what is there is read once.
	Open bool
}

// digest of what is wanted.
func (s Set) digest() (string, error) {
	bodies := make([]map[string]any, len(s.Want))
	for i, o := range s.Want {
		bodies[i] = o.Body
	}
	d, err := digest.JSON(setType, map[string]any{"want": bodies, "leave": s.Leave, "hold": s.Hold})
	return string(d), err
}

// Keeper keeps sets. What it remembers only saves reads: a set that is as it was left, and of which no object was
// touched since, is not looked at.
type Keeper struct {
	mu      sync.Mutex
	kept    map[string]string // digest of each set that is as wanted, by name
	touches map[string]int    // how often each set was touched by others
	objects map[object]note

	opening sync.Mutex
	// open is what was found of open sets, by selector, until somebody wants it.
	open map[string]map[object]*unstructured.Unstructured
}

type object struct {
	gvk             schema.GroupVersionKind
	namespace, name string
}

func (o object) String() string { return o.gvk.Kind + " " + o.namespace + "/" + o.name }

// note is which sets an object belongs to, whose reconciles keep them, and how it was left: its mark, and what was
// wanted of it.
type note struct {
	sets    map[string]string // namespaces by name of the set
	mark    uint64            // as watch.Mark gives it
	want    string
	touched bool
}

// NewKeeper returns a keeper that knows nothing.
func NewKeeper() *Keeper {
	return &Keeper{
		kept: map[string]string{}, touches: map[string]int{}, objects: map[object]note{},
		open: map[string]map[object]*unstructured.Unstructured{},
	}
}

// Touched notes that an object was changed or removed by somebody else, and returns the namespaces whose reconciles are
// to put it right. mark is 0 for one that is gone.
func (k *Keeper) Touched(gvk schema.GroupVersionKind, namespace, name string, mark uint64) (wake []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, known := k.objects[object{gvk, namespace, name}]
	if !known || mark == n.mark {
		return nil
	}
	n.touched = true
	k.objects[object{gvk, namespace, name}] = n
	for set, namespace := range n.sets {
		delete(k.kept, set)
		k.touches[set]++
		wake = append(wake, namespace)
	}
	slices.Sort(wake)
	return wake
}

// Keep makes a set what it is to be: objects that are missing or differ are applied, those that are not wanted any more
// deleted. at is called before and after each effect. What cannot be written now does not keep the rest from being
// written; it is in the error.
func (k *Keeper) Keep(ctx context.Context, c Cluster, s Set, at func(point string) error) error {
	d, err := s.digest()
	if err != nil {
		return err
	}
	k.mu.Lock()
	same, touches := k.kept[s.Name] == d, k.touches[s.Name]
	k.mu.Unlock()
	if same {
		return nil
	}
	missing, surplus, err := k.compare(ctx, c, s)
	if err != nil {
		return err
	}
	err = k.write(ctx, c, s, missing, at)
	if err := errors.Join(err, k.remove(ctx, c, surplus, at)); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.touches[s.Name] == touches { // else somebody was quicker than this reconcile
		k.kept[s.Name] = d
	}
	return nil
}

// compare returns what is to be written of a set and what is to be removed.
func (k *Keeper) compare(ctx context.Context, c Cluster, s Set) (
	missing []render.Object, surplus map[object]*unstructured.Unstructured, err error,
) {
	find, surplus, err := k.found(ctx, c, s)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range s.Want {
		key := object{o.GVK, o.Namespace, o.Name}
		want, err := digest.JSON(setType, o.Body)
		if err != nil {
			return nil, nil, err
		}
		if s.Open && k.asLeft(s, key, string(want)) {
			continue
		}
		have := find(key)
		delete(surplus, key)
		if have != nil && has(have.Object, o.Body) {
			k.note(s, key, watch.Mark(have), string(want))
			continue
		}
		missing = append(missing, o)
	}
	return missing, surplus, nil
}

// asLeft reports an object that was left as it is wanted, by whomever, and that nobody touched since.
func (k *Keeper) asLeft(s Set, key object, want string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.objects[key]
	if !ok || n.want != want || n.touched {
		return false
	}
	n.sets[s.Name] = s.Namespace
	return true
}

// found returns what is there of a set, and of one that is not open what may have to go.
func (k *Keeper) found(ctx context.Context, c Cluster, s Set) (
	find func(object) *unstructured.Unstructured, surplus map[object]*unstructured.Unstructured, err error,
) {
	if !s.Open {
		live, err := list(ctx, c, s)
		maps.DeleteFunc(live, func(key object, o *unstructured.Unstructured) bool {
			return slices.Contains(s.Leave, o.GetLabels()[render.LabelOwner]) || slices.Contains(s.Hold, key.String())
		})
		return func(key object) *unstructured.Unstructured { return live[key] }, live, err
	}
	k.opening.Lock()
	defer k.opening.Unlock()
	if _, ok := k.open[s.Selector]; !ok {
		if k.open[s.Selector], err = list(ctx, c, s); err != nil {
			delete(k.open, s.Selector)
			return nil, nil, err
		}
	}
	return func(key object) *unstructured.Unstructured {
		k.opening.Lock()
		defer k.opening.Unlock()
		have := k.open[s.Selector][key]
		delete(k.open[s.Selector], key)
		return have
	}, nil, nil
}

func list(ctx context.Context, c Cluster, s Set) (map[object]*unstructured.Unstructured, error) {
	out := map[object]*unstructured.Unstructured{}
	for _, gvk := range s.Kinds {
		found, err := c.List(ctx, gvk, "", s.Selector)
		if err != nil {
			return nil, fmt.Errorf("list %s of %s: %w", gvk.Kind, s.Name, err)
		}
		for i := range found {
			out[object{gvk, found[i].GetNamespace(), found[i].GetName()}] = &found[i]
		}
	}
	return out, nil
}

func (k *Keeper) note(s Set, key object, mark uint64, want string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	sets := map[string]string{s.Name: s.Namespace}
	if s.Open {
		maps.Copy(sets, k.objects[key].sets)
	}
	k.objects[key] = note{sets: sets, mark: mark, want: want}
}

// write applies objects side by side.
func (k *Keeper) write(ctx context.Context, c Cluster, s Set, objects []render.Object, at func(string) error) error {
	failures := make([]error, len(objects))
	side.Each(len(objects), writes, func(i int) { failures[i] = k.apply(ctx, c, s, objects[i], at) })
	return errors.Join(failures...)
}

func (k *Keeper) apply(ctx context.Context, c Cluster, s Set, o render.Object, at func(string) error) error {
	if err := at("before keep"); err != nil {
		return err
	}
	applied, err := c.Apply(ctx, managed(o), Manager)
	if goes(err) {
		return at("kept") // with its namespace; a watch says when it is back
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	want, err := digest.JSON(setType, o.Body)
	if err != nil {
		return err
	}
	k.note(s, object{o.GVK, o.Namespace, o.Name}, watch.Mark(applied), string(want))
	return at("kept")
}

// managed is the body of an object under the label of what Chandler wrote.
func managed(o render.Object) *unstructured.Unstructured {
	body := &unstructured.Unstructured{Object: o.Clone().Body}
	labels := body.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kube.LabelManaged] = "true"
	body.SetLabels(labels)
	return body
}

// goes reports that nothing can be written where a namespace is going or gone.
func goes(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Remove deletes what selectors choose and keep does not want kept.
func (k *Keeper) Remove(ctx context.Context, c Cluster, s Set,
	keep func(*unstructured.Unstructured) bool, at func(string) error,
) error {
	live, err := list(ctx, c, s)
	if err != nil {
		return err
	}
	for key, o := range live {
		if keep(o) {
			delete(live, key)
		}
	}
	k.opening.Lock()
	for key := range live {
		for _, found := range k.open {
			delete(found, key)
		}
	}
	k.opening.Unlock()
	return k.remove(ctx, c, live, at)
}

// remove deletes objects, in the order of their names.
func (k *Keeper) remove(ctx context.Context, c Cluster, objects map[object]*unstructured.Unstructured,
	at func(string) error,
) error {
	keys := make([]object, 0, len(objects))
	for key := range objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b object) int {
		return strings.Compare(a.gvk.Kind+"/"+a.namespace+"/"+a.name, b.gvk.Kind+"/"+b.namespace+"/"+b.name)
	})
	for _, key := range keys {
		if err := at("before keep"); err != nil {
			return err
		}
		k.mu.Lock()
		delete(k.objects, key)
		k.mu.Unlock()
		if err := c.Delete(ctx, objects[key]); err != nil {
			return fmt.Errorf("%s %s: %w", key.gvk.Kind, key.name, err)
		}
		if err := at("kept"); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether live holds everything that is wanted, and lists exactly as wanted; an empty list is as good
// as none.
func has(live, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		for key, v := range w {
			if !has(l[key], v) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		return reflect.DeepEqual(l, w)
	}
	return reflect.DeepEqual(live, want)
}
