package podlogs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

var start = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

// stamped is a line as a kubelet gives it, so many nanoseconds after start.
func stamped(nanos int, text string) string {
	return start.Add(time.Duration(nanos)).Format(time.RFC3339Nano) + " " + text + "\n"
}

// texts are the lines of a part without their times.
func texts(p part) string {
	var out []string
	for line := range strings.Lines(string(p.lines)) {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// TestReadLines: what is behind a position comes, each line once, however many share a time; what is not ended waits;
// what does not fit says so.
func TestReadLines(t *testing.T) {
	t.Parallel()
	log := stamped(1, "a") + stamped(1, "b") + stamped(1, "c") + stamped(2, "d")
	end := position{start.Add(2), 1, 0}
	for _, c := range []struct {
		name  string
		log   string
		from  position
		room  int
		ended bool
		want  string
		more  bool
		next  position
	}{
		{"from the beginning", log, position{}, 1000, false, "a b c d", false, position{start.Add(2), 1, 0}},
		{
			"from within a time", log,
			position{start.Add(1), 2, 3},
			1000, false,
			"c d", false,
			position{start.Add(2), 1, 3},
		},
		{"from its end", log, end, 1000, false, "", false, end},
		{"as much as there is room for", log, position{}, 80, false, "a b", true, position{start.Add(1), 2, 0}},
		{"nothing written", "", position{restarts: 2}, 1000, false, "", false, position{restarts: 2}},
		{"being written", log + strings.TrimSuffix(stamped(3, "e"), "\n"), end, 1000, false, "", false, end},
		{
			"ended without an end of line", strings.TrimSuffix(log, "\n"),
			position{start.Add(1), 3, 0},
			1000, true,
			"d", false, end,
		},
		{"an empty line", stamped(1, ""), position{}, 1000, false, "", false, position{start.Add(1), 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := readLines(strings.NewReader(c.log), c.from, c.room, c.ended)
			if err != nil || texts(p) != c.want || p.more != c.more || p.position != c.next || p.problem != "" {
				t.Errorf("%v: %q, more %v, at %+v, %q; want %q, %v, %+v", err, texts(p), p.more, p.position, p.problem,
					c.want, c.more, c.next)
			}
		})
	}
}

// TestReadLinesIsBounded: a line of any length takes the room of one; a second with more than is ever read is passed
// over and told, so that the next question goes on.
func TestReadLinesIsBounded(t *testing.T) {
	t.Parallel()
	long, err := readLines(strings.NewReader(stamped(1, strings.Repeat("x", 1<<20))+stamped(2, "after")), position{},
		protocol.MaxLogBytes/protocol.MaxLogContainers, false)
	if err != nil || !strings.HasSuffix(texts(long), "bytes more) after") || len(long.lines) > protocol.MaxLogLine+200 {
		t.Errorf("%v: a long line takes %d bytes and ends in %q", err, len(long.lines), texts(long)[len(texts(long))-30:])
	}
	flood := strings.Repeat(stamped(1, strings.Repeat("y", 1000)), maxScan/1000)
	p, err := readLines(strings.NewReader(flood), position{start.Add(1), maxScan, 0}, 1000, false)
	if want := start.Add(time.Second); err != nil || !p.more || p.position.at != want || p.position.lines != 0 ||
		!strings.Contains(p.problem, "left out") {
		t.Errorf("%v: a flood goes on at %+v, more %v, %q", err, p.position, p.more, p.problem)
	}
	p, err = readLines(strings.NewReader("unable to retrieve container logs for containerd://1\n"), position{}, 1000,
		false)
	if err != nil || p.problem != "unable to retrieve container logs for containerd://1" || len(p.lines) > 0 {
		t.Errorf("%v: what a kubelet says of a log: %q", err, p.problem)
	}
}

// TestCursor: what is written is read again, however many containers there are; anything else is refused with its
// place.
func TestCursor(t *testing.T) {
	t.Parallel()
	c := cursor{}
	for i := range protocol.MaxLogContainers {
		c[keyOf("uid", fmt.Sprint(i))] = position{start.Add(time.Duration(i)), 1 << 30, 1 << 30}
	}
	c[keyOf("uid", "0")] = position{}
	text := c.String()
	if len(text) > protocol.MaxLogCursor {
		t.Errorf("a cursor has %d bytes", len(text))
	}
	again, err := parseCursor(text)
	if err != nil || len(again) != len(c) {
		t.Fatalf("%v: %d of %d", err, len(again), len(c))
	}
	for key, p := range c {
		if again[key] != p {
			t.Errorf("%s: %+v, want %+v", key, again[key], p)
		}
	}
	for _, wrong := range []string{
		"x", "2", "1_a", "1_a-b-c", "1_a-1-2-x", "1_a-1--2-0", "1_a--1-2-0", "1_a-1-99999999999-0",
		"1" + strings.Repeat("_a-1-1-1", protocol.MaxLogContainers+1),
		"1_" + strings.Repeat("a", protocol.MaxLogCursor),
	} {
		if _, err := parseCursor(wrong); !errs.Is(err, errs.Invalid) {
			t.Errorf("%.40s: %v", wrong, err)
		}
	}
}

// TestSources: the container that kubectl would take, the one that is named, or all; where nobody chose one of several,
// they are named (R-TRB-9).
func TestSources(t *testing.T) {
	t.Parallel()
	pod := func(name string, annotations map[string]string, containers ...string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
		p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		for _, c := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", RestartCount: 3}}
		return p
	}
	pods := []corev1.Pod{
		pod("a", nil, "proxy", "manager"), pod("b", map[string]string{defaultContainer: "manager"}, "proxy", "manager"),
		pod("c", map[string]string{defaultContainer: "gone"}, "manager"),
	}
	for name, c := range map[string]struct {
		q    protocol.LogQuestion
		want string
	}{
		"default": {protocol.LogQuestion{}, "a/proxy:0 b/manager:3 c/manager:3"},
		"named":   {protocol.LogQuestion{Container: "manager"}, "a/manager:3 b/manager:3 c/manager:3"},
		"in some": {protocol.LogQuestion{Container: "proxy"}, "a/proxy:0 b/proxy:0"},
		"all": {
			protocol.LogQuestion{AllContainers: true},
			"a/init:0 a/proxy:0 a/manager:3 b/init:0 b/proxy:0 b/manager:3 c/init:0 c/manager:3",
		},
	} {
		sources, err := sourcesOf(pods, c.q)
		var got []string
		for _, s := range sources {
			got = append(got, fmt.Sprintf("%s/%s:%d", s.pod, s.container, s.restarts))
			if chosen := c.q.Container != "" || c.q.AllContainers; chosen != (len(s.choices) == 0) {
				t.Errorf("%s: the choices of %s are %v", name, s.pod, s.choices)
			}
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v, want %s", name, got, err, c.want)
		}
	}
	if _, err := sourcesOf(pods, protocol.LogQuestion{CSV: "o", Container: "x"}); !errs.Is(err, errs.NotFound) ||
		!strings.Contains(err.Error(), "there are init, manager, proxy") {
		t.Errorf("an unknown container: %v", err)
	}
}
