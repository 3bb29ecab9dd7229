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
	// reportRetry is the wait after a write that failed.
	reportRetry = time.Second
	// messageSlack is left in a message for what stands around a report, and for its time.
	messageSlack = 4 << 10
)

// Reporter writes reports beside the work: on each change, again every so often, and until they are
// accepted. Only the newest of each subject counts.
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
	sent    map[string]string
	changed chan struct{}
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
		changed: make(chan struct{}, 1),
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
	for {
		all := false
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
		case <-again.C:
			all = true
		}
		if !r.flush(ctx, all) {
			r.wakeLater(ctx)
		}
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
}

// Silence forgets every report: somebody else holds the cluster and speaks for it.
func (r *Reporter) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.scopes)
	clear(r.fits)
	clear(r.sent)
	r.whole = nil
}

// flush writes what changed, or all; false when something was not accepted.
func (r *Reporter) flush(ctx context.Context, all bool) bool {
	limit := r.limit()
	r.mu.Lock()
	scopes := make([]fitting, 0, len(r.scopes))
	for _, ns := range slices.Sorted(maps.Keys(r.scopes)) {
		scopes = append(scopes, r.fitting(ns, limit))
	}
	whole := r.whole
	r.mu.Unlock()
	ok := true
	if whole != nil {
		report := *whole
		text, err := json.Marshal(report)
		ok = r.say(ctx, all, clusterKey, string(text), err, func(ctx context.Context) error {
			report.Reported = r.now().UTC()
			return r.hub.ReportCluster(ctx, report)
		})
	}
	for _, f := range scopes {
		ok = r.say(ctx, all, f.report.Scope.Namespace, f.text, f.err, func(ctx context.Context) error {
			f.report.Reported = r.now().UTC()
			return r.hub.ReportScope(ctx, f.report)
		}) && ok
	}
	return ok
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

// say sends what was not said already, or all. What cannot be sent as it is, is reported and waits until it changes.
func (r *Reporter) say(ctx context.Context, all bool, key, text string, broken error,
	send func(context.Context) error,
) bool {
	r.mu.Lock()
	same := r.sent[key] == text
	r.mu.Unlock()
	if same && (!all || broken != nil) || ctx.Err() != nil {
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
