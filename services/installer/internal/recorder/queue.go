package recorder

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// item is one report on its way.
type item struct {
	Message
	proven bool // its signature was checked already
	// catchUp has the last reports of the cluster compared with what is recorded, instead of one recorded.
	catchUp bool
	// shed has the subjects of the cluster counted, and purged where they are too many, instead of one recorded.
	shed bool
	// parked: it was recorded as far as was allowed, or comes from somebody who is not listened to now.
	parked bool
	tries  int
	due    time.Time
	from   *line // that it was taken from
}

// key is what the newest of is kept. A report that nobody has checked yet has a place of its own: whoever can write to
// the bus must not push a holder's report out of the queue.
func (it item) key() string {
	switch {
	case it.catchUp:
		return it.Subject + "\x00\x00catch up"
	case it.shed:
		return it.Subject + "\x00\x00shed"
	case it.proven:
		return it.Subject
	}
	return it.Subject + "\x00" + it.Session
}

// logKey is what a problem is logged once of: of reports whose sender is not proved all of their cluster, since who
// makes them up makes up their subjects.
func (it item) logKey() string {
	switch {
	case it.shed:
		return it.Subject + " subjects"
	case it.ours():
		return it.Subject
	}
	of := clusterOf(it.Subject)
	return of.tenant + "/" + of.id + " unproved"
}

// ours reports whether nobody who may write to the bus made it.
func (it item) ours() bool { return it.proven || it.catchUp || it.shed }

// clusterKey names a cluster of a tenant.
type clusterKey struct{ tenant, id string }

// clusterOf is the cluster that the subject of a report names.
func clusterOf(subject string) clusterKey {
	tenant, id, _ := protocol.ReporterOf(subject)
	return clusterKey{tenant, id}
}

// line has the reports of one cluster that wait: the newest of each subject, in the order of arrival.
type line struct {
	order   []string        // keys of waiting
	waiting map[string]item // that are due
	later   map[string]item // that are due some time
	busy    bool            // one is worked on
	turn    bool            // the cluster stands in queue.turns
	guesses load            // of these, what nobody has proved yet
}

// load is what waits.
type load struct{ count, bytes int }

func (l *load) add(it item, n int) {
	l.count += n
	l.bytes += n * len(it.Data)
}

func (l *load) has(it item, count, bytes int) bool {
	return l.count < count && l.bytes+len(it.Data) <= bytes
}

// queue holds the newest report of each subject. Reports of a cluster are worked on one at a time, in the order of
// arrival, failed ones later; clusters take turns.
type queue struct {
	mu    sync.Mutex
	lines map[clusterKey]*line
	turns []clusterKey // with something that is due, and none that is worked on
	slow  map[clusterKey]bool
	// proven is what waits of reports that are proved, guesses of all others.
	proven, guesses load
	wake            chan struct{}
}

func newQueue() *queue {
	return &queue{
		lines: map[clusterKey]*line{}, slow: map[clusterKey]bool{}, wake: make(chan struct{}, workers),
	}
}

const (
	// maxWaiting bounds the subjects of which a proven report waits: a thousand clusters with a hundred namespaces
	// each.
	maxWaiting = 100_000
	// maxWaitingBytes bounds what these hold: with a report of some 2 KiB the same number. A pod has 512 MiB.
	maxWaitingBytes = 192 << 20
	// maxGuesses and maxGuessBytes bound what waits of one cluster and is not proved: two sessions at a hand-over, each
	// with a few namespaces, and room for one message of the largest size. Whoever can write there pushes out nothing
	// of another cluster, and nothing that is proved.
	maxGuesses    = 64
	maxGuessBytes = 2 << 20
	// maxAllGuessBytes bounds what is not proved of all clusters together.
	maxAllGuessBytes = 32 << 20
)

// put takes a new report; an older one of the subject that still waits is replaced. What has no room is missing in the
// digest of its cluster: it is read from the stream when there is some.
func (q *queue) put(it item) {
	q.mu.Lock()
	of := clusterOf(it.Subject)
	l := q.line(of)
	key := it.key()
	old, waits := l.waiting[key]
	if waits {
		q.add(l, old, -1)
	} else if late, there := l.later[key]; there {
		delete(l.later, key)
		q.add(l, late, -1)
	}
	switch fits := q.fits(l, it); {
	case fits && !waits:
		l.order = append(l.order, key)
		fallthrough
	case fits:
		l.waiting[key] = it
		q.add(l, it, 1)
	case waits:
		q.add(l, old, 1)
	}
	q.offer(of, l)
	q.mu.Unlock()
	q.signal()
}

// add notes that n more of a report wait; the lock is held.
func (q *queue) add(l *line, it item, n int) {
	if it.ours() {
		q.proven.add(it, n)
		return
	}
	q.guesses.add(it, n)
	l.guesses.add(it, n)
}

// fits reports whether there is room for a report; the lock is held.
func (q *queue) fits(l *line, it item) bool {
	if it.ours() {
		return q.proven.has(it, maxWaiting, maxWaitingBytes)
	}
	return l.guesses.has(it, maxGuesses, maxGuessBytes) && q.guesses.has(it, maxWaiting, maxAllGuessBytes)
}

// line is that of a cluster; the lock is held.
func (q *queue) line(of clusterKey) *line {
	l := q.lines[of]
	if l == nil {
		l = &line{waiting: map[string]item{}, later: map[string]item{}}
		q.lines[of] = l
	}
	return l
}

// offer has a cluster take its turn if something of it can be worked on, and forgets it when nothing is left; the lock
// is held.
func (q *queue) offer(of clusterKey, l *line) {
	switch {
	case l.busy || l.turn:
	case len(l.order) > 0:
		l.turn = true
		q.turns = append(q.turns, of)
	case len(l.later) == 0:
		delete(q.lines, of)
		delete(q.slow, of)
	}
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
	q.again(it, pause)
}

// park puts a report back that is to be recorded again as time passes, unless a newer one came.
func (q *queue) park(it item) {
	it.parked = true
	it.tries++
	q.again(it, parkedEvery)
}

// again puts a report back to be looked at after a pause, unless a newer one came.
func (q *queue) again(it item, pause time.Duration) {
	it.due = time.Now().Add(pause)
	q.mu.Lock()
	of := clusterOf(it.Subject)
	if l := q.lines[of]; l != nil && l == it.from { // else the cluster was given up meanwhile
		if _, newer := l.waiting[it.key()]; !newer {
			l.later[it.key()] = it
			q.slow[of] = true
			q.add(l, it, 1)
		}
	}
	q.mu.Unlock()
	q.done(it)
}

// done frees the cluster.
func (q *queue) done(it item) {
	q.mu.Lock()
	of := clusterOf(it.Subject)
	if l := q.lines[of]; l != nil && l == it.from {
		l.busy = false
		q.offer(of, l)
	}
	q.mu.Unlock()
	q.signal()
}

// drop forgets what waits of a cluster. What is worked on just then is not put back.
func (q *queue) drop(of clusterKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[of]
	if l == nil {
		return
	}
	for _, list := range []map[string]item{l.waiting, l.later} {
		for _, it := range list {
			q.add(l, it, -1)
		}
	}
	delete(q.lines, of)
	delete(q.slow, of)
	if l.turn {
		q.turns = slices.DeleteFunc(q.turns, func(k clusterKey) bool { return k == of })
	}
}

// rests reports whether no proven report of a cluster waits, whether due or later; parked ones do not count.
func (q *queue) rests(of clusterKey) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[of]
	if l == nil {
		return true
	}
	for _, list := range []map[string]item{l.waiting, l.later} {
		for _, it := range list {
			if it.proven && !it.parked {
				return false
			}
		}
	}
	return true
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
	q.ripen(now)
	if len(q.turns) == 0 {
		return item{}, false
	}
	l := q.lines[q.turns[0]]
	q.turns = q.turns[1:]
	key := l.order[0]
	l.order = l.order[1:]
	it := l.waiting[key]
	delete(l.waiting, key)
	l.turn, l.busy, it.from = false, true, l
	q.add(l, it, -1)
	return it, true
}

// ripen puts what is due by now behind what waits; the lock is held.
func (q *queue) ripen(now time.Time) {
	for of := range q.slow {
		l := q.lines[of]
		for key, it := range l.later {
			if !it.due.After(now) {
				delete(l.later, key)
				l.waiting[key] = it
				l.order = append(l.order, key)
			}
		}
		if len(l.later) == 0 {
			delete(q.slow, of)
		}
		q.offer(of, l)
	}
}
