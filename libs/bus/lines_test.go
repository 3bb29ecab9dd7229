package bus_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// lineCounter keeps log lines.
type lineCounter struct {
	mu    sync.Mutex
	lines []string
}

func (l *lineCounter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *lineCounter) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lineCounter) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func (l *lineCounter) wait(t *testing.T, part string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.count(part) == 0 {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("no line holds %q", part)
		}
	}
}
