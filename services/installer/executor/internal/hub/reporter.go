package hub

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// reportTimeout bounds one write, so that a hub that is away does not hold up the rest.
	reportTimeout = 5 * time.Second
	// reportRetry is the wait after a write that failed.
	reportRetry = time.Second
)

// Reporter writes reports beside the work: on each change, again every so often, and until they are
// accepted. Only the newest of each subject counts.
type Reporter struct {
	hub    *Hub
	log    *slog.Logger
	resend time.Duration
	now    func() time.Time

	mu      sync.Mutex
	scopes  map[string]protocol.ScopeReport // by namespace
	whole   *protocol.ClusterReport
	said    map[string]string // what was last accepted, by key, without its time
	changed chan struct{}
}

// clusterKey is the key of the cluster's own report; no namespace has a slash.
const clusterKey = "/cluster"

// NewReporter returns one that writes nothing before Run.
func NewReporter(h *Hub, log *slog.Logger, resend time.Duration, now func() time.Time) *Reporter {
	return &Reporter{
		hub: h, log: log, resend: resend, now: now,
		scopes: map[string]protocol.ScopeReport{}, said: map[string]string{}, changed: make(chan struct{}, 1),
	}
}

// Scope takes the newest report of a scope.
func (r *Reporter) Scope(report protocol.ScopeReport) {
	r.mu.Lock()
	r.scopes[report.Scope.Namespace] = report
	r.mu.Unlock()
	r.wake()
}

// Cluster takes the newest report of the cluster.
func (r *Reporter) Cluster(report protocol.ClusterReport) {
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
	for _, told := range last.Plans {
		if !slices.ContainsFunc(fresh.Plans, func(p protocol.PlanReport) bool { return p.ID == told.ID }) {
			fresh.Plans = append(fresh.Plans, told)
		}
	}
	fresh.CSVs = last.CSVs
	r.scopes[fresh.Scope.Namespace] = fresh
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
// ended wait for b. Plans that were begun and are not asked for stay as they were told.
// What was told of ClusterServiceVersions stays true as far as anybody knows.
func (r *Reporter) Blocked(p protocol.ScopePlans, epoch int64, b Block) {
	r.mu.Lock()
	report, ok := r.scopes[p.Scope.Namespace]
	if !ok {
		report = protocol.ScopeReport{Scope: p.Scope, Epoch: epoch}
	}
	told := report.Plans
	report.Plans = nil
	for _, plan := range p.Plans {
		one := protocol.PlanReport{ID: plan.ID, Steps: CountSteps(plan), TraceParent: plan.TraceParent}
		if i := slices.IndexFunc(told, func(t protocol.PlanReport) bool { return t.ID == plan.ID }); i >= 0 {
			one = told[i]
		}
		if one.Phase != protocol.PlanFinished && one.Phase != protocol.PlanFailed {
			one.Phase, one.Class, one.Reason, one.Message = protocol.PlanBlocked, b.Class, b.Reason, b.Message
		}
		report.Plans = append(report.Plans, one)
	}
	for _, one := range told {
		if one.Begun && !slices.ContainsFunc(p.Plans, func(plan protocol.Plan) bool { return plan.ID == one.ID }) {
			report.Plans = append(report.Plans, one)
		}
	}
	r.scopes[p.Scope.Namespace] = report
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

// Silence forgets every report: somebody else holds the cluster and speaks for it.
func (r *Reporter) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.scopes)
	clear(r.said)
	r.whole = nil
}

// flush writes what changed, or all; false when something was not accepted.
func (r *Reporter) flush(ctx context.Context, all bool) bool {
	r.mu.Lock()
	scopes := make([]protocol.ScopeReport, 0, len(r.scopes))
	for _, ns := range slices.Sorted(maps.Keys(r.scopes)) {
		scopes = append(scopes, r.scopes[ns])
	}
	whole := r.whole
	r.mu.Unlock()
	ok := true
	if whole != nil {
		report := *whole
		ok = r.say(ctx, all, clusterKey, report, func(ctx context.Context) error {
			report.Reported = r.now().UTC()
			return r.hub.ReportCluster(ctx, report)
		})
	}
	for _, report := range scopes {
		ok = r.say(ctx, all, report.Scope.Namespace, report, func(ctx context.Context) error {
			report.Reported = r.now().UTC()
			return r.hub.ReportScope(ctx, report)
		}) && ok
	}
	return ok
}

func (r *Reporter) say(ctx context.Context, all bool, key string, report any, send func(context.Context) error) bool {
	text, err := json.Marshal(report)
	if err != nil {
		r.log.ErrorContext(ctx, "report cannot be encoded", "of", key, "error", err)
		return true
	}
	r.mu.Lock()
	same := r.said[key] == string(text)
	r.mu.Unlock()
	if same && !all || ctx.Err() != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if err := send(ctx); err != nil {
		r.log.DebugContext(ctx, "report was not accepted", "of", key, "error", err)
		r.mu.Lock()
		delete(r.said, key)
		r.mu.Unlock()
		return false
	}
	r.mu.Lock()
	r.said[key] = string(text)
	r.mu.Unlock()
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
