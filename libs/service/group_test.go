package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/chandler-fleet/chandler/libs/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal notes in which order parts stop.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, s)
}

// part runs until it is told to stop, and says when it has started.
func (j *journal) part(name string, started *sync.WaitGroup) service.Part {
	started.Add(1)
	return service.Part{Name: name, Run: func(ctx context.Context) error {
		started.Done()
		<-ctx.Done()
		j.note(name)
		return ctx.Err()
	}}
}

func TestGroupStopsInReverseOrder(t *testing.T) {
	t.Parallel()
	var j journal
	var started sync.WaitGroup
	g := service.Group{Parts: []service.Part{
		j.part("store", &started), j.part("worker", &started),
		j.part("server", &started),
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	started.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("an ordered stop returned %v", err)
	}
	if want := []string{"server", "worker", "store"}; !slices.Equal(j.lines, want) {
		t.Errorf("stopped in the order %v, want %v", j.lines, want)
	}
}

func TestGroupStopsAllWhenOneFails(t *testing.T) {
	t.Parallel()
	var j journal
	var started sync.WaitGroup
	broken := errors.New("disk is full")
	g := service.Group{Parts: []service.Part{j.part("server", &started)}}
	g.Add("worker", func(context.Context) error { started.Wait(); return broken })
	err := g.Run(t.Context())
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "worker") {
		t.Errorf("Run = %v, want the failure and the part's name", err)
	}
	if !slices.Equal(j.lines, []string{"server"}) {
		t.Errorf("stopped %v, want the server", j.lines)
	}
}

func TestGroupGoesOnWhenAPartIsDone(t *testing.T) {
	t.Parallel()
	var g service.Group
	warm := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	g.Add("warm-up", func(context.Context) error { close(warm); return nil })
	g.Add("server", func(ctx context.Context) error {
		<-warm
		cancel() // the outside ends the group: reaching this proves that warm-up did not
		<-ctx.Done()
		return nil
	})
	if err := g.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestGroupEndsWhenEveryPartIsDone(t *testing.T) {
	t.Parallel()
	var g service.Group
	g.Add("once", func(context.Context) error { return nil })
	if err := g.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestGroupTurnsAPanicIntoAnError(t *testing.T) {
	t.Parallel()
	var g service.Group
	g.Add("worker", func(context.Context) error { panic("index out of range") })
	err := g.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "worker: panic: index out of range") {
		t.Errorf("Run = %v", err)
	}
}

func TestGroupNamesThePartThatDoesNotStop(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	var g service.Group
	g.Drain = 20 * time.Millisecond
	g.Add("stuck", func(context.Context) error { <-release; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := g.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "stuck did not stop within 20ms") {
		t.Errorf("Run = %v", err)
	}
}
