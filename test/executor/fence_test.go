package executor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor"
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
