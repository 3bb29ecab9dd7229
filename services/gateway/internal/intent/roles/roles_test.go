package roles_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/roles"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func service(e *intenttest.Env) *roles.Service {
	return &roles.Service{Units: e.Units, Tokens: store.NewTokens(e.Units.Work)}
}

// matching is a context whose change is about an object of this tag: "" names none, "*" is whatever is there.
func matching(t *testing.T, tag string) context.Context {
	t.Helper()
	return unit.Matching(t.Context(), model.ParseMatch(tag, ""))
}

func allowing(verb string) model.RoleSpec {
	return model.RoleSpec{Rules: []model.AccessRule{{Verbs: []string{verb}, Resources: []string{"clusters"}}}}
}

func giving(role string) model.RoleBindingSpec {
	return model.RoleBindingSpec{Role: role, Subjects: []model.AccessSubject{{Kind: access.KindUser, Name: "bob"}}}
}

// refused says whether a change was refused for the version that it names, or because it has to name one.
func refused(t *testing.T, what string, err error, required bool) {
	t.Helper()
	e, ok := errors.AsType[*unit.PreconditionError](err)
	if !ok || e.Required != required {
		t.Errorf("%s: %v, want it refused by its precondition, required: %v", what, err, required)
	}
}

// TestOneObjectOfTheStream: roles and bindings share a stream, and each is replaced at the version at which it was
// defined last: what happens to the others, also to one of the same name and another kind, is no change of it (issue
// 13, section 3).
func TestOneObjectOfTheStream(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := service(e)
	role := func(name, tag, verb string) (model.AccessRole, error) {
		return s.SetRole(matching(t, tag), intenttest.Ann, name, allowing(verb))
	}
	binding := func(name, tag, role string) (model.RoleBinding, error) {
		return s.SetBinding(matching(t, tag), intenttest.Ann, name, giving(role))
	}
	must := func(tag string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	a, err := role("a", "", "get") // version 1
	first := must(a.Tag(), err)
	b, err := role("b", "", "get") // 2
	must(b.Tag(), err)
	bound, err := binding("a", "", "a") // 3
	must(bound.Tag(), err)
	if a.Version != 1 || b.Version != 2 || bound.Version != 3 || a.Stream != bound.Stream {
		t.Errorf("defined as %+v, %+v and %+v", a, b, bound)
	}
	_, err = role("a", "", "list")
	refused(t, "without a version", err, true)
	a, err = role("a", first, "list") // 4
	must(a.Tag(), err)
	_, err = role("a", first, "get")
	refused(t, "an older version", err, false)
	_, err = role("a", bound.Tag(), "get")
	refused(t, "the version of the binding of that name", err, false)
	if a.Version != 4 {
		t.Errorf("replaced as %+v", a)
	}
	if again, err := role("a", a.Tag(), "list"); err != nil || again.Tag() != a.Tag() {
		t.Errorf("nothing changes, and %+v: %v", again, err)
	}
	bound, err = binding("a", bound.Tag(), "b") // 5
	must(bound.Tag(), err)
	_, err = binding("c", "*", "b")
	refused(t, "whatever is there, where nothing is", err, false)

	// Deleted and defined anew it is another one.
	if _, err := s.DeleteRole(t.Context(), intenttest.Ann, "a"); err != nil { // 6
		t.Fatal(err)
	}
	_, err = role("a", a.Tag(), "get")
	refused(t, "what is gone", err, false)
	anew, err := role("a", "", "list") // 7
	must(anew.Tag(), err)
	_, err = role("a", a.Tag(), "get")
	refused(t, "what was there before", err, false)
	if anew.Version != 7 {
		t.Errorf("defined anew as %+v", anew)
	}
	if _, err := role("viewer", "*", "get"); !errs.Is(err, errs.Conflict) {
		t.Errorf("a built-in role: %v", err)
	}
	if n := len(e.Events(intenttest.Ann, events.KindAccess, access.Stream)); n != 7 {
		t.Errorf("%d events, want 7", n)
	}
}

// TestTwoEditors: of two who replace the same role at the same moment one does, and the other learns of it; two who
// replace two roles both do, though one of them has to decide again.
func TestTwoEditors(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := service(e)
	tags := map[string]string{}
	for _, name := range []string{"a", "b"} {
		r, err := s.SetRole(t.Context(), intenttest.Ann, name, allowing("get"))
		if err != nil {
			t.Fatal(err)
		}
		tags[name] = r.Tag()
	}
	both := func(names [2]string) (err [2]error) {
		var wait sync.WaitGroup
		for i, who := range []model.Caller{intenttest.Ann, intenttest.Bob} {
			verb := []string{"list", "update"}[i]
			wait.Go(func() { _, err[i] = s.SetRole(matching(t, tags[names[i]]), who, names[i], allowing(verb)) })
		}
		wait.Wait()
		return err
	}
	if err := both([2]string{"a", "b"}); errors.Join(err[:]...) != nil {
		t.Errorf("two roles: %v", err)
	}
	now, wrong := s.SetRole(matching(t, "*"), intenttest.Ann, "a", allowing("delete"))
	if wrong != nil {
		t.Fatal(wrong)
	}
	tags["a"] = now.Tag()
	one := both([2]string{"a", "a"})
	if (one[0] == nil) == (one[1] == nil) {
		t.Fatalf("the same role: %v, want one of them refused", one)
	}
	refused(t, "who was slower", cmp.Or(one[:]...), false)
}
