package executor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/internal/chaos"
)

// errCrash is what a test's hook returns.
var errCrash = errors.New("crash of the test")

// The distance between the points at which executors die: in a short run, else, in make chaos (each of some 110 points
// of the longest part of a life and 50 of a removal, in about ten minutes), and as CHANDLER_CRASH_EVERY says. They are
// odd, since every other point is the one before an effect. The first point is another one in each run.
const (
	crashEveryShort = 25
	crashEvery      = 13
	crashEveryChaos = 1
	crashEveryEnv   = "CHANDLER_CRASH_EVERY"
)

// ledger watches the traffic of all executors of a test, and notes each apply of an object that a
// step log, accepted by the API server before, calls done.
type ledger struct {
	mu      sync.Mutex
	done    map[string]bool // plan and object
	applies int
	again   []string
}

type spy struct {
	next   http.RoundTripper
	ledger *ledger
}

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if r.Method == http.MethodPatch && r.URL.Query().Get("fieldManager") != "" {
		s.ledger.applied(body)
	}
	res, err := s.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/planexecutions/") &&
		res.StatusCode == http.StatusOK {
		s.ledger.logged(body)
	}
	return res, err
}

func (l *ledger) applied(body []byte) {
	var o struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Namespace   string            `json:"namespace"`
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &o) != nil {
		return
	}
	key := strings.Join([]string{
		o.Metadata.Annotations["chandler-fleet.io/plan"], o.Kind, o.Metadata.Namespace,
		o.Metadata.Name,
	}, "/")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applies++
	if l.done[key] {
		l.again = append(l.again, key)
	}
}

func (l *ledger) logged(body []byte) {
	var x struct {
		Spec struct {
			Plan string `json:"plan"`
		} `json:"spec"`
		Status struct {
			Steps []struct {
				Kind      string `json:"kind"`
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
				State     string `json:"state"`
			} `json:"steps"`
		} `json:"status"`
	}
	if json.Unmarshal(body, &x) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range x.Status.Steps {
		if s.State == "Done" {
			l.done[strings.Join([]string{x.Spec.Plan, s.Kind, s.Namespace, s.Name}, "/")] = true
		}
	}
}

func (l *ledger) config(c *rest.Config) *rest.Config {
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return spy{next: rt, ledger: l} })
	return c
}

// TestCrashAtEveryPoint: whatever point an executor dies at, the next one ends with the same objects and
// the same history, and no step that is recorded as done runs again (R-IP-44, DESIGN D7). Each life has a crash in its
// install, one in its upgrade and one in its removal: at the points of the same number.
func TestCrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	l := &ledger{done: map[string]bool{}}
	var fuse fuse
	end := b.chain(t, l, fuse.point)
	defer end()
	points := map[string][]string{} // of an undisturbed life
	former := ""
	b.begins = func(part string) { points[former], former = fuse.light(-1), part }
	want := b.life(t, "life-0")
	b.begins("")
	most := 0
	for _, part := range parts() {
		t.Logf("%d points of the %s: %s", len(points[part]), part, strings.Join(points[part], ", "))
		most = max(most, len(points[part]))
	}
	lives, planned := 1, 0
	step := distance(t)
	for n := int(chaos.Seed(t) % uint64(step)); n < most; n += step {
		var at []string
		b.begins = func(part string) {
			fuse.light(-1)
			if n < len(points[part]) {
				at = append(at, part+": "+points[part][n])
				fuse.light(n)
			}
		}
		ns := fmt.Sprintf("life-%d", n+1)
		got := b.life(t, ns)
		b.begins("")
		b.Forget(ns) // else each next executor begins with a look at all of them
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after crashes at the points %d (%s) (-want +got):\n%s", n+1, strings.Join(at, ", "), diff)
		}
		lives, planned = lives+1, planned+len(at)
	}
	if len(l.again) > 0 {
		t.Errorf("steps that were recorded as done ran again: %v", l.again)
	}
	crashes := fuse.failed()
	if 4*crashes < 3*planned { // the last points of a part are looks, which are not as many in each life
		t.Errorf("of %d crashes only %d took place", planned, crashes)
	}
	t.Logf("%d applies in %d lives with %d crashes", l.applies, lives, crashes)
}

func distance(t *testing.T) int {
	t.Helper()
	if text := os.Getenv(crashEveryEnv); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return max(1, n)
	}
	if chaos.All() {
		return crashEveryChaos
	}
	if testing.Short() {
		return crashEveryShort
	}
	return crashEvery
}

// fuse is a hook that fails once after so many points, and notes the points that it passes.
type fuse struct {
	mu     sync.Mutex
	left   int // points to pass; below zero it is out
	lit    bool
	points []string

	failures int
}

func (f *fuse) point(p string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points = append(f.points, p)
	if !f.lit {
		return nil
	}
	f.left--
	if f.left < 0 {
		f.lit = false
		f.failures++
		return errCrash
	}
	return nil
}

// failed is how often it has failed.
func (f *fuse) failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures
}

// light makes the fuse fail after n points, never below zero, and returns the points passed so far.
func (f *fuse) light(n int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	passed := f.points
	f.left, f.lit, f.points = n, n >= 0, nil
	return passed
}

// outcome is what has to be the same whatever happened on the way.
type outcome struct {
	Histories map[string][]string
	Objects   []string // beside the upgraded operator
	Left      []string // by its removal
}

// Parts of a life.
const (
	partInstall = "install"
	partUpgrade = "upgrade"
	partRemoval = "removal"
)

func parts() []string { return []string{partInstall, partUpgrade, partRemoval} }

// begin tells who wants to know it that a part of a life begins.
func (b *bed) begin(part string) {
	if b.begins != nil {
		b.begins(part)
	}
}

// life installs, upgrades and removes one operator in a namespace of its own.
func (b *bed) life(t *testing.T, ns string) outcome {
	t.Helper()
	return b.lives(t, ns)[ns]
}

// lives takes one operator in each of the namespaces through its life, all at once.
func (b *bed) lives(t *testing.T, names ...string) map[string]outcome {
	t.Helper()
	out, plans, removals := map[string]outcome{}, map[string]protocol.Plan{}, map[string]protocol.Removal{}
	installed := map[string]protocol.Installed{}
	b.begin(partInstall)
	for _, ns := range names {
		one := stage(ns, "1.0.0", "", "a", "b")
		p := b.plan(ns, ns, planned{content: one.content(t)})
		plans[ns] = p
		b.want(ns, p)
	}
	for _, ns := range names {
		one := stage(ns, "1.0.0", "", "a", "b")
		two := stage(ns, "2.0.0", one.csv(), "b", "c")
		b.awaitPlan(ns, plans[ns].ID, phase(protocol.PlanFinished))
		c := b.awaitCSV(ns, one.csv(), reached("Succeeded"))
		q := b.plan(ns, ns, planned{content: two.content(t), replaces: one.csv()})
		s := b.scope(ns)
		s.Plans, s.Installed = []protocol.Plan{q}, []protocol.Installed{
			{CSV: one.csv(), Content: c.Content, Plan: plans[ns].ID},
		}
		plans[ns] = q
		b.begin(partUpgrade)
		b.publish(s)
	}
	for _, ns := range names {
		b.awaitPlan(ns, plans[ns].ID, phase(protocol.PlanFinished))
		two := b.awaitCSV(ns, ns+".v2.0.0", reached("Succeeded"))
		one := b.awaitCSV(ns, ns+".v1.0.0", func(r protocol.CSVReport) bool { return r.Removed })
		installed[ns] = protocol.Installed{CSV: two.Name, Content: two.Content, Plan: plans[ns].ID}
		b.awaitRoles(t, ns) // they come after the phase was told
		out[ns] = outcome{
			Histories: map[string][]string{"1": settledHistory(one), "2": settledHistory(two)},
			Objects:   b.objects(t, ns),
		}
	}
	b.begin(partRemoval)
	for _, ns := range names {
		removals[ns] = b.Removal(ns, protocol.Removal{ID: uuid.NewString(), CSV: installed[ns].CSV})
		s := b.scope(ns)
		s.Plans, s.Installed, s.Removals = nil, []protocol.Installed{installed[ns]}, []protocol.Removal{removals[ns]}
		b.publish(s)
	}
	for _, ns := range names {
		r := b.AwaitRemoval(ns, removals[ns].ID,
			func(r protocol.RemovalReport) bool { return r.Phase == protocol.PlanFinished })
		o := out[ns]
		for _, left := range r.Left {
			o.Left = append(o.Left, strings.ReplaceAll(left.String(), ns, "life")+" "+left.Reason)
		}
		o.Left = append(o.Left, b.objects(t, ns)...)
		out[ns] = o
		s := b.scope(ns)
		s.Installed, s.Removals = nil, nil
		b.publish(s)
	}
	return out
}

// stage is one version of the operator of a life.
func stage(ns, version, replaces string, deployments ...string) operator {
	return operator{
		name: ns, version: version, replaces: replaces, group: ns + ".sea.test", configMap: "settings",
		deployments: deployments, webhook: "b",
	}
}

// settledHistory leaves out that a definition was not served yet when somebody looked: how often that is seen depends
// on how long a look takes.
func settledHistory(r protocol.CSVReport) []string {
	return slices.DeleteFunc(history(r), func(h string) bool { return h == "Pending(RequirementsNotMet)" })
}

// chain runs executors one after the other under one name, each next one when the one before has
// crashed. The returned function ends the last one.
func (b *bed) chain(t *testing.T, l *ledger, hook func(string) error) (end func()) {
	t.Helper()
	cfg := b.config("one")
	cfg.REST, cfg.Hook = l.config(cfg.REST), hook
	current := b.run(cfg)
	ended := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case err := <-current.done:
				if !errors.Is(err, errCrash) {
					t.Errorf("executor ended with %v", err)
					return
				}
				current = b.run(cfg)
			case <-over:
				current.cancel()
				if err := <-current.done; err != nil && !errors.Is(err, errCrash) {
					t.Errorf("executor ended with %v", err)
				}
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}

func (b *bed) run(cfg executor.Config) *running {
	e, err := executor.New(cfg)
	must(b.t, err)
	return b.launch(e)
}

// objects names what Chandler left in a namespace and outside for it, without the life's own name.
func (b *bed) objects(t *testing.T, ns string) []string {
	t.Helper()
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	var out []string
	for _, gvr := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "services"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "chandler-fleet.io", Version: "v1", Resource: "installedoperators"},
	} {
		list, err := dyn.Resource(gvr).List(t.Context(),
			metav1.ListOptions{LabelSelector: "chandler-fleet.io/managed=true"})
		must(t, err)
		for _, o := range list.Items {
			if o.GetNamespace() != ns && o.GetLabels()["olm.owner.namespace"] != ns || o.GetDeletionTimestamp() != nil {
				continue
			}
			out = append(out, strings.ReplaceAll(gvr.Resource+" of "+o.GetLabels()["olm.owner"], ns, "life"))
		}
	}
	slices.Sort(out)
	return out
}
