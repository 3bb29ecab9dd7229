package executor_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// writes notes what an executor writes into a cluster, but for what it keeps for itself.
type writes struct {
	mu    sync.Mutex
	noted []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && !ownBooks(r) {
			w.mu.Lock()
			w.noted = append(w.noted, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// ownBooks: a question or a trial that changes nothing; the lease, the position that was seen and the step logs; and
// the phases that operators are in.
func ownBooks(r *http.Request) bool {
	path := r.URL.Path
	return r.URL.Query().Get("dryRun") == "All" || strings.Contains(path, "/apis/authorization.k8s.io/") ||
		strings.Contains(path, "/namespaces/chandler-system/") || strings.Contains(path, "/planexecutions") ||
		strings.Contains(path, "/installedoperators/") && strings.HasSuffix(path, "/status")
}

// take returns what was noted since the last time.
func (w *writes) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.noted
	w.noted = nil
	return out
}

// TestStopped: with the stop switch set (DESIGN D6) nothing is written to the cluster, whatever is wanted and whatever
// happens there: no plan and no removal begins, nothing that was lost or edited is put right, roles do not follow the
// operator group, nor operators the proxy, the pull secrets and the mirrors. What the executor sees it tells. Once the
// switch is lifted, everything is made up for with no further word.
func TestStopped(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var w writes
	cfg := b.config("one")
	cfg.REST.Wrap(w.wrap)
	b.start(cfg)
	b.namespace(t, "coast")
	kept := b.resting(t, "kept")
	leaving := b.resting(t, "leaving")
	scopes := []protocol.ScopePlans{kept, leaving, b.scope("late")}

	late, content := simple(t, "late")
	p := b.plan("late", "late", content)
	for i := range scopes {
		scopes[i].Stopped = true
	}
	b.looked(t, scopes[0])
	b.looked(t, scopes[1])
	w.take()

	// Everything that would be answered by a write.
	kept, leaving = scopes[0], scopes[1]
	kept.OperatorGroup.Spec = targeting("coast", "kept")
	x := b.Removal("leaving", protocol.Removal{ID: uuid.NewString(), CSV: "leaving.v1.0.0"})
	leaving.Removals = []protocol.Removal{x}
	scopes[2].Plans = []protocol.Plan{p}
	mirrored := b.dynamic(t).Resource(csvs).Namespace("kept")
	must(t, mirrored.Delete(t.Context(), "kept.v1.0.0", metav1.DeleteOptions{}))
	must(t, b.kube.AppsV1().Deployments("kept").Delete(t.Context(), "kept-controller", metav1.DeleteOptions{}))
	b.emptyRole(t, "kept")
	b.surround(t)
	for _, s := range []protocol.ScopePlans{kept, leaving, scopes[2]} {
		b.publish(s)
	}
	b.awaitPlan("late", p.ID, blocked("EffectsStopped"))
	b.AwaitRemoval("leaving", x.ID, func(m protocol.RemovalReport) bool {
		return m.Phase == protocol.PlanBlocked && m.Reason == "EffectsStopped"
	})
	b.awaitCSV("kept", "kept.v1.0.0", func(r protocol.CSVReport) bool {
		return reached("InstallReady")(r) && slices.ContainsFunc(
			r.Drift, func(d protocol.Drift) bool { return d.Kind == "Role" && !d.Corrected })
	})
	for _, s := range []protocol.ScopePlans{kept, leaving, scopes[2]} {
		b.looked(t, s) // once more, with all of that seen
	}
	if noted := w.take(); len(noted) > 0 {
		t.Errorf("while effects were stopped:\n%s", strings.Join(noted, "\n"))
	}

	kept.Stopped, leaving.Stopped, scopes[2].Stopped = false, false, false
	for _, s := range []protocol.ScopePlans{kept, leaving, scopes[2]} {
		b.publish(s)
	}
	b.finishes(t, "late", p, late.csv())
	b.AwaitRemoval("leaving", x.ID, func(m protocol.RemovalReport) bool { return m.Phase == protocol.PlanFinished })
	b.awaitCSV("kept", "kept.v1.0.0", last("Succeeded", "InstallSucceeded"))
	b.awaitTold(t, "kept", "coast,kept")
	b.awaitBindings(t, "kept", "coast", "kept")
	b.awaitProxy(t, "kept", "http://proxy.example.com:3128")
	b.awaitPull(t, "kept", 1)
	shows(t, mirrored, "kept.v1.0.0", there)
	await(t, "the rules of the role", func(ctx context.Context) error {
		list, err := b.ownRoles(ctx, "kept")
		if err == nil && len(list[0].Rules) == 0 {
			return fmt.Errorf("there are none")
		}
		return err
	})
}

// resting brings an operator to Succeeded and returns what is wanted of its namespace then: to follow it.
func (b *bed) resting(t *testing.T, ns string) protocol.ScopePlans {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	c := b.finishes(t, ns, p, o.csv())
	s := b.scope(ns)
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: c.Content, Plan: p.ID}}
	b.looked(t, s)
	shows(t, b.dynamic(t).Resource(csvs).Namespace(ns), o.csv(), inPhase("Succeeded"))
	return b.scope(ns)
}

// ownRoles are the roles that an operator's permissions gave it in its own namespace.
func (b *bed) ownRoles(ctx context.Context, ns string) ([]rbacv1.Role, error) {
	list, err := b.kube.RbacV1().Roles(ns).List(ctx, metav1.ListOptions{LabelSelector: "olm.permissions.hash"})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("%s has no role of permissions", ns)
	}
	return list.Items, nil
}

// emptyRole takes the rules out of an operator's role, as a person would.
func (b *bed) emptyRole(t *testing.T, ns string) {
	t.Helper()
	list, err := b.ownRoles(t.Context(), ns)
	must(t, err)
	list[0].Rules = nil
	_, err = b.kube.RbacV1().Roles(ns).Update(t.Context(), &list[0], metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	must(t, err)
}

// surround gives the cluster a proxy and a pull secret.
func (b *bed) surround(t *testing.T) {
	t.Helper()
	system := b.kube.CoreV1()
	_, err := system.ConfigMaps("chandler-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "chandler-proxy"},
		Data:       map[string]string{"HTTPS_PROXY": "http://proxy.example.com:3128"},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = system.Secrets("chandler-system").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "registry", Labels: map[string]string{
			"chandler-fleet.io/pull-secret": "true",
		}},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`),
		},
	}, metav1.CreateOptions{})
	must(t, err)
}

// TestNoStepWithoutGoAhead: the stop switch fails closed (DESIGN D7): when the hub no longer says that effects are
// allowed, no step is taken after protocol.GoAheadValid, though no message of it says stop; when it says so again, work
// goes on by itself. A stop that only its answer names holds as well.
func TestNoStepWithoutGoAhead(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	o, content := simple(t, "still")
	first := b.plan("still", "still", content)
	b.want("still", first)
	b.finishes(t, "still", first, o.csv())

	b.Silence()
	time.Sleep(protocol.GoAheadValid + protocol.GoAheadEvery) //nolint:forbidigo // what is tried is that time passes
	late, content := simple(t, "late")
	p := b.plan("late", "late", content)
	b.want("late", p)
	b.awaitPlan("late", p.ID, blocked("NoGoAhead"))
	b.GoAhead(protocol.GoAhead{Stopped: []string{b.ClusterID}})
	b.awaitPlan("late", p.ID, blocked("EffectsStopped"))
	b.GoAhead(protocol.GoAhead{})
	b.finishes(t, "late", p, late.csv())
}
