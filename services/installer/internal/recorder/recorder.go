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
	"github.com/nats-io/nats.go/jetstream"

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
	// workers record reports of different scopes at once.
	workers = 4
	// sweepEvery is how often the last values are read again. Executors repeat their reports every 15
	// seconds by themselves; this is for those that have gone.
	sweepEvery = time.Minute
	// retryFirst and retryMax bound the pause before a report is tried again; it doubles.
	retryFirst = 200 * time.Millisecond
	retryMax   = 10 * time.Second
	// conflictTries is how often a report is decided again at once because another service wrote to the
	// same stream in the same moment.
	conflictTries = 5
	// unknownTries is how often a report of an unknown cluster is tried again: the hub's tables may be a
	// moment behind. The executor's next report begins anew.
	unknownTries = 8
	// group is the NATS queue group, so that of several replicas one takes a message.
	group = "chandler-recorder"
	// maxLogged bounds what is remembered so that it is logged once: parts of it are names that clusters gave.
	maxLogged = 4096
)

// Config is what a recorder needs; Now and Log may be left out.
type Config struct {
	Pool     *pg.Pool
	EventLog *eventlog.Log
	Bus      *bus.Bus
	Now      func() time.Time
	Log      *slog.Logger
	// Key is that of the hub: it proves what the hub sent to a cluster.
	Key keys.Accepted
	// Scope and Cluster bound the facts that reports of a namespace and of a cluster begin; record's where they are
	// left out.
	Scope, Cluster record.RateLimit
}

// Recorder appends the installer's facts.
type Recorder struct {
	c       Config
	queue   *queue
	keyring *keyring
	logged  once

	mu   sync.Mutex
	done map[string]digest.Digest // by subject: the last report that is wholly recorded
	head events.Position          // of the log, as far as known
}

// New returns a recorder.
func New(c Config) *Recorder {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Scope, c.Cluster = cmp.Or(c.Scope, record.ScopeRateLimit), cmp.Or(c.Cluster, record.ClusterRateLimit)
	return &Recorder{
		c: c, queue: newQueue(), keyring: newKeyring(c.Pool), done: map[string]digest.Digest{},
	}
}

// Run records until ctx ends; what is in a transaction then is finished.
func (r *Recorder) Run(ctx context.Context) error {
	sub, err := r.c.Bus.Conn().QueueSubscribe(protocol.SubjectReport+".*.*.*", group, func(m *nats.Msg) {
		r.take(messageOfBus(m.Subject, m.Header, m.Data))
	})
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "listen for reports")
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { r.work(ctx) })
	}
	r.sweeps(ctx)
	// The connection may be closed already; then so is the subscription.
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		r.c.Log.Debug("unsubscribe", "error", err)
	}
	running.Wait()
	return nil
}

// sweeps reads all last values at the start and then now and then.
func (r *Recorder) sweeps(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		if err := r.sweep(ctx); err != nil && ctx.Err() == nil {
			r.c.Log.DebugContext(ctx, "cannot read the last reports; executors repeat them", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// sweep puts the last value of every subject of REPORTS into the queue.
func (r *Recorder) sweep(ctx context.Context) error {
	stream, err := r.c.Bus.Stream(ctx, protocol.StreamReports)
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(protocol.SubjectReport+".>"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		r.take(messageOfBus(subject, m.Header, m.Data))
	}
	return nil
}

func (r *Recorder) work(ctx context.Context) {
	for {
		it, ok := r.queue.take(ctx)
		if !ok {
			return
		}
		// What has begun is finished though ctx ends.
		record := r.Record
		if it.proven {
			record = r.read
		}
		err := record(context.WithoutCancel(ctx), it.Message)
		r.logProblem(it.logKey(), err)
		switch {
		case err == nil:
			r.queue.done(it)
		case errs.Is(err, errs.NotFound) && it.tries >= unknownTries, errs.Is(err, errs.Invalid),
			errs.Is(err, errs.Forbidden), errs.Is(err, errs.TooLarge):
			r.queue.done(it)
		default:
			r.queue.retry(it)
		}
	}
}

// logProblem logs a problem with a report when it begins or changes.
func (r *Recorder) logProblem(of string, err error) {
	switch {
	case err == nil:
		r.logged.forget(of)
	case r.logged.isNew(of, err.Error()):
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

// Record records one report. It may be called with the same report any number of times. A report that
// cannot be read, or that is about something else than its subject names, is errs.Invalid; one of a cluster that
// is not registered (yet) is errs.NotFound; one that no registered session signed, or that claims an epoch that was
// never registered, or a position that the hub never published, is errs.Forbidden.
func (r *Recorder) Record(ctx context.Context, m Message) error {
	if err := r.keyring.prove(ctx, m); err != nil {
		return err
	}
	return r.read(ctx, m)
}

// read records a report whose sender is proved.
func (r *Recorder) read(ctx context.Context, m Message) error {
	data, err := record.SanitizeJSON(m.Data)
	if err != nil {
		return err
	}
	if strings.HasSuffix(m.Subject, "."+protocol.ClusterToken) {
		return r.readCluster(ctx, m, data)
	}
	return r.readScope(ctx, m, data)
}

func (r *Recorder) readCluster(ctx context.Context, m Message, data []byte) error {
	var report protocol.ClusterReport
	if err := json.Unmarshal(data, &report); err != nil {
		return errs.Wrap(errs.Invalid, err, "read the report %s", m.Subject)
	}
	if protocol.ClusterReportSubject(report.Tenant, report.ClusterID) != m.Subject {
		return errs.New(errs.Invalid, "the report %s is about cluster %s", m.Subject, report.ClusterID)
	}
	if report.Session != m.Session {
		return errs.New(errs.Invalid, "the report %s names another session than its message", m.Subject)
	}
	same := report
	same.Reported, same.Sequence = time.Time{}, 0
	report = record.SanitizeCluster(report, r.c.Now())
	return r.skipUnchanged(m.Subject, same,
		func() error { return touchHolder(ctx, r.c.Pool, report) },
		func(sum digest.Digest) (bool, error) { return r.recordCluster(ctx, report, sum) })
}

func (r *Recorder) readScope(ctx context.Context, m Message, data []byte) error {
	var report protocol.ScopeReport
	if err := json.Unmarshal(data, &report); err != nil {
		return errs.Wrap(errs.Invalid, err, "read the report %s", m.Subject)
	}
	if protocol.ScopeReportSubject(report.Scope) != m.Subject {
		return errs.New(errs.Invalid, "the report %s is about %s/%s", m.Subject, report.Scope.ClusterID,
			report.Scope.Namespace)
	}
	if report.Session != m.Session {
		return errs.New(errs.Invalid, "the report %s names another session than its message", m.Subject)
	}
	if !record.IsObjectName(report.Scope.Namespace) {
		return errs.New(errs.Invalid, "the report %s is about namespace %.60q, which is not a valid name", m.Subject,
			report.Scope.Namespace)
	}
	same := report
	same.Reported, same.Sequence = time.Time{}, 0
	report, refused := record.Sanitize(report, r.c.Now())
	if refused != nil {
		r.logRefused(report.Scope, "names", refused)
	}
	return r.skipUnchanged(m.Subject, same,
		func() error { return nil }, // the cluster's own report shows that the holder is alive
		func(sum digest.Digest) (bool, error) { return r.recordScope(ctx, report, sum) })
}

// reportType is the type prefix of a report's digest.
const reportType = "chandler.report.v1"

// skipUnchanged calls again for a report that equals the last one, and fn for others. fn reports whether the same
// report can add nothing later (settled).
func (r *Recorder) skipUnchanged(subject string, report any,
	again func() error, fn func(sum digest.Digest) (settled bool, err error),
) error {
	sum, err := digest.JSON(reportType, report)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "digest of the report %s", subject)
	}
	r.mu.Lock()
	same := r.done[subject] == sum
	r.mu.Unlock()
	if same {
		return again()
	}
	var settled bool
	for range conflictTries {
		if settled, err = fn(sum); !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.AlreadyExists) {
			break
		}
	}
	if err != nil || !settled {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[subject] = sum
	return nil
}
