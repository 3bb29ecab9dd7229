package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// refusal is how the API server passes on what an admission policy says.
func refusal(name, text string) *apierrors.StatusError {
	err := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, name, errors.New(text))
	err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	return err
}

// TestIsFenced: only the policy itself says that a newer executor holds the cluster (DESIGN D7). The words of an object
// or of a webhook do not, wherever they are quoted.
func TestIsFenced(t *testing.T) {
	t.Parallel()
	said := "ValidatingAdmissionPolicy '" + fenceName + "' with binding '" + fenceName + "' denied request: " +
		fencedMessage
	webhook := refusal("tide", "")
	webhook.ErrStatus.Message = `admission webhook "gate.sea.test" denied the request: ` + said
	shaped := refusal("tide", "")
	shaped.ErrStatus.Details.Group, shaped.ErrStatus.Details.Kind = "",
		`admission webhook "gate.sea.test" denied the request: things`
	shaped.ErrStatus.Message = shaped.ErrStatus.Details.Kind + ` "tide" is forbidden: ` + said
	quoted := refusal("tide", `spec.replicas: Invalid value: "`+said+`"`)
	named := refusal(`tide" is forbidden: `+said, "it is not")
	conflict := refusal("tide", said)
	conflict.ErrStatus.Reason = metav1.StatusReasonConflict
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the fence":             {refusal("tide", said), true},
		"the fence, wrapped":    {fmt.Errorf("apply: %w", refusal("tide", said)), true},
		"the fence, of no name": {refusal("", said), true},
		"another policy": {refusal("tide", "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: "+
			fencedMessage), false},
		"a webhook":              {webhook, false},
		"a webhook with details": {shaped, false},
		"a quoted value":         {quoted, false},
		"a name":                 {named, false},
		"another status":         {conflict, false},
		"no answer of the API":   {errors.New(said), false},
		"nothing":                {nil, false},
		"the message by itself":  {refusal("tide", fencedMessage), false},
		"the policy of the records": {refusal("tide", "ValidatingAdmissionPolicy '"+memoryName+"' with binding '"+
			memoryName+"' denied request: x"), false},
	} {
		if got := IsFenced(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v (%v)", name, got, c.want, c.err)
		}
	}
}

// TestAcquireAboveFence: an epoch is above the lease's and the fence's, whichever of them was lost or restored.
func TestAcquireAboveFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease, fence string // annotations; "" for none there
		holder       string
		want         int64
	}{
		"a new cluster":                       {"", "", "", 1},
		"the lease was lost":                  {"", "7", "", 8},
		"the lease was restored":              {"3", "7", "", 8},
		"the lease was restored with us":      {"3", "7", "one", 8},
		"another holds what was restored":     {"3", "7", "two", 0},
		"the fence was lost":                  {"5", "", "", 6},
		"the fence was edited":                {"5", "many", "", 6},
		"the fence was edited beyond numbers": {"5", "9223372036854775807", "", 6},
	} {
		base := &Base{Kube: fake.NewClientset()}
		if c.fence != "" {
			p := fencePolicy(1)
			p.Annotations[annotationEpoch] = c.fence
			if _, err := base.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(
				t.Context(), p, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		l := NewLease(base, Registration{}, "one", time.Minute, time.Now)
		if c.lease != "" {
			other := NewLease(base, Registration{}, c.holder, time.Minute, time.Now)
			if _, err := other.create(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			made, err := base.Kube.CoordinationV1().Leases(SystemNamespace).Get(
				t.Context(), LeaseName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made.Annotations[annotationEpoch], made.ResourceVersion = c.lease, "2"
			if _, err := base.Kube.CoordinationV1().Leases(SystemNamespace).Update(
				t.Context(), made, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := l.Acquire(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: got %d (%v), want %d", name, got, err, c.want)
		}
	}
}

// TestFenceAhead: a holder that finds the fence above its epoch is told so, and its next try begins above it.
func TestFenceAhead(t *testing.T) {
	t.Parallel()
	base := &Base{Kube: fake.NewClientset()}
	l := NewLease(base, Registration{}, "one", time.Minute, time.Now)
	first, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := base.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(
		t.Context(), fencePolicy(9), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := base.Fence(t.Context(), first); !IsFenceAhead(err) || !errs.Is(err, errs.Conflict) {
		t.Errorf("the fence in epoch %d: %v", first, err)
	}
	for epoch, want := range map[int64]bool{8: true, 9: false, 10: false} {
		if out, err := base.FencedOut(t.Context(), epoch); err != nil || out != want {
			t.Errorf("fenced out in epoch %d: %v (%v)", epoch, out, err)
		}
	}
	if next, err := l.Acquire(t.Context()); err != nil || next != 10 {
		t.Errorf("the next try got epoch %d (%v)", next, err)
	}
	if again, err := l.Acquire(t.Context()); err != nil || again != 10 {
		t.Errorf("what is held became epoch %d (%v)", again, err)
	}
}

// TestLeftOfALease: a candidate knows when a holder of which nothing is heard is gone, and takes the lease then, not
// before; a holder that is heard of starts that time anew.
func TestLeftOfALease(t *testing.T) {
	t.Parallel()
	base, now := &Base{Kube: fake.NewClientset()}, time.Now()
	clock := func() time.Time { return now }
	holder := NewLease(base, Registration{}, "one", time.Minute, clock)
	if _, err := holder.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	candidate := NewLease(base, Registration{}, "two", time.Minute, clock)
	look := func(after, left time.Duration, want int64) {
		t.Helper()
		now = now.Add(after)
		got, err := candidate.Acquire(t.Context())
		if err != nil || got != want || candidate.Left() != left {
			t.Errorf("got epoch %d (%v), left is %s; want %d and %s", got, err, candidate.Left(), want, left)
		}
	}
	heard := func(version string) { // as an API server counts
		t.Helper()
		leases := base.Kube.CoordinationV1().Leases(SystemNamespace)
		lease, err := leases.Get(t.Context(), LeaseName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lease.ResourceVersion = version
		if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	heard("1")
	look(0, time.Minute, 0)
	look(50*time.Second, 10*time.Second, 0)
	heard("2")
	look(0, time.Minute, 0)
	look(59*time.Second, time.Second, 0)
	look(candidate.Left(), time.Minute, 2)
}
