package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// Reasons of catalog.load-failed.v1.
const (
	reasonUnreadable = "SourceUnreadable"
	reasonUnsigned   = "Unsigned"
	reasonInvalid    = "InvalidCatalog"
	reasonTooLarge   = "TooLarge"
	reasonTemplate   = "TemplateUnresolved"
)

// Reasons in the status of a catalog (R-CAT §1.11, status).
const (
	statusSpec      = "SpecInvalidError"
	statusConfigMap = "ConfigMapError"
	statusServer    = "RegistryServerError"
)

const (
	// finishTries is how often an outcome is recorded again when intents of the same catalog come in
	// between; past it the lane's back-off takes over.
	finishTries = 5
	// restlessAttempts is after how many polls in vain, a minute in sum, a directory that is written to all
	// the time is taken as it is.
	restlessAttempts = 7
	// silentAttempts is after how many polls in vain, some seconds in sum, a catalog that has never been
	// served is reported as failed: a registry that is being started is no news.
	silentAttempts = 3
)

// poller polls the source of one catalog and records what came of it.
type poller struct {
	pool   *pg.Pool
	store  *store.Store
	lanes  *bus.Lanes // where new variants are marked
	open   func(tenant string) sources
	loader *loader
	// poll and remotePoll are the standard intervals of sources in the file system, and of all others.
	poll, remotePoll time.Duration
	// published is called after a revision was published.
	published func()
	count     *metrics
	log       *slog.Logger
	now       func() time.Time
}

// polling is one poll of one variant of a catalog.
type polling struct {
	catalog  store.Catalog
	settings source.Settings // with the image that a template resolves to
	from     sources
	attempts int
	lane     bus.Lane
	began    time.Time
	out      store.Outcome
}

// pollScope polls one catalog's source and records the outcome. It may be run again at any time.
func (r *poller) pollScope(ctx context.Context, s bus.Scope) (err error) {
	c, err := r.store.Catalogs.Get(ctx, keyOf(s))
	if errs.Is(err, errs.NotFound) || err == nil && (c.Removed || c.Disabled) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, end := telemetry.Span(telemetry.WithTraceParent(ctx, s.TraceParent), "index catalog")
	defer func() { end(err) }()
	p := &polling{catalog: c, from: r.open(c.Tenant), attempts: s.Attempts, lane: s.Lane, began: r.now()}
	p.out = store.Outcome{Catalog: c, Wanted: c.Wanted, Meta: events.Meta{
		Tenant: c.Tenant, Source: events.Indexer, Correlation: s.Cause, Causation: s.Cause,
		TraceParent: telemetry.TraceParent(ctx), Time: p.began,
	}}
	found, err := r.prepare(ctx, p)
	if err != nil || !found {
		return err
	}
	return r.visit(ctx, p)
}

// prepare reads the settings and finds out which reference is meant. It is false where there is nothing
// further to read.
func (r *poller) prepare(ctx context.Context, p *polling) (bool, error) {
	settings, err := r.store.Catalogs.Settings(ctx, p.catalog)
	switch {
	case errs.Is(err, errs.NotFound), errs.Is(err, errs.Invalid):
		return false, r.refuse(ctx, p, reasonUnreadable, err)
	case bodies.Unopened(err):
		return false, r.trouble(ctx, p, err) // says so, and tries again
	case err != nil:
		return false, err
	}
	p.settings = settings
	r.schedule(p.catalog.SourceType, settings, &p.out.Report)
	return r.choose(ctx, p)
}

// schedule says when a source is polled again by itself (R-CAT-95); never is the zero time. An
// interval that cannot be used is replaced and reported (R-CAT-96).
func (r *poller) schedule(t source.Type, s source.Settings, out *store.Report) {
	standard := r.remotePoll
	if s.URL == "" && s.Path != "" {
		standard = r.poll
	}
	if s.Image != "" && strings.Contains(s.Image, "@") && t == source.Image {
		standard = 0 // a digest never means something else
	}
	interval, replaced := source.PollInterval(s.Poll, standard)
	if replaced {
		out.Error = "poll interval " + s.Poll + " cannot be used; " + interval.String() + " is used instead"
		out.ErrorReason = source.ReasonInvalidInterval
	}
	out.NextPoll = time.Time{}
	if interval > 0 {
		out.NextPoll = r.now().Add(interval)
	}
}

// visit asks the source whether there is something new, and takes it if so.
func (r *poller) visit(ctx context.Context, p *polling) error {
	if err := r.store.Outcomes.Connecting(ctx, p.catalog.Key); err != nil {
		return err
	}
	probe, err := p.from.Probe(ctx, p.catalog.SourceType, p.settings)
	if err != nil {
		return r.trouble(ctx, p, err)
	}
	p.out.Report.Connected = true
	if p.seen(probe) {
		return r.store.Outcomes.Seen(ctx, p.catalog.Key, p.out.Report)
	}
	tree, err := p.from.Open(ctx, p.catalog.SourceType, p.settings)
	if err != nil {
		p.out.Report.Connected = false
		return r.trouble(ctx, p, err)
	}
	return closed(r.take(ctx, p, tree), tree)
}

// seen says whether the last poll that came to an end found the same.
func (p *polling) seen(probe fetch.Probe) bool {
	c := p.catalog
	return probe.Fingerprint != "" && probe.Fingerprint == c.Fingerprint && c.Polled >= c.Wanted
}

func closed(err error, tree *fetch.Tree) error {
	if cerr := tree.Close(); err == nil {
		return cerr
	}
	return err
}

// take reads what the source holds and records the outcome.
func (r *poller) take(ctx context.Context, p *polling, tree *fetch.Tree) error {
	p.out.Fingerprint, p.out.Report.Resolved = tree.Fingerprint, tree.Resolved
	err := r.record(ctx, p, tree)
	if err != nil && store.Unstorable(err) {
		err = r.unstorable(ctx, p, err)
	}
	if err != nil {
		return err
	}
	r.report(ctx, p.out, r.now().Sub(p.began))
	if p.out.Published != nil {
		r.published()
	}
	return nil
}

// record loads what the source holds and records what came of it.
func (r *poller) record(ctx context.Context, p *polling, tree *fetch.Tree) error {
	if err := r.loader.load(ctx, p, tree.FS); err != nil {
		return err
	}
	// Half of a new revision is neither the old nor the new one. A directory that never rests is taken as it
	// is after a few attempts.
	if err := tree.Settled(ctx); err != nil && (p.attempts < restlessAttempts || !errs.Is(err, errs.Unavailable)) {
		return err
	}
	return r.finish(ctx, p.out)
}

// unstorable makes an outcome that cannot be stored a failure that its owner sees, recorded once: every further
// poll of the same content would come to the same end.
func (r *poller) unstorable(ctx context.Context, p *polling, cause error) error {
	out := &p.out
	out.Published, out.Report.Quarantined = nil, nil
	reason, kind := reasonInvalid, errs.Invalid
	if errs.Is(cause, errs.TooLarge) {
		reason, kind = reasonTooLarge, errs.TooLarge
	}
	f := catalog.Findings{{
		Rule: "R-CAT-43", Severity: catalog.SeverityError,
		Message: "what the catalog holds cannot be stored: " + cause.Error() +
			"; names must be UTF-8 without the character NUL and have at most some hundred bytes",
	}}
	out.Report.Severities = severities(f)
	// Which of several faults is met first, may be another one each time.
	if err := r.loader.fail(ctx, p, reason, "unstorable: "+string(kind), f); err != nil {
		return err
	}
	return r.finish(ctx, *out)
}

// trouble decides what a source that cannot be read comes to:
//
//	no answer, or the network's or a server's own fault → seen in the status, tried again with back-off;
//	                                                      what is in service stays, and no event is appended
//	nothing in service after some attempts              → recorded once as failed, tried again
//	anything else                                       → its owner has to correct it: recorded once as failed
func (r *poller) trouble(ctx context.Context, p *polling, cause error) error {
	if ctx.Err() != nil {
		return cause // the service stops, or the claim is lost
	}
	if !transient(cause) {
		return r.refuse(ctx, p, reasonUnreadable, cause)
	}
	p.out.Report.Error, p.out.Report.ErrorReason = cause.Error(), p.statusReason(cause)
	if err := r.store.Outcomes.Unreachable(ctx, p.catalog.Key, p.out.Report, reasonUnreadable); err != nil {
		return err
	}
	if c := p.catalog; c.Revision == "" && c.FailedInput == "" && p.attempts+1 >= silentAttempts {
		if err := r.refuse(ctx, p, reasonUnreadable, cause); err != nil {
			return err
		}
	}
	return cause
}

// transient says whether a source may be in order without anybody correcting it.
func transient(err error) bool { return errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Internal) }

func (p *polling) statusReason(err error) string {
	switch {
	case errs.Is(err, errs.Invalid):
		return statusSpec
	case p.catalog.SourceType == source.ConfigMap:
		return statusConfigMap
	default:
		return statusServer
	}
}

// refuse records that the source cannot be read at all.
func (r *poller) refuse(ctx context.Context, p *polling, reason string, cause error) error {
	out := &p.out
	out.Report.Connected = false
	out.Report.Error, out.Report.ErrorReason = cause.Error(), p.statusReason(cause)
	switch {
	case errs.Is(cause, errs.TooLarge):
		reason = reasonTooLarge
	case errors.Is(cause, oci.ErrUnsigned):
		reason = reasonUnsigned
	}
	if out.Report.NextPoll.IsZero() && p.settings.Poll == "" {
		// what a digest names may appear, though it never changes
		out.Report.NextPoll = r.now().Add(source.FallbackPoll)
	}
	// What the attempts of an hour have in common; their texts may differ in an address or a time.
	said := cause.Error()
	if transient(cause) {
		said = string(errs.Unavailable)
	}
	out.Fingerprint = string(digest.Bytes([]byte("unreadable: " + said)))
	if out.Fingerprint == p.catalog.Fingerprint && p.catalog.Polled >= p.catalog.Wanted {
		return r.store.Outcomes.Seen(ctx, p.catalog.Key, out.Report)
	}
	f := catalog.Findings{{Rule: "R-CAT-43", Severity: catalog.SeverityError, Message: cause.Error()}}
	if err := r.loader.fail(ctx, p, reason, said, f); err != nil {
		return err
	}
	if err := r.finish(ctx, *out); err != nil {
		return err
	}
	r.report(ctx, *out, 0)
	return nil
}

// finish records the outcome, trying again where an intent of the same catalog came first.
func (r *poller) finish(ctx context.Context, out store.Outcome) error {
	for try := 1; ; try++ {
		written, err := r.store.Outcomes.Finish(ctx, out)
		switch {
		case err == nil && written:
			return nil
		case err == nil:
			return errs.New(errs.Conflict, "catalog %s changed while it was polled; polling it again",
				out.Catalog.Subject)
		case !errs.Is(err, errs.Conflict) || try == finishTries:
			return err
		}
	}
}

func (r *poller) report(ctx context.Context, out store.Outcome, took time.Duration) {
	log := r.log.With("catalog", out.Catalog.Subject, "took", took.Round(time.Millisecond).String())
	if out.Catalog.Variant != "" {
		log = log.With("kubernetes", out.Catalog.Variant)
	}
	switch {
	case out.Failed != nil:
		r.count.polled(ctx, out.Catalog.Key, "failed", took)
		log.WarnContext(ctx, "catalog cannot be served; the revision before stays", "reason", out.Failed.Reason,
			"errors", out.Failed.Findings, "first", out.Message)
	case out.Published.Revision != out.Catalog.Revision:
		r.count.polled(ctx, out.Catalog.Key, "published", took)
		log.InfoContext(ctx, "new catalog revision", "revision", out.Published.Revision.Short(), "packages",
			len(out.Published.Packages),
			"bundles", out.Published.Bundles, "changed", len(out.Published.Event.Changes), "quarantined",
			len(out.Report.Quarantined))
	default:
		r.count.polled(ctx, out.Catalog.Key, "unchanged", took)
		log.DebugContext(ctx, "catalog is as it was", "revision", out.Published.Revision.Short())
	}
}
