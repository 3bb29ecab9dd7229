package hubclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// reportTimeout bounds one write, so that a hub that is away does not hold up the rest.
	reportTimeout = 5 * time.Second
	// reportRest is the least time between two writes of what changed: a plan changes much within a moment, and reports
	// have whole histories, so that one says what many would have said. What changes after a quiet time is written at
	// once. Each report costs the hub a transaction of some twenty statements.
	reportRest = 200 * time.Millisecond
	// reportRetry is the wait after a write that failed.
	reportRetry = time.Second
	// factsAgain is how often the report of a cluster has its facts though nothing changes: with the APIs that it
	// serves they are some KiB, and a heartbeat is to be small. A recorder that was away when they changed learns of
	// them so.
	factsAgain = 5 * time.Minute
	// messageSlack is left in a message for what stands around a report, and for its time.
	messageSlack = 4 << 10
)

// Reporter writes reports beside the work: on each change, and until they are accepted. Only the newest of each subject
// counts. What does not change is not written again: instead the report of the cluster, which is written every so
// often, has a digest over the newest reports that were accepted. Where the hub has others it reads them, or asks for
// all.
type Reporter struct {
	hub    *Hub
	log    *slog.Logger
	resend time.Duration
	now    func() time.Time

	mu     sync.Mutex
	scopes map[string]protocol.ScopeReport // by namespace, that were reported
	fits   map[string]fitting              // by namespace: what is sent of those that did not change since
	whole  *protocol.ClusterReport
	// what was last accepted, or is not sent again before it changes, by key, without its time
	sent map[string]string
	// accepted has the newest report of each namespace that was accepted, whatever is to be sent since.
	accepted map[string]protocol.Entry
	repeated time.Time // when all were last written again because the hub asked for them
	facts    time.Time // when the facts of the cluster were last accepted
	changed  chan struct{}
	beats    chan struct{} // holds one element where the report of the cluster is to be written now
}

// fitting is a report as it is sent, without its time.
type fitting struct {
	report protocol.ScopeReport
	text   string // its digest
	err    error
}

// clusterKey is the key of the cluster's own report; no namespace has a slash.
const clusterKey = "/cluster"

// NewReporter returns one that writes nothing before Run.
func NewReporter(h *Hub, log *slog.Logger, resend time.Duration, now func() time.Time) *Reporter {
	return &Reporter{
		hub: h, log: log, resend: resend, now: now,
		scopes: map[string]protocol.ScopeReport{}, fits: map[string]fitting{}, sent: map[string]string{},
		accepted: map[string]protocol.Entry{}, changed: make(chan struct{}, 1), beats: make(chan struct{}, 1),
	}
}

// set replaces the report of a scope; the lock is held.
func (r *Reporter) set(report protocol.ScopeReport) {
	r.scopes[report.Scope.Namespace] = report
	delete(r.fits, report.Scope.Namespace)
}

// Scope takes the newest report of a scope.
func (r *Reporter) Scope(report protocol.ScopeReport) {
	r.mu.Lock()
	r.set(report)
	r.mu.Unlock()
	r.wake()
}

// Cluster takes the newest report of the cluster.
func (r *Reporter) Cluster(report protocol.ClusterReport) {
	shorten(&report.Message, maxText)
	report.HeartbeatSeconds = int(r.resend / time.Second)
	r.mu.Lock()
	r.whole = &report
	r.mu.Unlock()
	r.wake()
}

// Begun puts what is certain of plans that are begun into the last report of a scope; the rest of it stays
// until the next whole report.
func (r *Reporter) Begun(fresh protocol.ScopeReport) {
	r.mu.Lock()
	last := r.scopes[fresh.Scope.Namespace]
	for _, reported := range last.Plans {
		if !slices.ContainsFunc(fresh.Plans, func(p protocol.PlanReport) bool { return p.ID == reported.ID }) {
			fresh.Plans = append(fresh.Plans, reported)
		}
	}
	fresh.CSVs = last.CSVs
	r.set(fresh)
	r.mu.Unlock()
	r.wake()
}

// Block is why nothing of a scope goes on.
type Block struct {
	Class   string // as in protocol.PlanReport
	Reason  string
	Message string
}

// Blocked changes in the last report of a scope only what cannot be known now: plans that have not
// ended wait for b. Plans that were begun and are not asked for stay as they were reported.
// What was reported of ClusterServiceVersions stays true as far as anybody knows.
func (r *Reporter) Blocked(p protocol.ScopePlans, epoch int64, b Block) {
	r.mu.Lock()
	report, ok := r.scopes[p.Scope.Namespace]
	if !ok {
		report = protocol.ScopeReport{Scope: p.Scope, Epoch: epoch}
	}
	reported := report.Plans
	report.Plans = nil
	for _, plan := range p.Plans {
		one := protocol.PlanReport{ID: plan.ID, Steps: CountSteps(plan), TraceParent: plan.TraceParent}
		if i := slices.IndexFunc(reported, func(t protocol.PlanReport) bool { return t.ID == plan.ID }); i >= 0 {
			one = reported[i]
		}
		if one.Phase != protocol.PlanFinished && one.Phase != protocol.PlanFailed {
			one.Phase, one.Class, one.Reason, one.Message = protocol.PlanBlocked, b.Class, b.Reason, b.Message
		}
		report.Plans = append(report.Plans, one)
	}
	for _, one := range reported {
		if one.Begun && !slices.ContainsFunc(p.Plans, func(plan protocol.Plan) bool { return plan.ID == one.ID }) {
			report.Plans = append(report.Plans, one)
		}
	}
	r.set(report)
	r.mu.Unlock()
	r.wake()
}

func (r *Reporter) wake() {
	select {
	case r.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// Run writes until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	again := time.NewTicker(r.resend)
	defer again.Stop()
	var wrote time.Time
	for {
		beat := false
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			if !restFor(ctx, time.Until(wrote.Add(reportRest))) {
				return
			}
		case <-again.C:
			beat = true
		case <-r.beats:
			beat = true
		}
		wrote = time.Now()
		if !r.flush(ctx, beat) {
			r.wakeLater(ctx)
		}
	}
}

// Beat has the report of the cluster written now, whatever was said before: the hub was away.
func (r *Reporter) Beat() {
	select {
	case r.beats <- struct{}{}:
	default: // it will be
	}
}

// restFor waits for d, and returns false where ctx ends before.
func restFor(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// wakeLater waits, so that a hub that is away is not asked without a break.
func (r *Reporter) wakeLater(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(reportRetry):
	}
	r.wake()
}

// Forget drops what was reported of a namespace that nobody wants anything of.
func (r *Reporter) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.scopes, namespace)
	delete(r.fits, namespace)
	delete(r.sent, namespace)
	delete(r.accepted, namespace)
}

// Repeat has all reports written again, at most once in the time between two reports of the cluster: the hub lacks some
// and cannot read them.
func (r *Reporter) Repeat() {
	r.mu.Lock()
	if now := r.now(); now.Sub(r.repeated) >= r.resend || now.Before(r.repeated) {
		r.repeated = now
		clear(r.sent)
	}
	r.mu.Unlock()
	r.wake()
}

// acceptedSet is the digest over what was accepted; the lock is held.
func (r *Reporter) acceptedSet() *protocol.ReportSet {
	s := &protocol.ReportSet{}
	for _, e := range r.accepted {
		s.Add(e)
	}
	return s
}

// Silence forgets every report: somebody else holds the cluster and speaks for it.
func (r *Reporter) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.scopes)
	clear(r.fits)
	clear(r.sent)
	clear(r.accepted)
	r.whole = nil
}

// flush writes what changed; with beat the report of the cluster as well. It is false when something was not accepted.
// The cluster's report comes first, with the digest over what was accepted before: it waits for no other one.
func (r *Reporter) flush(ctx context.Context, beat bool) bool {
	limit := r.limit()
	r.mu.Lock()
	scopes := make([]fitting, 0, len(r.scopes))
	for _, ns := range slices.Sorted(maps.Keys(r.scopes)) {
		scopes = append(scopes, r.fitting(ns, limit))
	}
	whole, accepted, facts := r.whole, r.acceptedSet(), r.facts
	r.mu.Unlock()
	ok := true
	if whole != nil {
		report := *whole
		text, err := json.Marshal(report) // without the digest: what changes in a namespace is no change of the cluster
		ok = r.say(ctx, beat, clusterKey, string(text), err, func(ctx context.Context) error {
			report.Reported, report.Scopes = r.now().UTC(), accepted
			if beat && r.said(clusterKey, string(text)) && r.now().Sub(facts) < factsAgain {
				report.Facts, report.APIs = nil, nil
				return r.hub.ReportCluster(ctx, report)
			}
			err := r.hub.ReportCluster(ctx, report)
			if err == nil {
				r.mu.Lock()
				r.facts = r.now()
				r.mu.Unlock()
			}
			return err
		})
	}
	for _, f := range scopes {
		namespace := f.report.Scope.Namespace
		ok = r.say(ctx, false, namespace, f.text, f.err, func(ctx context.Context) error {
			f.report.Reported = r.now().UTC()
			entry, err := r.hub.ReportScope(ctx, f.report)
			if err == nil {
				r.accept(namespace, entry)
			}
			return err
		}) && ok
	}
	return ok
}

// accept remembers what the stream has of a namespace that is still reported of.
func (r *Reporter) accept(namespace string, e protocol.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.scopes[namespace]; there {
		r.accepted[namespace] = e
	}
}

// limit is how many bytes a report may have.
func (r *Reporter) limit() int {
	most := maxPlansBytes
	if r.hub != nil {
		most = r.hub.maxMessage()
	}
	return most - messageSlack
}

// fitting is what is sent of a scope, made once for each report; the lock is held.
func (r *Reporter) fitting(namespace string, limit int) fitting {
	f, ok := r.fits[namespace]
	if ok {
		return f
	}
	report, text, err := fit(r.scopes[namespace], limit)
	f = fitting{report: report, text: string(digest.Bytes(text)), err: err}
	if report.Cut != (protocol.Cut{}) && err == nil {
		r.log.Warn("a report is too large, or says something too long, and goes without a part", "namespace", namespace,
			"bytes", len(text), "without", report.Cut)
	}
	r.fits[namespace] = f
	return f
}

// said reports whether just this was accepted last.
func (r *Reporter) said(key, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[key] == text
}

// say sends what was not said already, or, with again, all the same. What cannot be sent as it is, is reported and
// waits until it changes.
func (r *Reporter) say(ctx context.Context, again bool, key, text string, broken error,
	send func(context.Context) error,
) bool {
	same := r.said(key, text)
	if same && (!again || broken != nil) || ctx.Err() != nil {
		return true
	}
	err := broken
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, reportTimeout)
		defer cancel()
		err = send(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.sent[key] = text
	case broken == nil && errs.Is(err, errs.TooLarge): // the server takes less than it did
		delete(r.fits, key)
		delete(r.sent, key)
		return false
	case broken != nil:
		r.sent[key] = text
		r.log.ErrorContext(ctx, "a report cannot be sent; the hub does not learn of this before it changes", "of", key,
			"error", err)
	default:
		r.log.DebugContext(ctx, "report was not accepted", "of", key, "error", err)
		delete(r.sent, key)
		return false
	}
	return true
}

// CountSteps reads the number of steps without reading them all.
func CountSteps(p protocol.Plan) int {
	var d struct {
		Steps []json.RawMessage `json:"steps"`
	}
	if json.Unmarshal(p.Document, &d) != nil {
		return 0
	}
	return len(d.Steps)
}
