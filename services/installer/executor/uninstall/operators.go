package uninstall

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// readAtOnce is how many InstalledOperators are read whole at a time: one may have a megabyte.
const readAtOnce = 25

// Operators remembers what installed operators bring and need, which is little, so that a removal does not read all of
// their objects, which are large. What is remembered counts for one generation of one object only.
type Operators struct {
	mu    sync.Mutex
	known map[types.NamespacedName]noted
}

type noted struct {
	uid        types.UID
	generation int64
	operator   removal.Operator
}

// NewOperators returns what a new session knows: nothing.
func NewOperators() *Operators { return &Operators{known: map[types.NamespacedName]noted{}} }

// Note remembers what an InstalledOperator that was just read says.
func (k *Operators) Note(o metav1.Object, csv bundle.CSV) {
	k.note(o, removal.OperatorOf(o.GetNamespace(), csv))
}

func (k *Operators) note(o metav1.Object, operator removal.Operator) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[nameOf(o)] = noted{o.GetUID(), o.GetGeneration(), operator}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// find returns what is known of an object; ok is set where that is of its present generation.
func (k *Operators) find(o metav1.Object) (operator removal.Operator, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, known := k.known[nameOf(o)]
	if !known || n.uid != o.GetUID() {
		return removal.Operator{Namespace: o.GetNamespace(), Name: o.GetName()}, false
	}
	return n.operator, n.generation == o.GetGeneration()
}

// keep forgets operators that are gone.
func (k *Operators) keep(there []metav1.PartialObjectMetadata) {
	live := make(map[types.NamespacedName]bool, len(there))
	for i := range there {
		live[nameOf(&there[i])] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.known {
		if !live[name] {
			delete(k.known, name)
		}
	}
}

// installed is one InstalledOperator.
type installed struct {
	removal.Operator
	meta *metav1.PartialObjectMetadata
}

// all are the installed operators of the cluster: one question for which there are, and further ones only where it is
// not known what one brings and needs.
func (k *Operators) all(ctx context.Context, c *kube.Epoch) ([]installed, error) {
	list, err := metadata(ctx, c, kube.Resource(kube.GVKInstalledOperator),
		metav1.ListOptions{LabelSelector: selectManaged})
	if err != nil {
		return nil, err
	}
	k.keep(list.Items)
	if err := k.read(ctx, c, list.Items); err != nil {
		return nil, err
	}
	out := make([]installed, len(list.Items))
	for i := range list.Items {
		operator, _ := k.find(&list.Items[i]) // one that went meanwhile still counts as an owner of what names it
		out[i] = installed{operator, &list.Items[i]}
	}
	return out, nil
}

// fewUnknown is up to how many operators are read one by one.
const fewUnknown = 4

// read reads those whole that are not known.
func (k *Operators) read(ctx context.Context, c *kube.Epoch, there []metav1.PartialObjectMetadata) error {
	var unknown []*metav1.PartialObjectMetadata
	for i := range there {
		if _, ok := k.find(&there[i]); !ok {
			unknown = append(unknown, &there[i])
		}
	}
	if len(unknown) <= fewUnknown {
		for _, o := range unknown {
			whole, err := c.Get(ctx, kube.GVKInstalledOperator, o.Namespace, o.Name)
			if err != nil {
				return err
			}
			if whole != nil {
				k.note(whole, operator(whole))
			}
		}
		return nil
	}
	from := ""
	for {
		page, next, err := c.Page(ctx, kube.Resource(kube.GVKInstalledOperator), readAtOnce, from)
		if err != nil {
			return err
		}
		for i := range page {
			k.note(&page[i], operator(&page[i]))
		}
		if from = next; from == "" {
			return nil
		}
	}
}

// operator reads an InstalledOperator. One that cannot be read still counts as an owner of what names it.
func operator(o *unstructured.Unstructured) removal.Operator {
	raw, err := o.MarshalJSON()
	if err == nil {
		var csv bundle.CSV
		if csv, err = bundle.ParseCSV(raw); err == nil {
			return removal.OperatorOf(o.GetNamespace(), csv)
		}
	}
	return removal.Operator{Namespace: o.GetNamespace(), Name: o.GetName()}
}
