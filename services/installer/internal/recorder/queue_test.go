package recorder

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestQueue: of each cluster one report is worked on at a time, in the order of arrival; clusters take turns; the
// newest report of a subject takes the place of an older one; what failed waits, and holds up nothing.
func TestQueue(t *testing.T) {
	t.Parallel()
	q, now := newQueue(), time.Now()
	put := func(cluster, scope, data string) {
		subject := fmt.Sprintf("chandler.reports.t.%s.%s", cluster, scope)
		q.put(item{Message: Message{Subject: subject, Data: []byte(data)}, proven: true})
	}
	var got []string
	next := func(at time.Time) item {
		it, ok := q.next(at)
		said := "nothing"
		if ok {
			said = string(it.Data)
		}
		got = append(got, said)
		return it
	}
	put("a", "1", "a1 old")
	put("a", "2", "a2")
	put("b", "1", "b1")
	put("a", "1", "a1")
	first, second := next(now), next(now)
	next(now) // both clusters are worked on
	q.retry(first)
	third := next(now)
	q.done(second)
	if q.rests(clusterKey{"t", "a"}) || !q.rests(clusterKey{"t", "b"}) {
		t.Error("of a cluster waits something, and of the other nothing")
	}
	q.done(third)
	next(now)
	again := next(now.Add(time.Hour))
	q.park(again)
	if !q.rests(clusterKey{"t", "a"}) {
		t.Error("what is parked holds up the comparison")
	}
	put("a", "1", "a1 new")
	fresh := next(now)
	put("a", "2", "a2 new")
	q.drop(clusterKey{"t", "a"})
	q.retry(fresh) // of a cluster that was given up
	next(now.Add(time.Hour))
	put("a", "3", "a3")
	next(now)
	q.done(fresh) // which does not free who works on it now
	put("a", "4", "a4")
	next(now)
	want := "a1, b1, nothing, a2, nothing, a1, a1 new, nothing, a3, nothing"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("worked on %s\nwant      %s", s, want)
	}
	if q.proven != (load{1, len("a4")}) || q.guesses != (load{}) || len(q.slow) != 0 {
		t.Errorf("%+v wait, %d clusters have something for later", q.proven, len(q.slow))
	}
}

// TestForgedReportsPushOutNothing: whoever writes to the subjects of one cluster, however much, leaves the room of
// other clusters and of what is proved; and the queue is bounded in bytes.
func TestForgedReportsPushOutNothing(t *testing.T) {
	t.Parallel()
	q, large := newQueue(), make([]byte, 1<<20)
	report := func(cluster, session string, data []byte, proven bool) item {
		return item{proven: proven, Message: Message{
			Subject: "chandler.reports.t." + cluster + ".ns", Session: session, Data: data,
		}}
	}
	for i := range 2 * maxWaiting {
		q.put(report("forged", fmt.Sprint(i), large[:64], false))
	}
	for i := range 100 {
		q.put(report(fmt.Sprint("large", i), "s", large, false))
	}
	if q.guesses.bytes > maxAllGuessBytes || q.lines[clusterKey{"t", "forged"}].guesses.count != maxGuesses {
		t.Errorf("%+v wait of what is not proved", q.guesses)
	}
	q.put(report("forged", "s", []byte("true"), true))
	q.put(report("other", "s", []byte("true"), true))
	if q.proven.count != 2 {
		t.Errorf("%d of two true reports wait", q.proven.count)
	}
	for i := range maxWaitingBytes>>20 + 10 {
		q.put(report(fmt.Sprint("proven", i), "s", large, true))
	}
	if q.proven.bytes > maxWaitingBytes {
		t.Errorf("%d bytes of proven reports wait", q.proven.bytes)
	}
	for now := time.Now(); ; {
		it, ok := q.next(now)
		if !ok {
			break
		}
		q.done(it)
	}
	if q.proven != (load{}) || q.guesses != (load{}) || len(q.lines) != 0 {
		t.Errorf("of an empty queue %+v and %+v are counted, %d lines stay", q.proven, q.guesses, len(q.lines))
	}
}
