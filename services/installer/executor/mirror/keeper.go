package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// manager is the field manager of all mirrors.
const manager = "chandler/mirror"

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
	// Events are reported of it once it is there.
	Events []mirror.Event
}

// Config is what a Keeper needs; every field is required.
type Config struct {
	Client *kube.Epoch
	Log    *slog.Logger
	Now    func() time.Time
	// At is called at each point between two effects; its error ends the work there and then.
	At func(point string) error
}

// Keeper keeps the mirrors of one cluster. Its methods may be called side by side for different namespaces.
type Keeper struct {
	Config
	recorder *recorder

	ensuring  sync.Mutex
	ensured   string       // setting for which definitions and policy were made
	lost      atomic.Int64 // counts the definitions that went since
	made      int64        // lost when they were made
	stoodBack bool         // OLM is at work: what people create is let in
	retired   string       // setting for which all other definitions are gone
	// retireFor is the setting for which they were looked at, retireAt when to look at them again.
	retireFor   string
	retireAt    time.Time
	retirePause time.Duration

	mu    sync.Mutex
	notes map[Key]note
	there map[Key]entry
	copying
	// conditions are noted under the keys of the OperatorConditions; events is what was notified of copies, by UID.
	conditions map[Key]*conditionNote
	events     map[string]mirror.Copies
	// retiring are the names of definitions that were removed because nothing needs them.
	retiring map[string]bool
}

// copying is what is known of copies of ClusterServiceVersions.
type copying struct {
	// copies is what holds under the setting copiesFor; nil while the cluster's OLMConfig is not read.
	copies    *mirror.Copies
	copiesFor string
	absent    bool // there is no OLMConfig
	turn      int  // counts the changes of OLMConfig
}

// note is what is known of a mirror that is as it was wanted.
type note struct {
	body, status string
	mark         uint64 // of the version that came of the last write of the body, or was read
	uid          types.UID
	version      string // resource version of the last write, or that was read
}

// entry is a mirror that the watch told of.
type entry struct {
	home string // namespace of the operators that it shows
	uid  types.UID
}

// New returns a keeper that does nothing yet.
func New(c Config) *Keeper {
	return &Keeper{
		Config: c, recorder: newRecorder(c), notes: map[Key]note{}, there: map[Key]entry{},
		conditions: map[Key]*conditionNote{}, events: map[string]mirror.Copies{}, retiring: map[string]bool{},
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

// writesAtOnce bounds what one reconcile of a namespace writes, so that a thousand copies hold up nobody.
const writesAtOnce = 50

// Keep makes the mirrors that show operators of a namespace what is wanted, and removes the others. more reports that
// there is more to be done than one reconcile may do. A mirror that cannot be written does not hold up the others.
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
		k.record(w)
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
			err = errors.Join(err, fmt.Errorf("remove mirror %s: %w", key, failed))
			if !isForeign(failed) {
				return more, err
			}
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
	var live *unstructured.Unstructured
	if !bodyHolds {
		if live, err = k.own(ctx, w.Key); err != nil {
			return 0, err
		}
		n.mark, n.uid, n.version = watch.Mark(live), live.GetUID(), live.GetResourceVersion()
	}
	o, err := w.Build(ctx)
	if err != nil {
		return 0, err
	}
	if !bodyHolds {
		if bodyHolds, err = holds(live, o); err != nil {
			return 0, err
		}
	}
	if !bodyHolds {
		written, err := k.apply(ctx, w.Key, n.uid, o.Body)
		if err != nil {
			return wrote, err
		}
		n.mark, n.uid, n.version = watch.Mark(written), written.UID, written.ResourceVersion
		wrote++
	}
	n.body = w.Body
	if w.Status != "" && o.Status != nil && !sameStatus(live, o) {
		if n.version, err = k.setStatus(ctx, w.Key, n.uid, o.Status); err != nil {
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

// own reads a mirror, an empty object where none is there. One that somebody else made is an error.
func (k *Keeper) own(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	o, err := k.read(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return &unstructured.Unstructured{}, nil
	case o.GetLabels()[mirror.LabelMirror] == "" || !Made(o):
		return nil, foreignError{key}
	}
	return o, nil
}

// holds reports whether a mirror that is there is as wanted, and bears no label or annotation that was wanted before.
func holds(live *unstructured.Unstructured, want mirror.Object) (bool, error) {
	if !mirror.Holds(live.Object, want) {
		return false, nil
	}
	surplus, err := mirror.Leaves(live.GetManagedFields(), manager, want)
	return !surplus, err
}

func sameStatus(live *unstructured.Unstructured, want mirror.Object) bool {
	if live == nil {
		return false
	}
	status, ok := live.Object["status"].(map[string]any)
	return ok && mirror.SameStatus(status, want.Status)
}

// apply writes the body of an object. One that was there is taken back from whoever edited it; it must be the one that
// was looked at. Where none was there, uid is "", and nothing is taken from whoever made one meanwhile.
func (k *Keeper) apply(ctx context.Context, key Key, uid types.UID, body map[string]any) (
	*metav1.PartialObjectMetadata, error,
) {
	force := uid != ""
	if meta, ok := body["metadata"].(map[string]any); force && ok {
		body, meta = maps.Clone(body), maps.Clone(meta)
		meta["uid"], body["metadata"] = string(uid), meta
	}
	written, err := k.write(ctx, key, applyPatch, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
	if apierrors.IsConflict(err) && !force {
		return nil, foreignError{key}
	}
	return written, err
}

// setStatus replaces the status of exactly the object that was looked at, and returns the version that this makes.
func (k *Keeper) setStatus(ctx context.Context, key Key, uid types.UID, status map[string]any) (
	version string, err error,
) {
	patch := []any{
		map[string]any{"op": "test", "path": "/metadata/uid", "value": uid},
		map[string]any{"op": "add", "path": "/status", "value": status},
	}
	written, err := k.write(ctx, key, jsonPatch, patch, metav1.PatchOptions{FieldManager: manager}, "status")
	if err != nil {
		return "", err
	}
	return written.ResourceVersion, nil
}

// write sends one patch. The answer is metadata only: some mirrors are large.
func (k *Keeper) write(ctx context.Context, key Key, kind types.PatchType, body any, how metav1.PatchOptions,
	subresources ...string,
) (*metav1.PartialObjectMetadata, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode %s", key)
	}
	if err := k.at("before mirror"); err != nil {
		return nil, err
	}
	ctx, cancel := k.Client.Limit(ctx)
	defer cancel()
	written, err := k.objects(key).Patch(ctx, key.Name, kind, raw, how, subresources...)
	if err != nil {
		return nil, err
	}
	return written, k.at("mirrored")
}

func (k *Keeper) objects(key Key) metadata.ResourceInterface {
	r := k.Client.Metadata.Resource(kube.Resource(key.GVK))
	if key.Namespace == "" {
		return r
	}
	return r.Namespace(key.Namespace)
}

func (k *Keeper) read(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	return k.Client.Get(ctx, key.GVK, key.Namespace, key.Name)
}

// remove deletes a mirror that is not wanted any more. What only bears the label of one stays.
func (k *Keeper) remove(ctx context.Context, key Key) error {
	k.mu.Lock()
	uid := k.there[key].uid
	k.mu.Unlock()
	if err := k.at("before mirror"); err != nil {
		return err
	}
	ctx, cancel := k.Client.Limit(ctx)
	defer cancel()
	live, err := k.objects(key).Get(ctx, key.Name, metav1.GetOptions{})
	if err == nil && !Made(live) {
		return foreignError{key}
	}
	if err == nil {
		err = k.objects(key).Delete(ctx, key.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid},
		})
	}
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

// Listed takes the news that all objects of a kind were listed, and reports whether one that was written is not there:
// it went while nobody watched, as it may before a kind's watch begins, and there is no other news of that.
func (k *Keeper) Listed(gvk schema.GroupVersionKind, there func(namespace, name string) bool) (lost bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.notes {
		if key.GVK == gvk && !there(key.Namespace, key.Name) {
			delete(k.notes, key)
			lost = true
		}
	}
	for key, n := range k.conditions {
		if key.GVK == gvk && n.kept && !there(key.Namespace, key.Name) {
			n.kept, lost = false, true
		}
	}
	return lost
}

// foreignError says that an object is somebody else's: nothing is done to it.
type foreignError struct{ Key }

func (f foreignError) Error() string {
	return "an object of somebody else has this name, or the label of a mirror; it stays as it is: remove it, or " +
		"have it named otherwise"
}

func isForeign(err error) bool {
	_, ok := errors.AsType[foreignError](err)
	return ok
}
