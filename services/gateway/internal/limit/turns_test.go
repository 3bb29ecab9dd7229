package limit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
)

// One key takes its own turns and not those of all, its line is bounded, and who waits is told so after a while.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wait = 2 * time.Second
		turns := limit.NewTurns(3, 2, 3, wait)
		queue := func(key string) *limit.Queued {
			q, ok := turns.Queue(key)
			if !ok {
				t.Fatalf("%s finds a full line", key)
			}
			return q
		}
		refused := func(q *limit.Queued, want error) {
			began := time.Now()
			if err := q.Wait(t.Context()); !errors.Is(err, want) || time.Since(began) != wait {
				t.Errorf("after %s: %v, want %v", time.Since(began), err, want)
			}
		}
		first, second, third := queue("a"), queue("a"), queue("a")
		for _, q := range []*limit.Queued{first, second} {
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := turns.Queue("a"); ok {
			t.Error("the line of one key has no end")
		}
		refused(third, limit.ErrOwn)
		other, last := queue("b"), queue("b")
		if err := other.Wait(t.Context()); err != nil {
			t.Errorf("another key: %v", err)
		}
		refused(last, limit.ErrAll)
		last.Leave() // with what it held of its own
		next := queue("b")
		time.AfterFunc(wait/2, first.Leave)
		if err := next.Wait(t.Context()); err != nil {
			t.Errorf("a place that was left: %v", err)
		}
		for _, q := range []*limit.Queued{second, third, other, next} {
			q.Leave()
		}
		for range 2 { // nothing is left of the line, and no place is lost
			q := queue("a")
			if err := q.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			t.Cleanup(q.Leave)
		}
	})
}
