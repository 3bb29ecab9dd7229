package kubesim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// remembered is how many changes of a kind a watch can go on from: executors that were away for longer list anew.
const remembered = 256

// key is namespace and name.
type key struct{ namespace, name string }

func (k key) String() string { return k.namespace + "/" + k.name }

func compareKeys(a, b key) int { return strings.Compare(a.String(), b.String()) }

// change is one change of an object, as a watch tells of it.
type change struct {
	version uint64
	typ     watch.EventType
	object  []byte
}

// objects are those of a kind, each as JSON: a fleet's worth of maps would not fit into memory.
type objects struct {
	byKey   map[key][]byte
	history []change
	dropped uint64        // the version of the newest change that is not in history any more
	news    chan struct{} // closed with the next change
}

func newObjects() *objects { return &objects{byKey: map[key][]byte{}, news: make(chan struct{})} }

func (o *objects) keys() []key { return slices.SortedFunc(maps.Keys(o.byKey), compareKeys) }

func (o *objects) note(c change) {
	if len(o.history) >= remembered {
		o.dropped = o.history[0].version
		o.history = slices.Delete(o.history, 0, 1)
	}
	o.history = append(o.history, c)
	close(o.news)
	o.news = make(chan struct{})
}

// get returns an object, nil where there is none.
func (k *kind) get(at key) *unstructured.Unstructured {
	raw, ok := k.byKey[at]
	if !ok {
		return nil
	}
	return decode(raw)
}

func decode(raw []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		panic("kubesim: its own JSON: " + err.Error())
	}
	return u
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("kubesim: encode: " + err.Error())
	}
	return raw
}

// put stores an object at the next version and tells of it.
func (c *Cluster) put(k *kind, o *unstructured.Unstructured) {
	at := key{o.GetNamespace(), o.GetName()}
	was, there := k.byKey[at]
	if there {
		c.disown(k, at, decode(was))
	}
	for _, r := range o.GetOwnerReferences() {
		c.owned[r.UID] = append(c.owned[r.UID], place{k, at})
	}
	c.version++
	o.SetResourceVersion(versionText(c.version))
	raw := encode(o.Object)
	k.byKey[at] = raw
	typ := watch.Added
	if there {
		typ = watch.Modified
	}
	k.note(change{c.version, typ, raw})
}

// place is where an object is.
type place struct {
	kind *kind
	at   key
}

// disown forgets who owns an object.
func (c *Cluster) disown(k *kind, at key, o *unstructured.Unstructured) {
	for _, r := range o.GetOwnerReferences() {
		left := slices.DeleteFunc(c.owned[r.UID], func(p place) bool { return p.kind == k && p.at == at })
		if c.owned[r.UID] = left; len(left) == 0 {
			delete(c.owned, r.UID)
		}
	}
}

// remove asks for the end of an object: it goes when nothing holds it any more, and what it owns with it.
func (c *Cluster) remove(k *kind, o *unstructured.Unstructured) {
	if len(o.GetFinalizers()) > 0 {
		if o.GetDeletionTimestamp() == nil {
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
			c.put(k, o)
		}
		return
	}
	c.end(k, o)
}

// end takes an object away, and what it owned alone.
func (c *Cluster) end(k *kind, o *unstructured.Unstructured) {
	at := key{o.GetNamespace(), o.GetName()}
	c.disown(k, at, o)
	delete(k.byKey, at)
	c.version++
	o.SetResourceVersion(versionText(c.version))
	k.note(change{c.version, watch.Deleted, encode(o.Object)})
	for _, p := range slices.Clone(c.owned[o.GetUID()]) {
		c.orphan(p, o.GetUID())
	}
	if k.kind == "Namespace" && k.group == "" {
		c.empty(o.GetName())
	}
	if k.kind == "CustomResourceDefinition" {
		c.undefine(o)
	}
}

// orphan takes an owner away from an object; without any it goes.
func (c *Cluster) orphan(p place, owner types.UID) {
	o := p.kind.get(p.at)
	if o == nil {
		return
	}
	c.disown(p.kind, p.at, o)
	left := slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
	o.SetOwnerReferences(left)
	if len(left) == 0 {
		c.remove(p.kind, o)
		return
	}
	c.put(p.kind, o)
}

// empty removes what is in a namespace.
func (c *Cluster) empty(namespace string) {
	for _, k := range c.kinds {
		for _, at := range k.keys() {
			if o := k.get(at); at.namespace == namespace && o != nil {
				c.remove(k, o)
			}
		}
	}
}

// undefine serves a kind no longer.
func (c *Cluster) undefine(crd *unstructured.Unstructured) {
	for r, k := range c.kinds {
		if r.String() != crd.GetName() {
			continue
		}
		for _, at := range k.keys() {
			if o := k.get(at); o != nil {
				c.remove(k, o)
			}
		}
		delete(c.kinds, r)
	}
}
