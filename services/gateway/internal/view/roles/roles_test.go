package roles_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/roles"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestVersions: a role and a binding show the version at which they were defined last, by which they are replaced; what
// happens to the others of their stream does not move it, and a built-in role has none (issue 13, section 3).
func TestVersions(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, roles.Projection())
	r := &roles.Reader{Pool: e.Pool}
	role := func(name, verb string) events.RoleDefined {
		return events.RoleDefined{Name: name, Rules: []events.AccessRule{
			{Verbs: []string{verb}, Resources: []string{"clusters"}},
		}}
	}
	binding := func(name, role string) events.RoleBindingDefined {
		return events.RoleBindingDefined{Name: name, Role: role, Subjects: []events.AccessSubject{
			{Kind: access.KindUser, Name: "bob"},
		}}
	}
	e.Fold(events.KindAccess, access.Stream, role("a", "get"), role("b", "get"), binding("a", "a"), role("a", "list"),
		binding("b", "b"), binding("a", "b"), events.RoleBindingDeleted{Name: "b"}, binding("b", "a")) // events 1 to 8
	page := model.Page{Limit: 100}
	defined, _, err := r.Roles(t.Context(), viewtest.Ann, page)
	if err != nil {
		t.Fatal(err)
	}
	bound, _, err := r.Bindings(t.Context(), viewtest.Ann, page)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range defined {
		if !x.BuiltIn || x.Tag() != "" {
			got["role/"+x.Name] = x.Tag()
		}
	}
	for _, x := range bound {
		got["rolebinding/"+x.Name] = x.Tag()
	}
	want := map[string]string{
		"role/a": `"1.4"`, "role/b": `"1.2"`, "rolebinding/a": `"1.6"`, "rolebinding/b": `"1.8"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	one, err := r.Role(t.Context(), viewtest.Ann, "a")
	if err != nil || one.Tag() != want["role/a"] || !one.CreatedAt.Equal(viewtest.At(1)) ||
		!one.UpdatedAt.Equal(viewtest.At(4)) {
		t.Errorf("role a is %+v: %v", one, err)
	}
}
