package kube

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// server answers with the resourceVersions that it is given, and notes what lists were asked for.
type server struct {
	dynamic.ResourceInterface
	version string
	refuses error // to any list of a resourceVersion, as one says that was restored to an earlier state
	fails   error
	asked   []string
}

func (s *server) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	s.asked = append(s.asked, o.ResourceVersion+" "+string(o.ResourceVersionMatch))
	if s.refuses != nil && o.ResourceVersion != "" {
		return nil, s.refuses
	}
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion(s.version)
	return list, nil
}

func (s *server) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetResourceVersion(s.version)
	return o
}

func (s *server) Apply(context.Context, string, *unstructured.Unstructured, metav1.ApplyOptions, ...string) (
	*unstructured.Unstructured, error,
) {
	return s.object(), s.fails
}

func (s *server) Delete(context.Context, string, metav1.DeleteOptions, ...string) error { return nil }

// TestListsAreNotOlder: a list shows at least what the executor has written and been told of, and waits for no more.
// After a deletion, whose resourceVersion nobody tells, it is as new as the API server can make it.
func TestListsAreNotOlder(t *testing.T) {
	t.Parallel()
	s, kind := &server{}, Resource(GVKDeployment)
	f := fresh{s, kind, &Newest{}}
	list := func(want string) {
		t.Helper()
		s.asked = nil
		if _, err := f.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.asked, []string{want}) {
			t.Errorf("asked for %q, want %q", s.asked, want)
		}
	}
	apply := func(version string, trial ...string) {
		t.Helper()
		s.version = version
		if _, err := f.Apply(t.Context(), "tide", nil, metav1.ApplyOptions{DryRun: trial}); err != nil {
			t.Fatal(err)
		}
	}
	f.newest.Heard(kind, "5") // what a watch tells at first may be older than a deletion of the session before
	s.version = "7"
	list(" ")
	list("7 NotOlderThan")
	apply("20")
	list("20 NotOlderThan")
	f.newest.Heard(kind, "19")
	list("20 NotOlderThan")
	f.newest.Heard(kind, "21") // also the deletion of an object by somebody else
	f.newest.Heard(kind, "")
	list("21 NotOlderThan")
	apply("30", metav1.DryRunAll)
	list("21 NotOlderThan")

	if err := f.Delete(t.Context(), "tide", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.newest.Heard(kind, "26")
	s.version = "25"
	list(" ")
	list("26 NotOlderThan")

	s.fails = apierrors.NewConflict(kind.GroupResource(), "tide", nil)
	if _, err := f.Apply(t.Context(), "tide", nil, metav1.ApplyOptions{}); err == nil {
		t.Fatal("no conflict")
	}
	s.fails, s.version = nil, "28"
	list(" ")
	list("28 NotOlderThan")

	for _, c := range []struct {
		refuses error
		asked   []string
	}{
		{apierrors.NewTimeoutError("too large resource version", 1), []string{"28 NotOlderThan", " "}},
		{fmt.Errorf("after several tries: %w", context.DeadlineExceeded), []string{"28 NotOlderThan", " "}},
		{apierrors.NewTooManyRequestsError("busy"), []string{"28 NotOlderThan"}},
	} {
		s.refuses, s.asked = c.refuses, nil
		_, err := f.List(t.Context(), metav1.ListOptions{})
		if !slices.Equal(s.asked, c.asked) || (err == nil) != (len(c.asked) == 2) {
			t.Errorf("%v: asked for %q (%v), want %q", c.refuses, s.asked, err, c.asked)
		}
	}
}

// TestDeletionInBetween: what was asked for before a deletion may be older than it.
func TestDeletionInBetween(t *testing.T) {
	t.Parallel()
	n, kind := &Newest{}, Resource(GVKDeployment)
	_, before := n.of(kind)
	n.forget(kind)
	n.wrote(kind, "12", before)
	got, now := n.of(kind)
	if got != 0 {
		t.Errorf("what a write before the deletion returned counts as the newest: %d", got)
	}
	n.wrote(kind, "14", now)
	if got, _ := n.of(kind); got != 14 {
		t.Errorf("newest is %d", got)
	}
}
