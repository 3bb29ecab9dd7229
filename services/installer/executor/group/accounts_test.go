package group_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
	executor "github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// lands has a cluster, an operator that was installed through an account, and what that account may give.
type lands struct {
	*cluster
	accounts *group.Accounts
	operator group.Scoped
	holds    map[string]bool // by target
	asked    int
	away     error
}

func newLands() *lands {
	role := func(kind string, body map[string]any) render.Object {
		body["kind"], body["metadata"] = kind, map[string]any{
			"name": "tide", "namespace": "ops", "labels": map[string]any{
				render.LabelOwner: "tide.v1", render.LabelOwnerNamespace: "ops",
			},
		}
		return render.Object{GVK: schema.GroupVersionKind{
			Group: "rbac.authorization.k8s.io", Version: "v1",
			Kind: kind,
		}, Namespace: "ops", Name: "tide", Body: body}
	}
	return &lands{
		cluster: newCluster(), accounts: group.New(20 * time.Second).Accounts, holds: map[string]bool{},
		operator: group.Scoped{
			Name: "tide.v1", UID: "u", Account: executor.Account{Namespace: "ops", Name: "installer"},
			Own: []render.Object{
				role("Role", map[string]any{"rules": []any{
					map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"get"}},
				}}),
				role("RoleBinding", map[string]any{"roleRef": map[string]any{"kind": "Role", "name": "tide"}}),
			},
		},
	}
}

func (l *lands) lacks(_ context.Context, a executor.Account, roles []render.Object) (r permissions.Result, err error) {
	l.asked++
	for _, o := range roles {
		if o.GVK.Kind != "RoleBinding" && o.GVK.Kind != "ClusterRoleBinding" && !l.holds[o.Namespace] {
			r.Missing = append(r.Missing, protocol.MissingPermission{
				User: a.User(), Verb: "get", Resource: "secrets",
				Namespace: o.Namespace, For: o.String(),
			})
		}
	}
	return r, l.away
}

func (l *lands) limit(t *testing.T, now time.Time, targets ...string) scope.Limits {
	t.Helper()
	got, err := l.accounts.Limit(t.Context(), l, "ops", []group.Scoped{l.operator}, targets, l.lacks, now)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// gives writes what the operator is to have in targets, as Chandler would.
func (l *lands) gives(t *testing.T, targets ...string) {
	t.Helper()
	set := group.TargetSet("ops", group.CopiedRoles(l.operator.Own, targets, false))
	if err := group.NewKeeper().Keep(t.Context(), l, set, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	l.did()
}

// TestLimit: a target that a group gets later is given to an operator if its account has there what is to be given, and
// else not (R-OG-60); what it was given it keeps (R-OG-64).
func TestLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	l := newLands()
	l.gives(t, "a")
	l.holds["b"] = true
	got := l.limit(t, now, "a", "b", "c")
	if !cmp.Equal(got.Denied, map[string][]string{"tide.v1": {"c"}}) || len(got.Missing) != 1 ||
		got.Missing[0].Namespace != "c" || got.Again <= 0 || got.Hold != nil {
		t.Errorf("limits %+v", got)
	}
	if l.asked != 2 {
		t.Errorf("the account was asked %d times; what it was given in a is not asked for again", l.asked)
	}
	if told := got.Targets("tide.v1", []string{"a", "b", "c"}); !slices.Equal(told, []string{"a", "b"}) {
		t.Errorf("it is told of %v", told)
	}
	if told := got.Targets("buoy.v1", []string{"a", "c"}); !slices.Equal(told, []string{"a", "c"}) {
		t.Errorf("another operator is told of %v", told)
	}

	// Soon after, nobody is asked; later the account has lost what it had, and was given what it lacked.
	l.holds = map[string]bool{"c": true}
	if again := l.limit(t, now.Add(time.Second), "a", "b", "c"); l.asked != 2 || !cmp.Equal(again.Denied, got.Denied) {
		t.Errorf("asked %d times, limits %+v", l.asked, again)
	}
	if later := l.limit(t, now.Add(got.Again), "a", "b", "c"); l.asked != 3 || len(later.Denied) != 0 ||
		later.Again != 0 {
		t.Errorf("asked %d times, limits %+v", l.asked, later)
	}
	l.operator.UID = "another life"
	if fresh := l.limit(t, now.Add(got.Again), "b"); !fresh.Of("tide.v1", "b") {
		t.Errorf("what was allowed to another operator of that name counts: %+v", fresh)
	}
	l.away = errors.New("away")
	if _, err := l.accounts.Limit(t.Context(), l, "ops", []group.Scoped{l.operator}, []string{"d"}, l.lacks,
		now); !errors.Is(err, l.away) {
		t.Errorf("an answer that is not to be had is %v", err)
	}
}

// TestLimitHolds: an object that somebody has changed, or planted, in a target is no grant; it stays as it is and
// neither becomes what the account may not give, nor goes (R-OG-60, R-OG-64).
func TestLimitHolds(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	l := newLands()
	l.gives(t, "a", "b")
	if err := unstructured.SetNestedSlice(l.objects["Role b/tide"].Object, []any{}, "rules"); err != nil {
		t.Fatal(err)
	}
	got := l.limit(t, now, "a", "b")
	if !got.Of("tide.v1", "b") || got.Of("tide.v1", "a") ||
		!slices.Equal(got.Hold, []string{"Role b/tide", "RoleBinding b/tide"}) {
		t.Errorf("limits %+v", got)
	}
	set := group.TargetSet("ops", group.CopiedRoles(l.operator.Own, got.Targets("tide.v1", []string{"a", "b"}), false))
	set.Hold = got.Hold
	if err := group.NewKeeper().Keep(t.Context(), l, set, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if did, _ := l.did(); len(did) != 0 {
		t.Errorf("did %v", did)
	}

	// A group that comes to serve all namespaces takes nothing from an operator that may not be lifted.
	all := l.limit(t, now, "")
	if !all.Of("tide.v1", "") || len(all.Hold) != 4 || !slices.Equal(all.Targets("tide.v1", []string{""}),
		[]string{""}) {
		t.Errorf("limits %+v", all)
	}
}
