package group_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// cluster is a store of objects that counts what is asked of it.
type cluster struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	version int
	lists   int
	effects []string
	refuse  map[string]error // by name
}

func newCluster() *cluster {
	return &cluster{objects: map[string]*unstructured.Unstructured{}, refuse: map[string]error{}}
}

func keyOf(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

func (c *cluster) List(_ context.Context, gvk schema.GroupVersionKind, _, selector string) (
	out []unstructured.Unstructured, err error,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	want, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	for _, o := range c.objects {
		if o.GetKind() == gvk.Kind && want.Matches(labels.Set(o.GetLabels())) {
			out = append(out, *o.DeepCopy())
		}
	}
	return out, nil
}

func (c *cluster) Apply(_ context.Context, body *unstructured.Unstructured, manager string) (
	*unstructured.Unstructured, error,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuse[body.GetName()]; err != nil {
		return nil, err
	}
	if manager != group.Manager || body.GetLabels()["chandler-fleet.io/managed"] != "true" {
		return nil, fmt.Errorf("%s is applied by %s with labels %v", keyOf(body), manager, body.GetLabels())
	}
	c.version++
	o := body.DeepCopy()
	o.SetResourceVersion(fmt.Sprint(c.version))
	c.objects[keyOf(o)] = o
	c.effects = append(c.effects, "apply "+keyOf(o))
	return o.DeepCopy(), nil
}

func (c *cluster) Delete(_ context.Context, o *unstructured.Unstructured) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, keyOf(o))
	c.effects = append(c.effects, "delete "+keyOf(o))
	return nil
}

// did returns what was written since the last call, sorted, and how many lists were asked for.
func (c *cluster) did() ([]string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, lists := c.effects, c.lists
	c.effects, c.lists = nil, 0
	slices.Sort(out)
	return out, lists
}

// edit changes an object behind the keeper's back and says so as a watch would.
func (c *cluster) edit(t *testing.T, k *group.Keeper, key string, change func(*unstructured.Unstructured)) (
	wake []string,
) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[key]
	if o == nil {
		t.Fatalf("there is no %s", key)
	}
	c.version++
	o.SetResourceVersion(fmt.Sprint(c.version))
	change(o)
	return k.Touched(o.GroupVersionKind(), o.GetNamespace(), o.GetName(), watch.Mark(o))
}

func goOn(string) error { return nil }

func names(o []render.Object) (out []string) {
	for _, r := range o {
		out = append(out, "apply ClusterRole /"+r.Name)
	}
	slices.Sort(out)
	return out
}

// TestKeeper: R-OG-40, R-OG-45: what is missing or differs is written, what is not wanted any more goes, and a set
// that is as it was left costs nothing.
func TestKeeper(t *testing.T) {
	t.Parallel()
	c, k := newCluster(), group.NewKeeper()
	g := operatorgroup.Group{Namespace: "ops", Name: "coast"}
	keep := func(want []render.Object) ([]string, int) {
		fatal(t, k.Keep(t.Context(), c, group.RoleSet("ops", want), goOn))
		return c.did()
	}
	empty, filled := group.Roles(g, nil), group.Roles(g, []string{gauge})
	if did, _ := keep(empty); !slices.Equal(did, names(empty)) {
		t.Errorf("first: %v", did)
	}
	if did, lists := keep(empty); did != nil || lists != 0 {
		t.Errorf("again: %v, %d lists", did, lists)
	}
	if did, _ := keep(filled); !slices.Equal(did, names(filled)) {
		t.Errorf("with an API: %v", did)
	}
	role := "ClusterRole /" + filled[0].Name
	wake := c.edit(t, k, role, func(o *unstructured.Unstructured) { // as the cluster's controller fills it in
		o.Object["rules"] = []any{map[string]any{"verbs": []any{"*"}}}
	})
	if did, lists := keep(filled); !slices.Equal(wake, []string{"ops"}) || did != nil || lists != 1 {
		t.Errorf("after the rules were filled in: wake %v, %v, %d lists", wake, did, lists)
	}
	c.edit(t, k, role, func(o *unstructured.Unstructured) { delete(o.Object, "aggregationRule") })
	if did, _ := keep(filled); !slices.Equal(did, []string{"apply " + role}) {
		t.Errorf("after an edit: %v", did)
	}
	if did, _ := keep(nil); len(did) != len(filled) || !strings.HasPrefix(did[0], "delete ") {
		t.Errorf("without the group: %v", did)
	}
	// A new session, and one of the set that is not wanted.
	stray := filled[0].Clone()
	stray.Body["metadata"].(map[string]any)["name"] = "stray"
	fatal(t, group.NewKeeper().Keep(t.Context(), c, group.RoleSet("ops", append(empty, stray)), goOn))
	c.did()
	k = group.NewKeeper()
	if did, lists := keep(empty); !slices.Equal(did, []string{"delete ClusterRole /stray"}) || lists != 1 {
		t.Errorf("a new session: %v, %d lists", did, lists)
	}
}

// TestKeeperLeaves: what an operator needs while it is being uninstalled is neither taken from it nor made again.
func TestKeeperLeaves(t *testing.T) {
	t.Parallel()
	c, k := newCluster(), group.NewKeeper()
	role := func(owner string) render.Object {
		return group.CopiedRoles([]render.Object{{
			GVK:       schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
			Namespace: "ops", Name: owner, Body: map[string]any{
				"apiVersion": "rbac.authorization.k8s.io/v1",
				"kind":       "Role", "rules": []any{}, "metadata": map[string]any{
					"name": owner, "namespace": "ops", "labels": map[string]any{
						render.LabelOwner: owner, render.LabelOwnerNamespace: "ops",
					},
				},
			},
		}}, []string{"target"}, false)[0]
	}
	keep := func(want []render.Object, leave ...string) []string {
		fatal(t, k.Keep(t.Context(), c, group.TargetSet("ops", want, leave...), goOn))
		did, _ := c.did()
		return did
	}
	keep([]render.Object{role("tide"), role("moon")})
	if did := keep([]render.Object{role("moon")}, "tide"); did != nil {
		t.Errorf("while it is taken apart: %v", did)
	}
	if did := keep([]render.Object{role("moon")}); !slices.Equal(did, []string{"delete Role target/tide"}) {
		t.Errorf("when it is gone: %v", did)
	}
}

// TestKeeperGoesOn: what cannot be written does not keep the rest from it, and is tried again; a namespace that is
// going is nobody's fault; a crash passes through.
func TestKeeperGoesOn(t *testing.T) {
	t.Parallel()
	c, k := newCluster(), group.NewKeeper()
	want := group.Roles(operatorgroup.Group{Namespace: "ops", Name: "coast"}, nil)
	set := group.RoleSet("ops", want)
	c.refuse[want[0].Name] = apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, want[0].Name,
		errors.New("quota"))
	if err := k.Keep(t.Context(), c, set, goOn); err == nil || !strings.Contains(err.Error(), want[0].Name) {
		t.Errorf("error %v", err)
	}
	if did, _ := c.did(); !slices.Equal(did, names(want[1:])) {
		t.Errorf("the rest: %v", did)
	}
	c.refuse[want[0].Name] = nil
	fatal(t, k.Keep(t.Context(), c, set, goOn))
	if did, _ := c.did(); !slices.Equal(did, names(want[:1])) {
		t.Errorf("tried again: %v", did)
	}
	c.refuse["gone"] = apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "gone")
	gone := want[0].Clone()
	gone.Name = "gone"
	gone.Body["metadata"].(map[string]any)["name"] = "gone"
	fatal(t, k.Keep(t.Context(), c, group.TargetSet("ops", []render.Object{gone}), goOn))
	crash := errors.New("crash")
	if err := group.NewKeeper().Keep(t.Context(), newCluster(), set, func(string) error { return crash }); !errors.Is(
		err, crash) {
		t.Errorf("a crash became %v", err)
	}
}

// TestAPIRolesOfTwo: R-OG-42: roles of an API that operators of two namespaces provide are one another's: they are
// written once, and go when neither provides it any more.
func TestAPIRolesOfTwo(t *testing.T) {
	t.Parallel()
	c, g := newCluster(), group.New(20*time.Second)
	roles := group.APIRoles(operatorgroup.API{
		Kind: "Gauge", Version: "v1", Group: "sea.test", Resource: "gauges",
		CRD: true,
	})
	more := append(slices.Clone(roles), group.APIRoles(
		operatorgroup.API{Kind: "Buoy", Version: "v1", Group: "sea.test", Resource: "buoys"})...)
	far := standing("b", "y")
	fatal(t, g.Claims.Load(func() ([]operatorgroup.Standing, []group.Claim, error) {
		return []operatorgroup.Standing{standing("a", "x"), far}, nil, nil
	}))
	g.Claims.Settle("a", "tide.v1", []string{gauge})
	g.Claims.Settle("b", "moon.v1", []string{gauge, buoy})
	keep := func(ns string, want []render.Object) ([]string, int) {
		fatal(t, g.Keeper.Keep(t.Context(), c, group.APISet(ns, want), goOn))
		return c.did()
	}
	if did, lists := keep("a", roles); !slices.Equal(did, names(roles)) || lists != 1 {
		t.Errorf("the first: %v, %d lists", did, lists)
	}
	if did, lists := keep("b", more); !slices.Equal(did, names(more[len(roles):])) || lists != 0 {
		t.Errorf("the second: %v, %d lists", did, lists)
	}
	if wake := c.edit(t, g.Keeper, "ClusterRole /"+roles[0].Name,
		func(o *unstructured.Unstructured) { o.Object["rules"] = nil }); !slices.Equal(wake, []string{"a", "b"}) {
		t.Errorf("an edit wakes %v", wake)
	}
	if did, _ := keep("b", more); !slices.Equal(did, names(roles[:1])) {
		t.Errorf("after an edit: %v", did)
	}
	_, free := g.Claims.Keep("a", none)
	fatal(t, g.Free(t.Context(), c, free, goOn))
	if did, _ := c.did(); did != nil {
		t.Errorf("while the second provides it: %v", did)
	}
	_, free = g.Claims.Keep("b", none)
	fatal(t, g.Free(t.Context(), c, free, goOn))
	if did, _ := c.did(); len(did) != len(more) || len(c.objects) != 0 {
		t.Errorf("without either: %v", did)
	}
}

// TestSweep: roles of an API that nobody provides, left by an earlier session, go once, and are made anew when wanted.
func TestSweep(t *testing.T) {
	t.Parallel()
	c, g := newCluster(), group.New(20*time.Second)
	fatal(t, g.Claims.Load(func() ([]operatorgroup.Standing, []group.Claim, error) {
		return nil, []group.Claim{{Namespace: "a", CSV: "tide.v1", APIs: []string{gauge}}}, nil
	}))
	kept := group.APIRoles(operatorgroup.API{Kind: "Gauge", Version: "v1", Group: "sea.test", Resource: "gauges"})
	left := group.APIRoles(operatorgroup.API{Kind: "Buoy", Version: "v1", Group: "sea.test", Resource: "buoys"})
	fatal(t, group.NewKeeper().Keep(t.Context(), c, group.APISet("a", append(slices.Clone(kept), left...)), goOn))
	c.did()
	for range 2 {
		fatal(t, g.Sweep(t.Context(), c, goOn))
	}
	did, lists := c.did()
	var want []string
	for _, n := range names(left) {
		want = append(want, strings.Replace(n, "apply", "delete", 1))
	}
	if diff := cmp.Diff(want, did); diff != "" || lists != 1 {
		t.Errorf("%d lists:\n%s", lists, diff)
	}
	fatal(t, g.Keeper.Keep(t.Context(), c, group.APISet("a", append(kept, left...)), goOn))
	if did, _ := c.did(); !slices.Equal(did, names(left)) {
		t.Errorf("wanted again: %v", did)
	}
}
