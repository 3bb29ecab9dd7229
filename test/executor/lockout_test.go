package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// needsAllowance is why a plan waits for an administrator's word.
const needsAllowance = "AllowanceNeeded"

// everything is a webhook about all that a bundle can name: all groups at once is refused by rendering (R-CSV-45).
const everything = `["", apps, batch, events.k8s.io, networking.k8s.io, policy, rbac.authorization.k8s.io,
      coordination.k8s.io, authentication.k8s.io, authorization.k8s.io, certificates.k8s.io, apiextensions.k8s.io,
      apiregistration.k8s.io], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}]`

// TestAllowance: nothing is installed of a bundle that gives the cluster away, until an administrator allows exactly
// this bundle (DESIGN D10); and a webhook that is allowed to be asked about everything, and never answers, does not
// lock Chandler out (DESIGN D7): it renews its lease, writes step logs, and removes the operator.
//
//nolint:tparallel // one executor is the subject
func TestAllowance(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	t.Run("binding", func(t *testing.T) { testAllowedBinding(t, b.on(t)) }) //nolint:paralleltest // see above
	t.Run("webhook", func(t *testing.T) { testNoLockOut(t, b.on(t)) })      //nolint:paralleltest // see above
}

func testAllowedBinding(t *testing.T, b *bed) {
	const ns, role = "al-binding", "al-everybody"
	b.namespace(t, ns)
	const binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + role +
		"}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}]\n"
	o := operator{name: ns, version: "1.0.0"}
	p := b.bring(t, ns, o, binding)
	if r := b.awaitPlan(ns, p.ID, blocked(needsAllowance)); r.Begun || !strings.Contains(r.Message, "everybody") ||
		!strings.Contains(r.Message, "--allow "+o.csv()) {
		t.Errorf("begun: %v; %s", r.Begun, r.Message)
	}
	a := b.checked(t, ns, p).Allowances
	other := operator{name: ns, version: "1.0.1"}
	q := b.bring(t, "al-other", other, binding)
	c := b.checked(t, "al-other", q).Allowances
	if len(a) != 1 || len(a[0].Needed) != 2 || len(a[0].By) > 0 || len(c) != 1 || a[0].Finding == c[0].Finding {
		t.Fatalf("allowances %+v and %+v", a, c)
	}
	allow := protocol.Choice{
		Object: a[0].Object(), Choice: events.ChoiceAllow, Finding: c[0].Finding, By: []string{"anna"},
	}
	b.choose(t, ns, p, allow) // what was said of another bundle
	b.looked(t, b.scope(ns))
	b.awaitPlan(ns, p.ID, blocked(needsAllowance))
	_, err := b.kube.RbacV1().ClusterRoleBindings().Get(t.Context(), role, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the binding is there before anybody allowed it: %v", err)
	}
	allow.Finding = a[0].Finding
	b.choose(t, ns, p, allow)
	b.finishes(t, ns, p, o.csv())
	b.uninstalled(t, ns, p, o.csv())
}

func testNoLockOut(t *testing.T, b *bed) {
	const ns, beside = "al-webhook", "al-beside"
	b.namespace(t, ns)
	b.namespace(t, beside)
	b.global(ns)
	o := operator{name: ns, version: "1.0.0", group: ns + ".sea.test", webhook: ns + "-controller"}
	text, rest, ok := strings.Cut(o.manifest(),
		"["+o.group+"], apiVersions: [v1], operations: [CREATE], resources: [gauges]}]")
	if !ok {
		t.Fatal("the manifest has no rules")
	}
	content := contentOf(t, text+everything+rest, fmt.Sprintf(crdManifest, o.group))
	p := b.plan(ns, ns, planned{content: content})
	s := b.scope(ns)
	s.Plans = []protocol.Plan{p}
	b.publish(s)
	b.awaitPlan(ns, p.ID, blocked(needsAllowance))
	a := b.checked(t, ns, p).Allowances
	if len(a) != 1 || len(a[0].Needed) != 5 {
		t.Fatalf("allowances %+v", a)
	}
	b.choose(t, ns, p, protocol.Choice{
		Object: a[0].Object(), Choice: events.ChoiceAllow, Finding: a[0].Finding, By: []string{"anna"},
	})
	b.finishes(t, ns, p, o.csv())

	// Nobody answers behind its Service: all writes of others fail.
	await(t, "a webhook that keeps everything out", func(ctx context.Context) error {
		_, err := b.kube.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "kept-out-"}}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "vgauge."+o.group) {
			return fmt.Errorf("want the webhook to fail, got %w", err)
		}
		return nil
	})
	var renewed time.Time
	await(t, "the lease to be renewed", func(ctx context.Context) error {
		l, err := b.kube.CoordinationV1().Leases("chandler-system").Get(ctx, "chandler-executor", metav1.GetOptions{})
		if err != nil {
			return err
		}
		switch now := l.Spec.RenewTime.Time; {
		case renewed.IsZero():
			renewed = now
		case now.After(renewed):
			return nil
		}
		return errors.New("it is not")
	})
	// A plan beside it begins, and says in its step log what keeps it; its objects are everybody's.
	other := operator{name: beside, version: "1.0.0"}
	q := b.bring(t, beside, other)
	if r := b.awaitPlan(beside, q.ID, blocked("AdmissionWebhookFailed")); !r.Begun {
		t.Errorf("the step log of %s says nothing: %+v", beside, r)
	}
	s = b.scope(ns)
	b.remove(t, ns, o.csv(), s)
	b.finishes(t, beside, q, other.csv())
}
