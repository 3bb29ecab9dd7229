package recorder

import (
	"context"
	"sync"
	"time"
)

// item is one report on its way.
type item struct {
	Message
	proven bool // its signature was checked already
	tries  int
	due    time.Time
}

// key is what the newest of is kept. A report that nobody has checked yet has a place of its own: whoever can write to
// the bus must not push a holder's report out of the queue.
func (it item) key() string {
	if it.proven {
		return it.Subject
	}
	return it.Subject + "\x00" + it.Session
}

// queue holds the newest report of each subject; a subject is worked on by one at a time, in the order of
// arrival, failed ones later.
type queue struct {
	mu      sync.Mutex
	waiting map[string]item
	order   []string
	busy    map[string]bool
	wake    chan struct{}
}

// logKey is what a problem is logged once of: of a report whose sender is not proved whatever comes on its subject.
func (it item) logKey() string {
	if it.proven {
		return it.Subject
	}
	return it.Subject + " unproved"
}

func newQueue() *queue {
	return &queue{waiting: map[string]item{}, busy: map[string]bool{}, wake: make(chan struct{}, workers)}
}

// maxWaiting bounds the subjects of which a report waits, whoever wrote there: a thousand clusters with a hundred
// namespaces each.
const maxWaiting = 100_000

// put takes a new report; an older one of the subject that still waits is replaced.
func (q *queue) put(it item) { q.add(it, true) }

func (q *queue) add(it item, newest bool) {
	q.mu.Lock()
	key := it.key()
	_, there := q.waiting[key]
	if !there && len(q.waiting) >= maxWaiting {
		q.mu.Unlock()
		return // the next sweep finds it
	}
	if !there {
		q.order = append(q.order, key)
	}
	if !there || newest {
		q.waiting[key] = it
	}
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// retry puts a report back that failed, unless a newer one came.
func (q *queue) retry(it item) {
	pause := retryFirst
	for range it.tries {
		pause = min(2*pause, retryMax)
	}
	it.tries++
	it.due = time.Now().Add(pause)
	q.add(it, false)
	q.done(it)
}

// done frees the subject.
func (q *queue) done(it item) {
	q.mu.Lock()
	delete(q.busy, it.Subject)
	q.mu.Unlock()
	q.signal()
}

// retryPollInterval is how often failed reports are searched for.
const retryPollInterval = 100 * time.Millisecond

// take waits for a report that is due; false when ctx has ended.
func (q *queue) take(ctx context.Context) (item, bool) {
	t := time.NewTicker(retryPollInterval)
	defer t.Stop()
	for ctx.Err() == nil {
		if it, ok := q.next(time.Now()); ok {
			return it, true
		}
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-t.C:
		}
	}
	return item{}, false
}

func (q *queue) next(now time.Time) (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, key := range q.order {
		it := q.waiting[key]
		if q.busy[it.Subject] || it.due.After(now) {
			continue
		}
		q.order = append(q.order[:i], q.order[i+1:]...)
		delete(q.waiting, key)
		q.busy[it.Subject] = true
		return it, true
	}
	return item{}, false
}
