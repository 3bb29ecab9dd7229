// Package facts asks a cluster for what operators require (R-CSV §6.4) and remembers the answers that are good: an
// operator that lacks nothing costs no request until a watch reports a change or the answer is old. What is bad is
// asked for anew each time, since it may be fixed any moment.
package facts

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

const (
	// crdFor is how long a CRD of somebody else that is as required is not asked for again.
	crdFor = 30 * time.Second
	// managedFor is the same for CRDs that Chandler wrote: a watch says when one changes.
	managedFor = time.Hour
	// metFor is how long an operator of which every requirement is met is not checked again, and how long operator
	// conditions are not read again: most of what changes, a watch reports. It is longer than the time between two
	// reconciles that nothing calls for (Timing.Resync), or each of them would ask again.
	metFor = 10 * time.Minute
	// maxNews bounds what is remembered of news: its keys are names of the cluster's definitions and namespaces, and
	// both come and go. When there are more, whatever was asked before is not kept.
	maxNews = 10_000
)

// Kinds that requirements are about.
var (
	gvkCRD = schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition",
	}
	gvkAPIService = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	gvkAccount    = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	// GVKCondition is OLM's channel from an operator to those who upgrade it (R-COND-1).
	GVKCondition = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"}
)

// Cache is what is remembered of one cluster.
type Cache struct {
	client *kube.Epoch
	now    func() time.Time

	mu sync.Mutex
	// turn counts what was forgotten. An answer is not kept where there was news of its matter since its question, and
	// news of one matter says nothing of another: while many operators are installed there is always some.
	turn       int
	news       map[matter]int           // the turn of the last news
	since      int                      // news of before this turn is forgotten
	crds       map[string]crdNote       // by name
	met        map[string]metNote       // by UID of the InstalledOperator
	conditions map[string]conditionNote // by namespace
}

// matter is what news is about: a CRD by name, or a namespace.
type matter struct{ crd, namespace string }

type crdNote struct {
	csv.CRDFact
	version string // resourceVersion
	until   time.Time
}

type metNote struct {
	Operator
	rows  []csv.Requirement
	until time.Time
}

type conditionNote struct {
	byName map[string]*unstructured.Unstructured
	until  time.Time
}

// Operator says whose requirements are meant: another generation or other targets are another question.
type Operator struct {
	Namespace  string
	UID        string
	Generation int64
	Targets    string // JoinTargets
}

const targetsComma = ","

// JoinTargets is how Operator.Targets names them.
func JoinTargets(targets []string) string { return strings.Join(targets, targetsComma) }

// New returns a cache that holds nothing.
func New(client *kube.Epoch, now func() time.Time) *Cache {
	return &Cache{
		client: client, now: now, news: map[matter]int{}, crds: map[string]crdNote{},
		met: map[string]metNote{}, conditions: map[string]conditionNote{},
	}
}

// Met returns the rows of an operator that lacked nothing a short while ago.
func (c *Cache) Met(o Operator) ([]csv.Requirement, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	note, ok := c.met[o.UID]
	if !ok || note.Operator != o || !c.now().Before(note.until) {
		return nil, false
	}
	return note.rows, true
}

// Turn is what SetMet wants to know: taken before the first question.
func (c *Cache) Turn() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn
}

// SetMet notes the rows of an operator that lacks nothing, and forgets those whose time is over.
func (c *Cache) SetMet(turn int, o Operator, rows []csv.Requirement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if turn < c.since || c.news[matter{namespace: o.Namespace}] > turn {
		return
	}
	for _, r := range rows {
		if r.Kind == gvkCRD.Kind && c.news[matter{crd: r.Name}] > turn {
			return
		}
	}
	now := c.now()
	for uid, note := range c.met {
		if !now.Before(note.until) {
			delete(c.met, uid)
		}
	}
	until := now.Add(metFor)
	if former, ok := c.met[o.UID]; ok && former.Targets != o.Targets && former.alike(o) {
		until = former.until // of its targets nothing was asked anew
	}
	c.met[o.UID] = metNote{Operator: o, rows: rows, until: until}
}

// alike reports the same operator, whatever its targets.
func (o Operator) alike(other Operator) bool {
	o.Targets = other.Targets
	return o == other
}

// satisfied are the targets in which the operator, as it is, had all its rights a short while ago.
func (c *Cache) satisfied(o Operator) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	note, ok := c.met[o.UID]
	if !ok || !note.alike(o) || !c.now().Before(note.until) {
		return nil
	}
	return strings.Split(note.Targets, targetsComma)
}

// changed notes a change; the lock is held.
func (c *Cache) changed(of matter) {
	c.turn++
	if len(c.news) >= maxNews {
		clear(c.news)
		c.since = c.turn
	}
	c.news[of] = c.turn
}

// NoteCRD keeps what was just read of a CRD.
func (c *Cache) NoteCRD(o *unstructured.Unstructured) {
	note := c.crdNoteOf(o)
	if !note.Established {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crds[o.GetName()] = note
}

func (c *Cache) crdNoteOf(o *unstructured.Unstructured) crdNote {
	note := crdNote{
		CRDFact: csv.CRDFact{UID: string(o.GetUID()), Alongside: alongside(o)},
		version: o.GetResourceVersion(), until: c.now().Add(crdFor),
	}
	note.Established, note.Served = kube.Established(o)
	if o.GetLabels()[kube.LabelManaged] == "true" {
		note.until = c.now().Add(managedFor)
	}
	return note
}

// CRDChanged takes the news that a CRD has a version, "" that it is gone; news of what is known already changes
// nothing. Otherwise it is as ForgetCRD.
func (c *Cache) CRDChanged(name, version string) []string {
	c.mu.Lock()
	note, known := c.crds[name]
	c.mu.Unlock()
	if known && !newer(version, note.version) {
		return nil
	}
	return c.ForgetCRD(name)
}

// newer compares two versions of one object; what cannot be compared is newer.
func newer(version, than string) bool {
	v, err := strconv.ParseUint(version, 10, 64)
	t, thanErr := strconv.ParseUint(than, 10, 64)
	return err != nil || thanErr != nil || v > t
}

// ForgetCRD forgets a CRD, and returns the namespaces of the operators that counted on it.
func (c *Cache) ForgetCRD(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed(matter{crd: name})
	delete(c.crds, name)
	return c.forgetMet(func(note metNote) bool {
		return slices.ContainsFunc(note.rows, func(r csv.Requirement) bool {
			return r.Kind == gvkCRD.Kind &&
				r.Name == name
		})
	})
}

// ForgetNamespace forgets what operators of a namespace count on, and their conditions.
func (c *Cache) ForgetNamespace(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed(matter{namespace: namespace})
	delete(c.conditions, namespace)
	c.forgetMet(func(note metNote) bool { return note.Namespace == namespace })
}

func (c *Cache) forgetMet(which func(metNote) bool) []string {
	var namespaces []string
	for uid, note := range c.met {
		if which(note) {
			delete(c.met, uid)
			namespaces = append(namespaces, note.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// keep notes an answer unless something was forgotten since its question.
func (c *Cache) keep(turn int, of matter, note func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if turn >= c.since && c.news[of] <= turn {
		note()
	}
}
