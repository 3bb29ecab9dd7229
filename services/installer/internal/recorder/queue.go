package recorder

import (
	"context"
	"sync"
	"time"
)

// item is one report on its way.
type item struct {
	subject string
	data    []byte
	tries   int
	due     time.Time
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

func newQueue() *queue {
	return &queue{waiting: map[string]item{}, busy: map[string]bool{}, wake: make(chan struct{}, workers)}
}

// maxWaiting bounds the subjects of which a report waits, whoever wrote there: a thousand clusters with a hundred
// namespaces each.
const maxWaiting = 100_000

// put takes a new report; an older one of the subject that still waits is replaced.
func (q *queue) put(subject string, data []byte) { q.add(item{subject: subject, data: data}, true) }

func (q *queue) add(it item, newest bool) {
	q.mu.Lock()
	_, there := q.waiting[it.subject]
	if !there && len(q.waiting) >= maxWaiting {
		q.mu.Unlock()
		return // the next sweep finds it
	}
	if !there {
		q.order = append(q.order, it.subject)
	}
	if !there || newest {
		q.waiting[it.subject] = it
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
	delete(q.busy, it.subject)
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
	for i, subject := range q.order {
		it := q.waiting[subject]
		if q.busy[subject] || it.due.After(now) {
			continue
		}
		q.order = append(q.order[:i], q.order[i+1:]...)
		delete(q.waiting, subject)
		q.busy[subject] = true
		return it, true
	}
	return item{}, false
}
