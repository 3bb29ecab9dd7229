package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

const (
	// workers record reports of different clusters at once.
	workers = 4
	// parkedEvery is how often a report is recorded again of which a limit holds something back, or whose sender is not
	// listened to while the cluster's holder speaks.
	parkedEvery = 15 * time.Second
	// otherTries is how often one of such a sender is tried: for longer than a holder that has gone counts as there.
	otherTries = 8
	// retryFirst and retryMax bound the pause before a report is tried again; it doubles.
	retryFirst = 200 * time.Millisecond
	retryMax   = 10 * time.Second
	// conflictTries is how often a report is decided again at once because another service wrote to the
	// same stream in the same moment.
	conflictTries = 5
	// unknownTries is how often a report of an unknown cluster is tried again: the hub's tables may be a
	// moment behind. Later the digest in the cluster's report shows that something is missing.
	unknownTries = 8
	// inboxSize is how many messages may wait until they are looked at: those of a second in which every executor of a
	// thousand clusters says something of a dozen namespaces. What finds no room is missing in a digest.
	inboxSize = 16 << 10
	// maxLogged bounds what is remembered so that it is logged once: parts of it are names that clusters gave.
	maxLogged = 4096
)

// Config is what a recorder needs; Now and Log may be left out.
type Config struct {
	Pool     *pg.Pool
	EventLog *eventlog.Log
	Bus      *bus.Bus
	// Name is this replica's, as in the placement.
	Name string
	Now  func() time.Time
	Log  *slog.Logger
	// Key is that of the hub: it proves what the hub sent to a cluster.
	Key keys.Accepted
	// Scope and Cluster bound the facts that reports of a namespace and of a cluster begin; record's where they are
	// left out.
	Scope, Cluster record.RateLimit
	// Foreign bounds the subjects of a cluster in REPORTS beyond those of registered namespaces; maxForeign where it
	// is 0.
	Foreign int
}

// Recorder appends the installer's facts.
type Recorder struct {
	c       Config
	writer  *writer
	queue   *queue
	keyring *keyring

	inbox chan *nats.Msg

	mu     sync.Mutex
	ended  bool
	claims map[clusterKey]*claim
	done   map[clusterKey]whole // the last report about a cluster as a whole that is wholly recorded
	misses map[clusterKey]int   // digests in a row that were not those of what is recorded
}

// writer records reports whose senders are proved, each in one transaction.
type writer struct {
	c       Config
	claimOf func(clusterKey) int64 // 0: the cluster is another recorder's
	logged  once
	seen    *logSeen
}

// New returns a recorder that records nothing before it has claimed a cluster.
func New(c Config) *Recorder {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Scope, c.Cluster = cmp.Or(c.Scope, record.ScopeRateLimit), cmp.Or(c.Cluster, record.ClusterRateLimit)
	c.Foreign = cmp.Or(c.Foreign, maxForeign)
	r := &Recorder{
		c: c, queue: newQueue(), keyring: newKeyring(c.Pool), inbox: make(chan *nats.Msg, inboxSize),
		claims: map[clusterKey]*claim{}, done: map[clusterKey]whole{}, misses: map[clusterKey]int{},
	}
	r.writer = &writer{
		c: c, claimOf: r.claimOf,
		seen: &logSeen{log: c.EventLog, pool: c.Pool, now: c.Now, compared: map[string]time.Time{}},
	}
	return r
}

// Run records what comes of the clusters that are claimed (Place) until ctx ends; what is in a transaction then is
// finished.
func (r *Recorder) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { r.receive(ctx) })
	for range workers {
		running.Go(func() { r.work(ctx) })
	}
	<-ctx.Done()
	r.end()
	running.Wait()
	return nil
}

func (r *Recorder) receive(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-r.inbox:
			r.take(messageOfBus(m.Subject, m.Header, m.Data))
		}
	}
}

func (r *Recorder) work(ctx context.Context) {
	for {
		it, ok := r.queue.take(ctx)
		if !ok {
			return
		}
		// What has begun is finished though ctx ends.
		got, err := r.recordItem(context.WithoutCancel(ctx), it)
		if errors.Is(err, errOvertaken) {
			r.release(clusterOf(it.Subject))
			r.c.Log.InfoContext(ctx, "another replica records the reports of a cluster", "of", it.Subject)
			r.queue.done(it)
			continue
		}
		r.logProblem(it.logKey(), err)
		switch {
		case err == nil && (got == recorded || got == unheard && it.tries >= otherTries):
			r.queue.done(it)
		case err == nil:
			r.queue.park(it)
		case errs.Is(err, errs.NotFound) && it.tries >= unknownTries, errs.Is(err, errs.Invalid),
			errs.Is(err, errs.Forbidden), errs.Is(err, errs.TooLarge):
			r.queue.done(it)
		default:
			r.queue.retry(it)
		}
	}
}

func (r *Recorder) recordItem(ctx context.Context, it item) (outcome, error) {
	if it.catchUp {
		return recorded, r.catchUp(ctx, clusterOf(it.Subject))
	}
	if it.shed {
		return recorded, r.shed(ctx, clusterOf(it.Subject))
	}
	if !it.proven {
		if err := r.keyring.prove(ctx, it.Message); err != nil {
			return recorded, err
		}
	}
	return r.read(ctx, it.Message)
}

// logProblem logs a problem with a report when it begins or changes.
func (r *Recorder) logProblem(of string, err error) {
	switch {
	case err == nil:
		r.writer.logged.forget(of)
	case r.writer.logged.isNew(of, err.Error()):
		r.c.Log.Warn("cannot record a report", "of", of, "error", err.Error())
	}
}

// once remembers what was logged, so that it is logged once. Its methods may be called side by side.
type once struct {
	mu   sync.Mutex
	last map[string]string // by what it is about
}

// isNew reports whether a text is another one than the last about the same. When there is too much to remember, it is
// logged once more.
func (o *once) isNew(of, text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, there := o.last[of]
	if there && last == text {
		return false
	}
	if !there && len(o.last) >= maxLogged || o.last == nil {
		o.last = map[string]string{}
	}
	o.last[of] = text
	return true
}

func (o *once) forget(of string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, of)
}

// outcome is what became of a report.
type outcome int

const (
	recorded outcome = iota // the same report can add nothing later
	withheld                // a limit holds something back
	unheard                 // its sender is not listened to now
)

// settledAs is the outcome of a report that was recorded, wholly or not.
func settledAs(settled bool) outcome {
	if settled {
		return recorded
	}
	return withheld
}

// Record records one report. It may be called with the same report any number of times. A report that
// cannot be read, or that is about something else than its subject names, is errs.Invalid; one of a cluster that
// is not registered (yet) is errs.NotFound; one that no registered session signed, or that claims an epoch that was
// never registered, or a position that the hub never published, is errs.Forbidden; one of a cluster that another
// recorder has claimed since, or that was never claimed, is errs.Conflict.
func (r *Recorder) Record(ctx context.Context, m Message) error {
	_, err := r.recordItem(ctx, item{Message: m})
	return err
}

// read records a report whose sender is proved.
func (r *Recorder) read(ctx context.Context, m Message) (outcome, error) {
	data, err := record.SanitizeJSON(m.Data)
	if err != nil {
		return recorded, err
	}
	if strings.HasSuffix(m.Subject, "."+protocol.ClusterToken) {
		return r.readCluster(ctx, m, data)
	}
	return r.readScope(ctx, m, data)
}

func (r *Recorder) readCluster(ctx context.Context, m Message, data []byte) (outcome, error) {
	var report protocol.ClusterReport
	if err := json.Unmarshal(data, &report); err != nil {
		return recorded, errs.Wrap(errs.Invalid, err, "read the report %s", m.Subject)
	}
	if protocol.ClusterReportSubject(report.Tenant, report.ClusterID) != m.Subject {
		return recorded, errs.New(errs.Invalid, "the report %s is about cluster %s", m.Subject, report.ClusterID)
	}
	if report.Session != m.Session {
		return recorded, errs.New(errs.Invalid, "the report %s names another session than its message", m.Subject)
	}
	same := report
	same.Reported, same.Sequence, same.Scopes = time.Time{}, 0, nil
	report = record.SanitizeCluster(report, r.c.Now())
	sum, err := digest.JSON(reportType, same)
	if err != nil {
		return recorded, errs.Wrap(errs.Invalid, err, "digest of the report %s", m.Subject)
	}
	of := clusterKey{report.Tenant, report.ClusterID}
	r.mu.Lock()
	last := r.done[of]
	r.mu.Unlock()
	if last.sum == sum {
		checked := r.writer.checkEpoch(ctx, clusterSender(report))
		same, err := r.writer.touchHolder(ctx, report, last.state)
		if err := errors.Join(checked, err); err != nil {
			return recorded, err
		}
		if same {
			r.compare(ctx, report)
			return recorded, nil
		}
	}
	var state string
	got, err := r.decided(func() (got outcome, err error) {
		got, state, err = r.writer.recordCluster(ctx, report)
		return got, err
	})
	if err != nil {
		return got, err
	}
	r.compare(ctx, report)
	if got == recorded {
		r.mu.Lock()
		r.done[of] = whole{sum: sum, state: state}
		r.mu.Unlock()
	}
	return got, nil
}

func (r *Recorder) readScope(ctx context.Context, m Message, data []byte) (outcome, error) {
	var report protocol.ScopeReport
	if err := json.Unmarshal(data, &report); err != nil {
		return recorded, errs.Wrap(errs.Invalid, err, "read the report %s", m.Subject)
	}
	if protocol.ScopeReportSubject(report.Scope) != m.Subject {
		return recorded, errs.New(errs.Invalid, "the report %s is about %s/%s", m.Subject, report.Scope.ClusterID,
			report.Scope.Namespace)
	}
	if report.Session != m.Session {
		return recorded, errs.New(errs.Invalid, "the report %s names another session than its message", m.Subject)
	}
	if !record.IsObjectName(report.Scope.Namespace) {
		return recorded, errs.New(errs.Invalid, "the report %s is about namespace %.60q, which is not a valid name",
			m.Subject, report.Scope.Namespace)
	}
	same := report
	same.Reported, same.Session, same.Sequence, same.Epoch = time.Time{}, "", 0, 0
	same.Seen, same.Proof = events.Position{}, nil // these are checked in any case
	report, refused := record.Sanitize(report, r.c.Now())
	if refused != nil {
		r.writer.logRefused(report.Scope, "names", refused)
	}
	sum, err := digest.JSON(reportType, same)
	if err != nil {
		return recorded, errs.Wrap(errs.Invalid, err, "digest of the report %s", m.Subject)
	}
	said := statement{sum: sum, entry: protocol.EntryOf(m.Subject, m.Data)}
	return r.decided(func() (outcome, error) { return r.writer.recordScope(ctx, report, said) })
}

// whole is a report about a cluster as a whole that is recorded.
type whole struct {
	sum   digest.Digest // of what it says
	state string        // hash of what was stored of it: after lost commits something else is stored
}

// statement is what a report says, and the report itself, as digests.
type statement struct {
	sum   digest.Digest // of what it says, whoever says it and when
	entry protocol.Entry
}

// reportType is the type prefix of a report's digest.
const reportType = "chandler.report.v2"

// decided records a report, again where another service wrote to a stream in the same moment.
func (r *Recorder) decided(fn func() (outcome, error)) (got outcome, err error) {
	for range conflictTries {
		got, err = fn()
		if errors.Is(err, errOvertaken) || !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.AlreadyExists) {
			break
		}
	}
	return got, err
}
