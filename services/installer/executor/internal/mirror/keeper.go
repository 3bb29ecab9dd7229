package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/watch"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// manager is the field manager of all mirrors.
const manager = "chandler/mirror"

// requestTimeout bounds each request of the client of metadata, which has no bound of its own.
const requestTimeout = 20 * time.Second

// Key names one object.
type Key struct {
	GVK       schema.GroupVersionKind
	Namespace string // "" for cluster-scoped objects
	Name      string
}

// String is "Kind namespace/name", for people.
func (k Key) String() string {
	return k.GVK.Kind + " " + strings.TrimPrefix(k.Namespace+"/"+k.Name, "/")
}

// Wanted is one mirror as it is to be.
type Wanted struct {
	Key
	// Body stands for what it is to be without its status, Status for that: others mean something else is wanted.
	// A Status of "" leaves the status as it is.
	Body, Status string
	// Build makes the object; it is called where something is to be written or compared.
	Build func(context.Context) (mirror.Object, error)
}

// Config is what a Keeper needs; every field is required.
type Config struct {
	Client *cluster.Epoch
	Log    *slog.Logger
	// At is called at each point between two effects; its error ends the work there and then.
	At func(point string) error
}

// Keeper keeps the mirrors of one cluster. Its methods may be called side by side for different namespaces.
type Keeper struct {
	Config

	ensuring sync.Mutex
	ensured  string       // setting for which definitions and policy were made
	lost     atomic.Int64 // counts the definitions that went since
	made     int64        // lost when they were made

	mu     sync.Mutex
	notes  map[Key]note
	there  map[Key]entry
	copies *mirror.Copies // what the cluster's OLMConfig says; nil while that is not read
	absent bool           // there is no OLMConfig
	turn   int            // counts the changes of OLMConfig
	told   map[Key]bool   // of somebody else's objects
	// conditions are noted under the keys of the OperatorConditions; events is what was told of copies, by UID.
	conditions map[Key]*conditionNote
	events     map[string]mirror.Copies
}

// note is what is known of a mirror that is as it was wanted.
type note struct {
	body, status string
	mark         uint64 // of the version that came of the last write of the body, or was read
}

// entry is a mirror that the watch told of.
type entry struct {
	home string // namespace of the operators that it shows
	uid  types.UID
}

// New returns a keeper that does nothing yet.
func New(c Config) *Keeper {
	return &Keeper{
		Config: c, notes: map[Key]note{}, there: map[Key]entry{}, told: map[Key]bool{},
		conditions: map[Key]*conditionNote{}, events: map[string]mirror.Copies{},
	}
}

// ended is an error of Config.At.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }

func (k *Keeper) at(point string) error {
	if err := k.At(point); err != nil {
		return ended{err}
	}
	return nil
}

// Patches: a body is applied, a status replaced.
const (
	applyPatch = types.ApplyPatchType
	jsonPatch  = types.JSONPatchType
)

// writesAtOnce bounds what one look at a namespace writes, so that a thousand copies hold up nobody.
const writesAtOnce = 50

// Keep makes the mirrors that show operators of a namespace what is wanted, and removes the others. more reports that
// there is more to be done than one look may do. A mirror that cannot be written does not hold up the others.
func (k *Keeper) Keep(ctx context.Context, home string, list []Wanted) (more bool, err error) {
	left := writesAtOnce
	wanted := map[Key]bool{}
	for _, w := range list {
		wanted[w.Key] = true
		if left <= 0 {
			more = true
			continue
		}
		wrote, failed := k.keep(ctx, w)
		left -= wrote
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("mirror %s: %w", w.Key, failed))
			if isEnded(failed) || ctx.Err() != nil {
				return more, err
			}
		}
	}
	for _, key := range k.surplus(home, wanted) {
		if left <= 0 {
			return true, err
		}
		left--
		if failed := k.remove(ctx, key); failed != nil {
			return more, errors.Join(err, fmt.Errorf("remove mirror %s: %w", key, failed))
		}
	}
	return more, err
}

func isEnded(err error) bool {
	_, ok := errors.AsType[ended](err)
	return ok
}

// keep makes one mirror what is wanted and returns how many writes that took.
func (k *Keeper) keep(ctx context.Context, w Wanted) (wrote int, err error) {
	n, known := k.noteOf(w.Key)
	bodyHolds := known && n.body == w.Body
	if bodyHolds && (w.Status == "" || n.status == w.Status) {
		return 0, nil
	}
	var live map[string]any
	if !bodyHolds {
		o, err := k.read(ctx, w.Key)
		if err != nil {
			return 0, err
		}
		if o != nil {
			if o.GetLabels()[mirror.LabelMirror] == "" {
				k.tellForeign(ctx, w.Key)
				return 0, nil
			}
			live, n.mark = o.Object, watch.Mark(o)
		}
	}
	o, err := w.Build(ctx)
	if err != nil {
		return 0, err
	}
	if !bodyHolds && !mirror.Holds(live, o) {
		if n.mark, err = k.write(ctx, w.Key, applyPatch, o.Body); err != nil {
			return wrote, err
		}
		wrote++
	}
	n.body = w.Body
	if w.Status != "" && o.Status != nil && !sameStatus(live, o) {
		patch := []any{map[string]any{"op": "add", "path": "/status", "value": o.Status}}
		if _, err = k.write(ctx, w.Key, jsonPatch, patch, "status"); err != nil {
			return wrote, err
		}
		wrote++
	}
	if w.Status != "" {
		n.status = w.Status
	}
	k.mu.Lock()
	k.notes[w.Key] = n
	k.mu.Unlock()
	return wrote, nil
}

func sameStatus(live map[string]any, want mirror.Object) bool {
	status, ok := live["status"].(map[string]any)
	return ok && mirror.SameStatus(status, want.Status)
}

// write sends one patch and returns the mark of what came of it. The answer is metadata only: some mirrors are large.
func (k *Keeper) write(ctx context.Context, key Key, kind types.PatchType, body any, subresources ...string) (uint64, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, errs.Wrap(errs.Internal, err, "encode %s", key)
	}
	if err := k.at("before mirror"); err != nil {
		return 0, err
	}
	options := metav1.PatchOptions{FieldManager: manager}
	if force := true; kind == applyPatch {
		options.Force = &force
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	written, err := k.objects(key).Patch(ctx, key.Name, kind, raw, options, subresources...)
	if err != nil {
		return 0, err
	}
	return watch.Mark(written), k.at("mirrored")
}

func (k *Keeper) objects(key Key) metadata.ResourceInterface {
	r := k.Client.Metadata.Resource(cluster.Resource(key.GVK))
	if key.Namespace == "" {
		return r
	}
	return r.Namespace(key.Namespace)
}

func (k *Keeper) read(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	return k.Client.Get(ctx, key.GVK, key.Namespace, key.Name)
}

// remove deletes a mirror that is not wanted any more.
func (k *Keeper) remove(ctx context.Context, key Key) error {
	k.mu.Lock()
	uid := k.there[key].uid
	k.mu.Unlock()
	if err := k.at("before mirror"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := k.objects(key).Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // gone, or another one by now
		return err
	}
	k.mu.Lock()
	delete(k.there, key)
	delete(k.notes, key)
	k.mu.Unlock()
	return k.at("mirrored")
}

// surplus are the mirrors of a namespace's operators that are not wanted, in order.
func (k *Keeper) surplus(home string, wanted map[Key]bool) []Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []Key
	for key, e := range k.there {
		if e.home == home && !wanted[key] {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func (k *Keeper) noteOf(key Key) (note, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.notes[key]
	return n, ok
}

// Changed takes a change of a mirror, and reports whether somebody else made it: then the namespace whose operators it
// shows, home, is to be looked at.
func (k *Keeper) Changed(c watch.Change) (home string, foreign bool) {
	key := Key{GVK: c.GVK, Namespace: c.Namespace, Name: c.Name}
	k.mu.Lock()
	defer k.mu.Unlock()
	n, known := k.notes[key]
	if c.Gone {
		delete(k.there, key)
		delete(k.notes, key)
		return c.Owner, true
	}
	k.there[key] = entry{home: c.Owner, uid: types.UID(c.UID)}
	if known && n.mark == c.Mark {
		return c.Owner, false
	}
	delete(k.notes, key)
	return c.Owner, true
}

// tellForeign says once that an object is somebody else's.
func (k *Keeper) tellForeign(ctx context.Context, key Key) {
	k.mu.Lock()
	told := k.told[key]
	k.told[key] = true
	k.mu.Unlock()
	if !told {
		k.Log.WarnContext(ctx, "an object of somebody else has the name of a mirror; it stays as it is", "object", key.String())
	}
}
