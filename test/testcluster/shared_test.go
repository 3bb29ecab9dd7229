package testcluster

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSharedGivesNamespaces(t *testing.T) {
	a, first := Shared(t)
	b, second := Shared(t)
	if a != b || first == second {
		t.Errorf("want one cluster and two namespaces, got %q on %s and %q on %s", first, a.Name(), second, b.Name())
	}
	createDeployment(t, a, first, probe())
	createDeployment(t, b, second, probe())
}

func TestSharedRefusesWhatReachesOthers(t *testing.T) {
	c, _ := Shared(t)
	if err := refused(t.Context(), c.access); err != nil {
		t.Error(err)
	}
	for name, do := range map[string]func() error{"stop": c.Stop, "pause": c.Pause, "resume": c.Resume} {
		if err := do(); !errors.Is(err, ErrShared) {
			t.Errorf("%s returns %v", name, err)
		}
	}
}

func TestSharedAllowsClusterRoles(t *testing.T) {
	c, name := Shared(t)
	roles := c.client.RbacV1().ClusterRoles()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roles.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestNamespacePrefix(t *testing.T) {
	for test, want := range map[string]string{
		"TestX":              "t-testx-",
		"TestX/some_case #1": "t-testx-some-case--1-",
		"TestÜ":              "t-test-",
		"TestAVeryLongNameThatGoesOnAndOn/AndOnAndOnAndOnAndOn": "t-testaverylongnamethatgoesonandon-andonandonandon-",
	} {
		if got := namespacePrefix(test); got != want {
			t.Errorf("%s gives %s, want %s", test, got, want)
		}
	}
}
