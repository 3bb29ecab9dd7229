package bundles_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/hubtest"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

const (
	// leftAlone is how long executors are left alone before they are measured: Go collects by itself after two minutes.
	leftAlone = 150 * time.Second
	// window is what idle work is measured over: the longest of the intervals at which an executor says that it lives.
	window = 30 * time.Second
	mega   = 1e6
)

// process is one that hosts executors.
type process struct {
	tb      testing.TB
	orders  *json.Encoder
	answers *json.Decoder
}

func newProcess(tb testing.TB, hub *hubtest.Hub) *process {
	tb.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		tb.Skip("the size of a process is read from /proc")
	}
	config, err := json.Marshal(childConfig{NATS: hub.JetStream.Conn().ConnectedUrl(), GrantKey: hub.Public()})
	must(tb, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	cmd.Stderr = tb.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(tb, err)
	in, err := cmd.StdinPipe()
	must(tb, err)
	must(tb, cmd.Start())
	tb.Cleanup(func() {
		must(tb, in.Close())
		if _, err := io.Copy(io.Discard, out); err != nil {
			tb.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
	return &process{tb: tb, orders: json.NewEncoder(in), answers: json.NewDecoder(out)}
}

// serve starts an executor and waits until it holds the cluster in an epoch.
func (p *process) serve(hub *hubtest.Hub, c *testcluster.Cluster, part int, epoch int64) {
	p.tb.Helper()
	must(p.tb, p.orders.Encode(childOrder{Kubeconfig: string(c.Kubeconfig()), ClusterID: hub.ClusterID, Part: part}))
	hubtest.Await(p.tb, "the executor in the other process", func(ctx context.Context) error {
		r, ok, err := hub.ClusterReport(ctx)
		if err == nil && (!ok || r.State != "Connected" || r.HolderEpoch != epoch) {
			err = fmt.Errorf("report %+v: %w", r, errNotYet)
		}
		return err
	})
}

func (p *process) use(o childOrder) (u childUse) {
	p.tb.Helper()
	must(p.tb, p.orders.Encode(o))
	must(p.tb, p.answers.Decode(&u))
	return u
}

// held is what stays resident when all that is free was given back, and how much of it is no part of the program's
// file.
func (p *process) held() (all, anonymous float64) {
	p.tb.Helper()
	u := p.use(childOrder{Collect: true})
	return float64(u.Resident), float64(u.Anonymous)
}

// number is how many are measured: fewer while something is tried out.
func number(b *testing.B, name string, whole int) int {
	b.Helper()
	text := os.Getenv(name)
	if text == "" {
		return whole
	}
	n, err := strconv.Atoi(text)
	must(b, err)
	return min(n, whole)
}

// settle waits until the process has nothing more to do than to stay in touch.
func (p *process) settle() {
	p.tb.Helper()
	last := p.use(childOrder{})
	for range quietLimit / time.Second {
		p.pass(time.Second)
		now := p.use(childOrder{})
		if now.CPU-last.CPU < time.Duration(quietShare*float64(time.Second)) {
			return
		}
		last = now
	}
	p.tb.Logf("the executors were still busy after %s", quietLimit)
}

// pass lets time go by: what is measured is that nothing happens.
func (p *process) pass(d time.Duration) {
	p.tb.Helper()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.tb.Context().Done():
		p.tb.Fatal(p.tb.Context().Err())
	}
}

// idle leaves the process alone, and reports what it uses then and how much of a processor over the last time.
func (p *process) idle(b *testing.B) {
	b.Helper()
	p.settle()
	p.pass(leftAlone - window)
	began, before := time.Now(), p.use(childOrder{})
	p.pass(window)
	u := p.use(childOrder{})
	b.Logf("idle: %+v", u)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(u.Resident)/mega, "MB")
	b.ReportMetric(float64(u.Anonymous)/mega, "anon-MB")
	b.ReportMetric(float64(u.Peak)/mega, "peak-MB")
	b.ReportMetric(1000*(u.CPU-before.CPU).Seconds()/time.Since(began).Seconds(), "millicores")
}

// BenchmarkIdleMemory measures what executors keep in memory while nothing happens, in a process that holds nothing
// else: MB as the kernel counts it after the process was left alone, held-MB when it has given back what is free,
// anon-MB what of it is no part of the program's file. CHANDLER_IDLE_OPERATORS and CHANDLER_IDLE_CLUSTERS make it
// smaller.
func BenchmarkIdleMemory(b *testing.B) {
	b.Run("operators=50", func(b *testing.B) {
		for b.Loop() {
			measureOperators(b)
		}
	})
	b.Run("clusters=20", func(b *testing.B) {
		for b.Loop() {
			measureClusters(b)
		}
	})
}

// measureOperators restarts the executor of a cluster with the whole install set.
func measureOperators(b *testing.B) {
	b.Helper()
	set := installSet(b)
	set = set[:number(b, "CHANDLER_IDLE_OPERATORS", len(set))]
	s := newSpoke(b, hubtest.New(b))
	s.start(executor.Timing{})
	jobs := s.jobs(set, entry.head)
	_, err := s.approve(b.Context(), jobs)
	must(b, err)
	s.stop()

	const epoch = 2
	p := newProcess(b, s.Hub)
	empty, bare := p.held()
	p.serve(s.Hub, s.cluster, 0, epoch)
	for _, j := range jobs {
		must(b, s.board.await(b.Context(), j.ns, installLimit, func(r protocol.ScopeReport) error {
			if r.Epoch != epoch {
				return fmt.Errorf("report of epoch %d: %w", r.Epoch, errNotYet)
			}
			return succeeded(j.csv)(r)
		}))
	}
	p.idle(b)
	held, anonymous := p.held()
	b.ReportMetric(empty/mega, "empty-MB")
	b.ReportMetric(held/mega, "held-MB")
	b.ReportMetric((held-empty)/mega/float64(len(set)), "held-MB/operator")
	b.ReportMetric((anonymous-bare)/mega/float64(len(set)), "held-anon-MB/operator")
	s.end()
}

// measureClusters hosts clusters in which nothing is installed. There are four API servers; the executors that share
// one differ in nothing but the name of their lease, and share no connection and no memory.
func measureClusters(b *testing.B) {
	b.Helper()
	const servers = 4
	all := number(b, "CHANDLER_IDLE_CLUSTERS", 20)
	hub := hubtest.New(b)
	p := newProcess(b, hub)
	var clusters []*testcluster.Cluster
	for range min(servers, all) {
		clusters = append(clusters, testcluster.New(b))
	}
	var one, bare float64
	for i := range all {
		p.serve(hub.Another(), clusters[i%servers], i/servers, 1)
		if i == 0 {
			p.settle()
			one, bare = p.held()
		}
	}
	p.idle(b)
	held, anonymous := p.held()
	b.ReportMetric(one/mega, "one-MB")
	b.ReportMetric(held/mega, "held-MB")
	if more := float64(all - 1); more > 0 {
		b.ReportMetric((held-one)/mega/more, "held-MB/cluster")
		b.ReportMetric((anonymous-bare)/mega/more, "held-anon-MB/cluster")
	}
	for _, c := range clusters {
		must(b, c.Stop())
	}
}
