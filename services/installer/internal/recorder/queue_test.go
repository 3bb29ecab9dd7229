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
	if q.count != 1 || len(q.slow) != 0 {
		t.Errorf("%d wait, %d clusters have something for later", q.count, len(q.slow))
	}
}
