package podlogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestReadSideBySide: nodes that do not answer keep the lines of others from nobody, however many there are; the
// containers come in their order (ADR 0069).
func TestReadSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reading, most := 0, 0
		r := logReader{open: func(ctx context.Context, s source, _ corev1.PodLogOptions) (io.ReadCloser, error) {
			mu.Lock()
			reading++
			most = max(most, reading)
			mu.Unlock()
			defer func() { mu.Lock(); reading--; mu.Unlock() }()
			if !strings.HasSuffix(s.pod, "9") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return io.NopCloser(strings.NewReader(stamped(1, s.pod))), nil
		}}
		var sources []source
		for i := range protocol.MaxLogContainers + 1 {
			sources = append(sources, source{pod: fmt.Sprintf("pod%02d", i), uid: fmt.Sprint(i), container: "manager"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), answerTime)
		defer cancel()
		begun := time.Now()
		a, err := r.read(ctx, protocol.LogQuestion{}, sources, cursor{})
		if err != nil || len(a.Containers) != protocol.MaxLogContainers || a.LeftOut != 1 {
			t.Fatalf("%v: %d containers, %d left out", err, len(a.Containers), a.LeftOut)
		}
		for i, c := range a.Containers {
			want, problem := "", "the node does not answer in time"
			if i%10 == 9 {
				want, problem = stamped(1, c.Pod), ""
			}
			if c.Pod != sources[i].pod || string(c.Lines) != want || c.Problem != problem {
				t.Errorf("container %d is %s: %q, %q", i, c.Pod, c.Lines, c.Problem)
			}
		}
		if took := time.Since(begun); took >= answerTime || most > readAtOnce {
			t.Errorf("took %v, with %d at once", took, most)
		}
	})
}

// TestLastWords: what a container wrote last before its restart comes, too, where it cannot be read at first; where it
// is gone for good, that is told, and the log goes on (ADR 0069).
func TestLastWords(t *testing.T) {
	t.Parallel()
	s := source{pod: "a", uid: "a", container: "manager", restarts: 1}
	before := cursor{s.key(): {start, 1, 0}}.String()
	busy := apierrors.NewInternalError(io.ErrUnexpectedEOF)
	absent := apierrors.NewBadRequest("previous terminated container not found")
	for name, c := range map[string]struct {
		failing error
		first   string
		problem string
		then    string
	}{
		"read":                   {nil, "panic again", "", ""},
		"not for now":            {busy, "", "unexpected EOF", "panic again"},
		"beyond the time":        {context.DeadlineExceeded, "", "does not answer in time", "panic again"},
		"removed from the node":  {absent, "again", "previous terminated container not found", ""},
		"said by the kubelet so": {io.EOF, "again", "unable to retrieve container logs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := c.failing
			r := logReader{open: func(_ context.Context, _ source, o corev1.PodLogOptions) (io.ReadCloser, error) {
				text := stamped(9, "again")
				if o.Previous {
					text = stamped(1, "panic")
				}
				switch {
				case !o.Previous || failing == nil:
				case errors.Is(failing, io.EOF):
					text = "unable to retrieve container logs for containerd://1\n"
				default:
					return nil, failing
				}
				if o.SinceTime != nil && !o.Previous { // what was told once is not young enough
					text = ""
				}
				return io.NopCloser(strings.NewReader(text)), nil
			}}
			ask := func(after string) protocol.LogAnswer {
				at, err := parseCursor(after)
				if err != nil {
					t.Fatal(err)
				}
				a, err := r.read(t.Context(), protocol.LogQuestion{After: after}, []source{s}, at)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			first := ask(before)
			if got := first.Containers[0]; texts(part{lines: got.Lines}) != c.first ||
				!strings.Contains(got.Problem, c.problem) || (got.Problem == "") != (c.problem == "") {
				t.Errorf("told %q and %q, want %q and %q", got.Lines, got.Problem, c.first, c.problem)
			}
			failing = nil
			if got := ask(first.After).Containers[0]; texts(part{lines: got.Lines}) != c.then || got.Problem != "" {
				t.Errorf("then %q and %q, want %q", got.Lines, got.Problem, c.then)
			}
		})
	}
}
