package eventlog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// leaderEnv and leaderIDEnv make the test binary a process that is a candidate and nothing else.
const leaderEnv, leaderIDEnv = "CHANDLER_TEST_LEADER_URL", "CHANDLER_TEST_LEADER_ID"

// leadAsChild is the main function of that process.
func leadAsChild(url, id string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pg.Open(ctx, url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer pool.Close()
	if err := eventlog.NewSequencer(eventlog.New(pool), eventlog.Options{ID: id, Log: quiet}).Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child starts such a process; it is killed with the test.
func child(t *testing.T, b bundle, id string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), leaderEnv+"="+b.db.URL("installer"), leaderIDEnv+"="+id)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // by that signal
	})
	return cmd
}

func send(t *testing.T, cmd *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%s: %v", sig, err)
	}
}

func (b bundle) leader(t *testing.T) (id string, term int64) {
	t.Helper()
	if err := b.admin.QueryRow(t.Context(),
		"select leader, term from eventlog.sequencer where until > clock_timestamp() union all select '', 0 limit 1").Scan(&id, &term); err != nil {
		t.Fatal(err)
	}
	return id, term
}

func (b bundle) awaitLeader(t *testing.T, id string) {
	t.Helper()
	eventually(t, "leader "+id, func() bool { now, _ := b.leader(t); return now == id })
}

// A leader that is stopped (SIGSTOP) in the middle of its work, replaced and resumed: nobody waits
// longer than its lease, and no event is lost, doubled or re-ordered by it.
func TestStoppedLeader(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := child(t, b, "a")
	b.awaitLeader(t, "a")
	other := child(t, b, "b")

	var busy sync.WaitGroup
	reader := &follower{batch: 100}
	busy.Go(func() { reader.run(ctx, t, b) })
	committed := []map[string]int64{{}, {}}
	for i := range committed {
		w := writer{b: b, random: rand.New(rand.NewPCG(3, uint64(i))), versions: committed[i]}
		busy.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				w.run(context.WithoutCancel(ctx), t, fmt.Sprintf("w%d", i), 5)
			}
		})
	}

	processes := map[string]*exec.Cmd{"a": a, "b": other}
	next := map[string]string{"a": "b", "b": "a"}
	leading := "a"
	for range 3 {
		before := reader.at()
		eventually(t, "news under leader "+leading, func() bool { return reader.at() > before+20 })
		send(t, processes[leading], syscall.SIGSTOP)
		b.awaitLeader(t, next[leading])
		send(t, processes[leading], syscall.SIGCONT)
		leading = next[leading]
	}
	before := reader.at()
	eventually(t, "news with both awake", func() bool { return reader.at() > before+50 })
	cancel()
	busy.Wait()
	checkTail(t, b, committed)
}

// checkTail reads the whole log when all that was committed has a position, and compares.
func checkTail(t *testing.T, b bundle, committed []map[string]int64) {
	t.Helper()
	want := 0
	for _, m := range committed {
		for _, v := range m {
			want += int(v)
		}
	}
	all := &follower{}
	eventually(t, "every committed event has a position",
		func() bool { all.seen = b.readAll(t); return len(all.seen) >= want })
	all.check(t, "whole log", committed)
	for i, e := range all.seen {
		if e.Position.N != int64(i)+1 {
			t.Fatalf("place %d has position %s", i+1, e.Position)
		}
	}
}

// A killed leader is replaced when its lease has run out, one that stops in good order at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	a := child(t, b, "a")
	b.awaitLeader(t, "a")
	s, stop := b.sequencer(t, "b")
	send(t, a, syscall.SIGKILL)
	written := b.mustAppend(t, "east", 0, registered("east"))
	if p, ok, err := b.log.Wait(t.Context(), written, patience); err != nil || !ok || p.N != 1 {
		t.Errorf("after the kill: %s %v %v", p, ok, err)
	}
	if !s.Leading() {
		t.Error("b does not lead")
	}

	stop()
	if id, _ := b.leader(t); id != "" {
		t.Errorf("%q holds the lease although b has stopped in good order", id)
	}
	if s.Leading() {
		t.Error("b says that it leads")
	}
	c := child(t, b, "c")
	b.awaitLeader(t, "c")
	send(t, c, syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Errorf("a candidate ends with %v", err)
	}
	if id, _ := b.leader(t); id != "" {
		t.Errorf("%q holds the lease although c has stopped in good order", id)
	}
}

// A leader whose term has passed is refused, also when there is nothing to do, and moves nothing.
func TestOldTermIsRefused(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	old := b.lead(t)
	if _, err := b.pool.Exec(t.Context(), "select eventlog.resign($1)", old); err != nil {
		t.Fatal(err)
	}
	var term int64
	if err := b.pool.QueryRow(t.Context(), "select eventlog.lead('another', interval '1 hour')").Scan(
		&term); err != nil || term <= old {
		t.Fatalf("term %d after %d: %v", term, old, err)
	}
	for _, pending := range []bool{false, true} {
		if pending {
			b.mustAppend(t, "east", 0, registered("east"))
		}
		if n, err := b.log.Sequence(t.Context(), old, 10); err == nil || n != 0 {
			t.Errorf("pending %v: the old term moved %d events (%v)", pending, n, err)
		}
	}
	if n := b.sequenceAll(t, term); n != 1 {
		t.Errorf("the new term moved %d events, want 1", n)
	}
}

// A lease that reaches far into the future, because the clock of the database has gone back since it
// was given, keeps nobody waiting.
func TestLeaseFromTheFuture(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	if _, err := b.admin.Exec(t.Context(),
		"update eventlog.sequencer set leader = 'gone', term = 7, until = now() + interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	b.sequencer(t, "a")
	b.awaitLeader(t, "a")
}

// What runs beside the sequencer runs while it leads, starts again when it fails, and ends with the term.
func TestLeadRunsBesideTheSequencer(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx, cancel := context.WithCancel(t.Context())
	starts, ends := make(chan int, 10), make(chan struct{}, 10)
	n := 0
	s := eventlog.NewSequencer(b.log, eventlog.Options{ID: "a", Log: quiet, Lead: func(ctx context.Context) error {
		n++
		starts <- n
		if n == 1 {
			return fmt.Errorf("the first time it fails")
		}
		<-ctx.Done()
		ends <- struct{}{}
		return nil
	}})
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for want := 1; want <= 2; want++ {
		select {
		case got := <-starts:
			if got != want {
				t.Errorf("start %d, want %d", got, want)
			}
		case <-time.After(patience):
			t.Fatal("it was not started")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(ends) != 1 {
		t.Errorf("it ended %d times before Run returned, want 1", len(ends))
	}
}
