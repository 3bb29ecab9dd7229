package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/test/internal/chaos"
	"github.com/chandler-fleet/chandler/test/stack"
)

// The events of an install at which a part is harmed, in the order in which they come.
var moments = []string{
	"operatorgroup.created.v1",
	"subscription.created.v1",
	"installplan.proposed.v1",
	"installplan.started.v1",
	"installplan.finished.v1",
	"csv.phase-changed.v1",
}

// outcome is what an install leaves behind, with the namespace's name and whatever differs from run to run taken out.
type outcome struct {
	Events  []string
	Objects []string
}

// TestFaults proves that killing each service with SIGKILL, and deleting each JetStream stream, at many points of an
// install changes nothing but time: the same cluster objects, and the same events as (type, subject, outcome). An
// install has several harms, each of another part at a later event: it comes to that event only if it has survived the
// harms before, and what these have left in the log and in the cluster stays there to be compared. A run does half of
// the harms. make chaos does all, one to each install. DESIGN D4, D7; R-IP-44.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCatalog("harbour", example(t))
	w.record = w.database()
	want := w.install("calm")
	if len(want.Events) < 8 || len(want.Objects) < 6 {
		t.Fatalf("the undisturbed install left too little to compare with: %+v", want)
	}
	kill := func(service string) func() { return func() { w.restart(service) } }
	even, odd := []string{moments[0], moments[2], moments[4]}, []string{moments[1], moments[3], moments[5]}
	streams := []string{"EVENTS", "PLANS", "REPORTS", "CONTENT"}
	lose := func(stream string) func() { return func() { w.deleteStream(stream) } }
	var kills, losses [][]harm
	for i := range stack.Services {
		kills = append(kills, turned(i, "kill", even, stack.Services, kill),
			turned(i, "kill", odd, stack.Services, kill))
	}
	for i := range streams {
		losses = append(losses, turned(i, "lose", moments[1:4], streams, lose))
	}
	for _, harms := range slices.Concat(chaos.Some(t, 4, kills...), chaos.Some(t, 2, losses...)) {
		w.disturbedByAll(want, harms)
	}
	w.disturbed(want, []harm{{name: "kill-nats-server", moment: "installplan.proposed.v1", do: func() {
		w.Kill("nats-server")
		w.must(w.StartNATS(w.ctx))
	}}})
}

// harm is done to one part, as soon as the log has an event of the type moment.
type harm struct {
	name, moment string
	do           func()
	steps        int // instead of moment: as soon as so many steps are done in the cluster, by its step logs
}

// when names the moment.
func (h harm) when() string {
	if h.steps > 0 {
		return fmt.Sprintf("step-%d", h.steps)
	}
	return h.moment
}

// turned pairs each moment with another part. Over all of its turns, as many as there are parts, it makes every pair
// once.
func turned(turn int, what string, moments, parts []string, of func(part string) func()) (all []harm) {
	for i, moment := range moments {
		part := parts[(turn+i)%len(parts)]
		all = append(all, harm{name: what + "-" + strings.ToLower(part), moment: moment, do: of(part)})
	}
	return all
}

func TestTurnsMakeEveryPairOnce(t *testing.T) {
	t.Parallel()
	made := map[string]int{}
	parts, moments := []string{"a", "b", "c", "d"}, []string{"x", "y", "z"}
	for i := range parts {
		for _, h := range turned(i, "kill", moments, parts, func(string) func() { return nil }) {
			made[h.name+" "+h.moment]++
		}
	}
	for pair, n := range made {
		if n != 1 {
			t.Errorf("%s is made %d times", pair, n)
		}
	}
	if len(made) != len(parts)*len(moments) {
		t.Errorf("%d of %d pairs are made: %v", len(made), len(parts)*len(moments), made)
	}
}

// disturbedByAll does the harms to one install, or each to one of its own.
func (w *world) disturbedByAll(want outcome, harms []harm) {
	w.t.Helper()
	if !thorough {
		w.disturbed(want, harms)
		return
	}
	for _, h := range harms {
		w.disturbed(want, []harm{h})
	}
}

// disturbed installs once more, does the harms in their order, each at its moment, and compares.
func (w *world) disturbed(want outcome, harms []harm) {
	w.t.Helper()
	var told []string
	for _, h := range harms {
		told = append(told, h.name+" at "+h.when())
	}
	what := strings.Join(told, ", ")
	family, _, _ := strings.Cut(harms[0].when(), ".v")
	namespace := harms[0].name + "-" + strings.ReplaceAll(family, ".", "-")
	begin := time.Now()
	got := w.install(namespace, harms...)
	w.t.Logf("%s: %s", what, time.Since(begin).Round(time.Millisecond))
	if diff := cmp.Diff(want.Events, got.Events); diff != "" {
		w.t.Errorf("%s: events differ from an undisturbed install (-want +got):\n%s", what, diff)
	}
	if diff := cmp.Diff(want.Objects, got.Objects); diff != "" {
		w.t.Errorf("%s: cluster objects differ from an undisturbed install (-want +got):\n%s", what, diff)
	}
}

// install subscribes to buoy, whose dependency tidegauge comes along, and returns what that left. Each harm is done
// when the log has its moment and the harms before it are done.
func (w *world) install(namespace string, harms ...harm) outcome {
	w.t.Helper()
	begin := w.head()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, h := range harms {
			if h.steps > 0 {
				w.whenStepped(namespace, h.steps)
				h.do()
				continue
			}
			w.harmWhen(begin, namespace, func(seen map[string]bool) bool {
				if !seen[h.moment] {
					return false
				}
				h.do()
				return true
			})
		}
	}()
	w.retried(func() error {
		return w.Post(w.ctx, scopePath(namespace, "operatorgroups"),
			map[string]any{"name": "all", "targetNamespaces": []string{namespace}}, nil)
	})
	w.retried(func() error {
		return w.Post(w.ctx, scopePath(namespace, "subscriptions"),
			subscription{Name: "buoy", Package: "buoy", Channel: "beta", Catalog: "harbour"}, nil)
	})
	<-done
	for _, name := range stack.Services {
		w.must(w.Stack.Ready(w.ctx, name))
	}
	w.succeeded(namespace, "buoy.v0.9.1")
	w.succeeded(namespace, "tidegauge.v1.1.0")
	return outcome{Events: w.settled(begin, namespace), Objects: w.objects(namespace)}
}

// head is the position of the newest event.
func (w *world) head() (p events.Position) {
	w.t.Helper()
	w.must(w.record.QueryRow(w.ctx, `select epoch, position from eventlog.events order by position desc limit 1`).Scan(
		&p.Epoch, &p.N))
	return p
}

// settled waits for the last events of the install: of each subscription, the dependency's included, that it has what
// it is to have. The states that the API shows may be there a moment before the resolver has said so. It returns the
// events of the install.
func (w *world) settled(begin events.Position, namespace string) (lines []string) {
	w.t.Helper()
	w.eventually("the resolver says of both subscriptions that they have the latest known version",
		func() (string, bool) {
			lines = w.eventLines(begin, namespace)
			arrived := 0
			for _, line := range lines {
				if strings.HasPrefix(line, "resolution.succeeded.v1") &&
					strings.Contains(line, "outcome=AtLatestKnown") {
					arrived++
				}
			}
			return strings.Join(lines, "\n"), arrived == 2
		})
	return lines
}

// retried repeats a write while the gateway is away: what a portal does. A create that went through before its answer
// was lost says so with 409.
func (w *world) retried(write func() error) {
	w.t.Helper()
	w.eventually("the write goes through", func() (string, bool) {
		err := write()
		var problem *stack.RefusedError
		return fmt.Sprint(err), err == nil || errors.As(err, &problem) && problem.Status == http.StatusConflict
	})
}

// harmWhen reads the log until the harm is done: at once, and each time that the sequencer tells of new events. It
// reads it in PostgreSQL, since the gateway may be what is harmed.
func (w *world) harmWhen(begin events.Position, namespace string, harm func(seen map[string]bool) bool) {
	ctx, cancel := context.WithTimeoutCause(w.ctx, bound, fmt.Errorf("no moment for the harm within %s", bound))
	defer cancel()
	if err := w.harmBetween(ctx, begin, namespace, harm); err != nil {
		w.t.Errorf("harm in namespace %s: %v", namespace, errors.Join(err, context.Cause(ctx)))
	}
}

func (w *world) harmBetween(
	ctx context.Context, begin events.Position, namespace string, harm func(seen map[string]bool) bool,
) error {
	conn, err := pgx.Connect(ctx, w.Postgres().AdminURL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was only read from
	if _, err := conn.Exec(ctx, "listen eventlog_sequenced"); err != nil {
		return err
	}
	const query = `select distinct type from eventlog.events where position > $1 and subject like $2`
	for {
		rows, err := conn.Query(ctx, query, begin.N, spoke+"/"+namespace+"/%")
		if err != nil {
			return err
		}
		types, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, t := range types {
			seen[t] = true
		}
		if harm(seen) {
			return nil
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}

// restart kills a service and starts it again, without waiting for it.
func (w *world) restart(name string) {
	w.Kill(name)
	if err := w.Launch(name); err != nil {
		w.t.Error(err)
	}
}

func (w *world) deleteStream(name string) {
	b := w.bus()
	for whole := range b.js.StreamNames(w.ctx).Name() {
		if !strings.HasSuffix(whole, "_"+name) {
			continue
		}
		if err := b.js.DeleteStream(w.ctx, whole); err != nil {
			w.t.Errorf("delete stream %s: %v", whole, err)
		}
	}
}

// eventLines lists the events of a namespace as (type, subject, outcome), sorted: the order between streams is not
// promised.
func (w *world) eventLines(begin events.Position, namespace string) []string {
	w.t.Helper()
	var lines []string
	observed := false
	for _, e := range w.eventsAfter(begin.String(), "cluster="+spoke) {
		if !strings.HasPrefix(e.Subject, spoke+"/"+namespace+"/") || e.Type == "installplan.blocked.v1" {
			continue // waiting for a part that is away is just what a fault adds
		}
		if e.Type == "operatorgroup.observed.v1" {
			if observed {
				continue // how often a group is seen on the way is not promised
			}
			observed = true
		}
		var result []string
		for _, key := range []string{"phase", "reason", "outcome", "steps", "csv", "approval"} {
			if v, ok := e.Data[key]; ok {
				result = append(result, fmt.Sprintf("%s=%v", key, v))
			}
		}
		subject := strings.ReplaceAll(e.Subject, namespace, "NS")
		if strings.HasPrefix(e.Type, "installplan.") {
			subject = "plan" // its name is random
		}
		lines = append(lines, e.Type+" "+subject+" "+strings.Join(result, " "))
	}
	slices.Sort(lines)
	return lines
}

// kinds are what an install of the example makes.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "chandler-fleet.io", Version: "v1", Resource: "installedoperators"},
}

// objects lists what the install left in the cluster, as JSON without what every object has of its own.
func (w *world) objects(namespace string) []string {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	var all []string
	for _, kind := range kinds {
		list, err := client.Resource(kind).List(w.ctx, metav1.ListOptions{LabelSelector: "olm.managed=true"})
		w.must(err)
		for _, o := range list.Items {
			if _, ofGroup := o.GetLabels()["chandler-fleet.io/operatorgroup-part"]; ofGroup {
				continue // they follow what is installed in their own time
			}
			if o.GetNamespace() == namespace || o.GetLabels()["olm.owner.namespace"] == namespace {
				all = append(all, w.plain(o, namespace))
			}
		}
	}
	slices.Sort(all)
	return all
}

// plain takes out what differs from run to run: times, ids, and names made from the namespace's.
func (w *world) plain(o unstructured.Unstructured, namespace string) string {
	w.t.Helper()
	o.SetManagedFields(nil)
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetCreationTimestamp(metav1.Time{})
	o.SetOwnerReferences(nil)
	o.SetGeneration(0)
	unstructured.RemoveNestedField(o.Object, "status")
	if _, aggregated := o.Object["aggregationRule"]; aggregated {
		unstructured.RemoveNestedField(o.Object, "rules") // the cluster fills them in, in its own time
	}
	if o.GetKind() == "ClusterRoleBinding" || o.GetKind() == "ClusterRole" ||
		o.GetLabels()["olm.permissions.hash"] != "" {
		o.SetName("hashed") // these names hold a hash over the namespace
		unstructured.RemoveNestedField(o.Object, "roleRef", "name")
	}
	for _, key := range []string{"olm.permissions.hash", "olm.deployment-spec-hash"} {
		labels := o.GetLabels()
		delete(labels, key)
		o.SetLabels(labels)
	}
	annotations := o.GetAnnotations()
	for key := range annotations {
		if strings.Contains(key, "chandler") || strings.Contains(key, "installed-alongside") {
			delete(annotations, key) // plan ids, and hashes over the namespace
		}
	}
	o.SetAnnotations(annotations)
	b, err := json.Marshal(o.Object)
	w.must(err)
	return strings.ReplaceAll(string(b), namespace, "NS")
}
