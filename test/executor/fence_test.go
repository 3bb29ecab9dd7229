package executor_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

// process is an executor in a process of its own.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	tell  func(string)
}

func (b *bed) process(t *testing.T, c childConfig) *process {
	t.Helper()
	c.Kubeconfig, c.NATS, c.ClusterID, c.GrantKey = string(b.cluster.Kubeconfig()), b.hub.AgentURL(),
		b.hub.cluster, b.public
	config, err := json.Marshal(c)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Error("the killed process ended well")
		}
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &process{cmd: cmd, lines: lines, tell: func(s string) {
		_, err := fmt.Fprintln(in, s)
		must(t, err)
	}}
}

// line waits for the next line of the process that begins with the word.
func (p *process) line(t *testing.T, word string) string {
	t.Helper()
	for p.lines.Scan() {
		if rest, ok := strings.CutPrefix(p.lines.Text(), word+" "); ok {
			return rest
		}
	}
	t.Fatalf("the process ended before it said %q: %v", word, p.lines.Err())
	return ""
}

// TestPausedHolderIsRefused: an executor that stands still in front of a write, while another one takes
// over and ends the plan, is refused by the API server when it wakes up (DESIGN D7).
func TestPausedHolderIsRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one := operator{name: "tide", version: "1.0.0", group: "tide.sea.test"}
	p := b.plan("ops", "tide", planned{content: one.content(t)})
	paused := b.process(t, childConfig{Holder: "paused", HoldAt: 2})
	b.want("ops", p)
	where := paused.line(t, "holding")
	must(t, paused.cmd.Process.Signal(syscall.SIGSTOP))

	b.start(b.config("second"))
	b.awaitPlan("ops", p.ID, phase(protocol.PlanFinished))
	b.awaitCSV("ops", one.csv(), reached("Succeeded"))
	before := b.versions(t)

	must(t, paused.cmd.Process.Signal(syscall.SIGCONT))
	paused.tell("go")
	answer := paused.line(t, "answer")
	if !strings.HasPrefix(answer, "422 ") || !strings.Contains(answer, "a newer executor holds this cluster") {
		t.Errorf("the late write to %s was answered with %s", where, answer)
	}
	if after := b.versions(t); after != before {
		t.Errorf("the late write changed an object:\nbefore %s\nafter  %s", before, after)
	}
	// The sleeper, which held the first epoch, may have repeated its last report once; the holder's comes again.
	b.heldAbove(t, 1)
}

// versions are the uid and generation of what the plan made.
func (b *bed) versions(t *testing.T) string {
	t.Helper()
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	list, err := dyn.Resource(installedOperators()).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var out []string
	for _, o := range list.Items {
		out = append(out, o.GetName()+" "+string(o.GetUID())+" "+fmt.Sprint(o.GetGeneration()))
	}
	roles, err := b.kube.RbacV1().Roles("ops").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, o := range roles.Items {
		out = append(out, o.Name+" "+o.ResourceVersion)
	}
	return strings.Join(out, ", ")
}

// TestTwoCandidates: one works and the other waits; an orderly stop hands over at once, without waiting
// for the lease to run out, and histories go on without a gap.
func TestTwoCandidates(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.start(b.config("first"))
	one := operator{name: "tide", version: "1.0.0"}
	p := b.plan("ops", "tide", planned{content: one.content(t)})
	b.want("ops", p)
	b.awaitCSV("ops", one.csv(), reached("Succeeded"))
	b.start(b.config("second"))
	epoch := b.heldAbove(t, 0)
	stop()
	b.heldAbove(t, epoch)
	two := operator{name: "tide", version: "2.0.0", replaces: one.csv()}
	q := b.plan("ops", "tide", planned{content: two.content(t), replaces: one.csv()})
	b.want("ops", q)
	b.awaitPlan("ops", q.ID, phase(protocol.PlanFinished))
	b.awaitCSV("ops", two.csv(), reached("Succeeded"))
}

// heldAbove waits until the cluster is held in an epoch above one, and returns it. On a machine that stands still for
// longer than a lease lasts a holder rightly begins a further epoch, so that no test may ask for a certain one.
func (b *bed) heldAbove(t *testing.T, epoch int64) (now int64) {
	t.Helper()
	await(t, "a report of the holder", func(ctx context.Context) error {
		r, ok, err := b.clusterReport(ctx)
		if err != nil || !ok || r.HolderEpoch <= epoch || r.State != "Connected" {
			return fmt.Errorf("report %+v: %w", r, err)
		}
		now = r.HolderEpoch
		return nil
	})
	return now
}

// TestUnreachable: a cluster that is down is reported with a reason, no plan is lost, and it goes on.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	b.heldAbove(t, 0)
	must(t, b.cluster.Pause())
	one := operator{name: "tide", version: "1.0.0"}
	p := b.plan("ops", "tide", planned{content: one.content(t)})
	b.want("ops", p)
	await(t, "report of trouble", func(ctx context.Context) error { return b.state(ctx, "Unreachable", "Timeout") })
	b.awaitPlan("ops", p.ID, func(r protocol.PlanReport) bool {
		return r.Phase == protocol.PlanBlocked &&
			r.Class == "transient"
	})
	must(t, b.cluster.Resume())
	b.awaitPlan("ops", p.ID, phase(protocol.PlanFinished))
	b.awaitCSV("ops", one.csv(), reached("Succeeded"))
	await(t, "report of the end of trouble", func(ctx context.Context) error { return b.state(ctx, "Connected", "") })
}

// TestWrongCredentials: they are told apart from a cluster that is down.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config("one")
	cfg.REST.CertData, cfg.REST.KeyData, cfg.REST.CertFile, cfg.REST.KeyFile, cfg.REST.BearerToken = nil, nil, "", "",
		"nobody"
	b.start(cfg)
	await(t, "report of wrong credentials", func(ctx context.Context) error {
		return b.state(
			ctx, "Unauthorized", "Unauthorized")
	})
}

func (b *bed) state(ctx context.Context, state, reason string) error {
	r, ok, err := b.clusterReport(ctx)
	if err != nil || !ok || r.State != state || r.Reason != reason {
		return fmt.Errorf("report %+v: %w", r, err)
	}
	return nil
}

// TestLetGo: in a cluster that is Chandler's no more nobody is kept from writing; what is installed stays. One that
// comes back keeps others out again.
func TestLetGo(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0"}
	p := b.plan("ops", "tide", planned{content: o.content(t)})
	b.want("ops", p)
	b.finishes(t, "ops", p, o.csv())
	admin, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	mirrors, operators := admin.Resource(csvs).Namespace("ops"), admin.Resource(installedOperators()).Namespace("ops")
	edits := 0
	edit := func(ctx context.Context, of dynamic.ResourceInterface) error {
		edits++ // one that changes nothing would be let in
		_, err := of.Patch(ctx, o.csv(), types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"edit":"%d"}}}`, edits), metav1.PatchOptions{})
		return err
	}
	kept := func(ctx context.Context) error {
		for _, of := range []dynamic.ResourceInterface{mirrors, operators} {
			if err := edit(ctx, of); err == nil || !strings.Contains(err.Error(), "denied request") {
				return fmt.Errorf("an edit is not refused: %w", errors.Join(errors.New("answer"), err))
			}
		}
		return nil
	}
	shows(t, mirrors, o.csv(), there)
	await(t, "others to be kept out", kept)
	stop()
	for range 2 { // each that served the cluster does it
		must(t, executor.LetGo(t.Context(), b.cluster.RESTConfig(), "default", b.ClusterID))
	}
	await(t, "others to be let in", func(ctx context.Context) error {
		return errors.Join(
			edit(ctx, mirrors), edit(ctx, operators))
	})
	for name, there := range map[string]bool{
		memoryPolicy: false, "chandler-mirror.chandler-fleet.io": false,
		"chandler-intents.chandler-fleet.io": false, "chandler-fence.chandler-fleet.io": true,
	} {
		if _, err := admin.Resource(policies).Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != there {
			t.Errorf("policy %s: %v", name, err)
		}
	}
	_, err = b.kube.AppsV1().Deployments("ops").Get(t.Context(), "tide-controller", metav1.GetOptions{})
	must(t, err)
	b.start(b.config("one"))
	await(t, "others to be kept out again", kept)
	must(t, admin.Resource(policies).Delete(t.Context(), "chandler-mirror.chandler-fleet.io", metav1.DeleteOptions{}))
	shows(t, admin.Resource(policies), "chandler-mirror.chandler-fleet.io", there)
	await(t, "others to be kept out once more", kept)
}

// restoredHolds is a hub that knows a cluster from a later time than the cluster does: it was restored from a backup.
// Where lose is set, another one takes the lease between the hub's answer and what the executor makes of it.
type restoredHolds struct {
	*hubtest.Holds
	lose func()
	once sync.Once
}

func (h *restoredHolds) Register(ctx context.Context, hold protocol.Hold) (int64, error) {
	known, err := h.Holds.Register(ctx, hold)
	if h.lose != nil && hold.Epoch > 0 && known > hold.Epoch {
		h.once.Do(h.lose)
	}
	return known, err
}

// TestEpochsRiseAboveWhatTheHubKnows: DESIGN D7: a cluster that was restored from a backup, with its lease and its
// fence, goes on above the epoch that the hub knows: the lease is raised in the API server itself. Who has lost the
// lease meanwhile cannot raise it, and holds nothing.
func TestEpochsRiseAboveWhatTheHubKnows(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const known = 50
	leases := b.kube.CoordinationV1().Leases("chandler-system")
	restored := func(lose func()) *restoredHolds {
		h := &restoredHolds{Holds: &hubtest.Holds{}, lose: lose}
		_, key, err := ed25519.GenerateKey(nil)
		must(t, err)
		_, err = h.Holds.Register(t.Context(), protocol.Hold{
			Tenant: hubtest.Tenant, ClusterID: b.hub.cluster, Epoch: known, Session: uuid.NewString(),
			PublicKey: key.Public().(ed25519.PublicKey),
		})
		must(t, err)
		return h
	}
	cfg := b.config("one")
	holds := restored(nil)
	cfg.Holds = holds
	stop := b.start(cfg)
	if epoch := b.heldAbove(t, known); epoch != known+1 || !holds.Last().Restored {
		t.Errorf("the cluster is held in epoch %d, registered %+v; want %d after a restore", epoch, holds.Last(), known+1)
	}
	lease, err := leases.Get(t.Context(), "chandler-executor", metav1.GetOptions{})
	must(t, err)
	if got := lease.Annotations["chandler-fleet.io/epoch"]; got != fmt.Sprint(known+1) {
		t.Errorf("the lease has epoch %s, want %d", got, known+1)
	}
	one := operator{name: "tide", version: "1.0.0", group: "tide.sea.test"}
	p := b.plan("ops", "tide", planned{content: one.content(t)})
	b.want("ops", p)
	b.awaitPlan("ops", p.ID, phase(protocol.PlanFinished)) // the fence has risen, too
	stop()

	// The next one finds the hub far ahead, and loses the lease before it can raise it.
	lost := make(chan int64, 1)
	holds = restored(func() {
		lease, err := leases.Get(t.Context(), "chandler-executor", metav1.GetOptions{})
		must(t, err)
		epoch, err := strconv.ParseInt(lease.Annotations["chandler-fleet.io/epoch"], 10, 64)
		must(t, err)
		another := "another"
		lease.Spec.HolderIdentity = &another
		lease.Annotations["chandler-fleet.io/epoch"] = fmt.Sprint(epoch + 1)
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		must(t, err)
		lost <- epoch + 1
	})
	_, err = holds.Holds.Register(t.Context(), protocol.Hold{
		Tenant: hubtest.Tenant, ClusterID: b.hub.cluster, Epoch: 10 * known, Session: uuid.NewString(),
		PublicKey: make([]byte, ed25519.PublicKeySize),
	})
	must(t, err)
	cfg = b.config("one")
	cfg.Holds, cfg.Timing.Lease = holds, time.Hour // the other one is not taken for dead
	var looked atomic.Int64                        // at the lease
	cfg.REST = rest.CopyConfig(cfg.REST)
	cfg.REST.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/leases/chandler-executor") {
				looked.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	b.start(cfg)
	taken, before := <-lost, looked.Load()
	await(t, "a look at the lease to raise it, and another one to take it", func(context.Context) error {
		if n := looked.Load() - before; n < 2 {
			return fmt.Errorf("%d looks", n)
		}
		return nil
	})
	lease, err = leases.Get(t.Context(), "chandler-executor", metav1.GetOptions{})
	must(t, err)
	if got := lease.Annotations["chandler-fleet.io/epoch"]; *lease.Spec.HolderIdentity != "another" ||
		got != fmt.Sprint(taken) {
		t.Errorf("who lost the lease raised it: epoch %s of %s", got, *lease.Spec.HolderIdentity)
	}
	if last := holds.Last(); last.Epoch != 10*known {
		t.Errorf("who lost the lease registered epoch %d", last.Epoch)
	}
}
