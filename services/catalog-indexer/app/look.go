package app

import (
	"context"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// Reasons of catalog.load-failed.v1.
const (
	reasonUnreadable = "SourceUnreadable"
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
	// restlessAttempts is after how many looks in vain, a minute in sum, a directory that is written to all
	// the time is taken as it is.
	restlessAttempts = 7
	// silentAttempts is after how many looks in vain, some seconds in sum, a catalog that has never been
	// served is told of as failed: a registry that is being started is no news.
	silentAttempts = 3
)

// looking is one look at one variant of a catalog.
type looking struct {
	catalog  store.Catalog
	settings source.Settings // with the image that a template resolves to
	from     sources
	attempts int
	lane     bus.Lane
	began    time.Time
	out      store.Look
}

// look looks at one catalog's source and records the outcome. It may be run again at any time.
func (a *App) look(ctx context.Context, s bus.Scope) (err error) {
	c, err := a.store.Get(ctx, keyOf(s))
	if errs.Is(err, errs.NotFound) || err == nil && (c.Removed || c.Disabled) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, end := telemetry.Span(telemetry.WithTraceParent(ctx, s.TraceParent), "index catalog")
	defer func() { end(err) }()
	l := &looking{catalog: c, from: a.open(c.Tenant), attempts: s.Attempts, lane: s.Lane, began: a.now()}
	l.out = store.Look{Catalog: c, Wanted: c.Wanted, Meta: events.Meta{
		Tenant: c.Tenant, Source: events.Indexer, Correlation: s.Cause, Causation: s.Cause,
		TraceParent: telemetry.TraceParent(ctx), Time: l.began,
	}}
	found, err := a.prepare(ctx, l)
	if err != nil || !found {
		return err
	}
	return a.visit(ctx, l)
}

// prepare reads the settings and finds out which reference is meant. It is false where there is nothing
// further to look at.
func (a *App) prepare(ctx context.Context, l *looking) (bool, error) {
	settings, err := a.store.Settings(ctx, l.catalog)
	switch {
	case errs.Is(err, errs.NotFound), errs.Is(err, errs.Invalid):
		return false, a.refuse(ctx, l, reasonUnreadable, err)
	case err != nil:
		return false, err
	}
	l.settings = settings
	a.schedule(l.catalog.SourceType, settings, &l.out.Report)
	return a.choose(ctx, l)
}

// visit asks the source whether there is something new, and takes it if so.
func (a *App) visit(ctx context.Context, l *looking) error {
	if err := a.store.Connecting(ctx, l.catalog.Key); err != nil {
		return err
	}
	probe, err := l.from.Probe(ctx, l.catalog.SourceType, l.settings)
	if err != nil {
		return a.trouble(ctx, l, err)
	}
	l.out.Report.Connected = true
	if l.seen(probe) {
		return a.store.Seen(ctx, l.catalog.Key, l.out.Report)
	}
	tree, err := l.from.Open(ctx, l.catalog.SourceType, l.settings)
	if err != nil {
		l.out.Report.Connected = false
		return a.trouble(ctx, l, err)
	}
	return closed(a.take(ctx, l, tree), tree)
}

// seen says whether the last look that came to an end found the same.
func (l *looking) seen(p fetch.Probe) bool {
	c := l.catalog
	return p.Fingerprint != "" && p.Fingerprint == c.Fingerprint && c.Looked >= c.Wanted
}

func closed(err error, tree *fetch.Tree) error {
	if cerr := tree.Close(); err == nil {
		return cerr
	}
	return err
}

// take reads what the source holds and records the outcome.
func (a *App) take(ctx context.Context, l *looking, tree *fetch.Tree) error {
	l.out.Fingerprint, l.out.Report.Resolved = tree.Fingerprint, tree.Resolved
	err := a.record(ctx, l, tree)
	if err != nil && store.Unstorable(err) {
		err = a.unstorable(ctx, l, err)
	}
	if err != nil {
		return err
	}
	a.tell(ctx, l.out, a.now().Sub(l.began))
	a.followUp(l.out)
	return nil
}

// record loads what the source holds and records what came of it.
func (a *App) record(ctx context.Context, l *looking, tree *fetch.Tree) error {
	if err := a.load(ctx, l, tree.FS); err != nil {
		return err
	}
	// Half of a new revision is neither the old nor the new one. A directory that never rests is taken as it
	// is after a few attempts.
	if err := tree.Settled(ctx); err != nil && (l.attempts < restlessAttempts || !errs.Is(err, errs.Unavailable)) {
		return err
	}
	return a.finish(ctx, l.out)
}

// unstorable makes an outcome that cannot be stored a failure that its owner sees, told once: every further
// look at the same content would come to the same end.
func (a *App) unstorable(ctx context.Context, l *looking, cause error) error {
	out := &l.out
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
	if err := a.fail(ctx, l, reason, "unstorable: "+string(kind), f); err != nil {
		return err
	}
	return a.finish(ctx, *out)
}

// followUp wakes what is computed from a revision that is in service already, and must not hold it up.
func (a *App) followUp(out store.Look) {
	if out.Published == nil {
		return
	}
	a.wakeUpgrades()
}

// wakeUpgrades says that there may be upgrades to compare.
func (a *App) wakeUpgrades() {
	select {
	case a.published <- struct{}{}:
	default: // awake already
	}
}

// trouble decides what a source that cannot be read comes to:
//
//	no answer, or the network's or a server's own fault → seen in the status, tried again with back-off;
//	                                                      what is in service stays, and no event tells of it
//	nothing in service after some attempts              → told once as failed, tried again
//	anything else                                       → its owner has to mend it: told once as failed
func (a *App) trouble(ctx context.Context, l *looking, cause error) error {
	if ctx.Err() != nil {
		return cause // the service stops, or the claim is lost
	}
	if !transient(cause) {
		return a.refuse(ctx, l, reasonUnreadable, cause)
	}
	l.out.Report.Error, l.out.Report.ErrorReason = cause.Error(), l.statusReason(cause)
	if err := a.store.Unreachable(ctx, l.catalog.Key, l.out.Report, reasonUnreadable); err != nil {
		return err
	}
	if c := l.catalog; c.Revision == "" && c.FailedInput == "" && l.attempts+1 >= silentAttempts {
		if err := a.refuse(ctx, l, reasonUnreadable, cause); err != nil {
			return err
		}
	}
	return cause
}

// transient says whether a source may be in order without anybody mending it.
func transient(err error) bool { return errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Internal) }

func (l *looking) statusReason(err error) string {
	switch {
	case errs.Is(err, errs.Invalid):
		return statusSpec
	case l.catalog.SourceType == source.ConfigMap:
		return statusConfigMap
	default:
		return statusServer
	}
}

// refuse records that the source cannot be read at all.
func (a *App) refuse(ctx context.Context, l *looking, reason string, cause error) error {
	out := &l.out
	out.Report.Connected = false
	out.Report.Error, out.Report.ErrorReason = cause.Error(), l.statusReason(cause)
	if errs.Is(cause, errs.TooLarge) {
		reason = reasonTooLarge
	}
	if out.Report.NextLook.IsZero() && l.settings.Poll == "" {
		// what a digest names may appear, though it never changes
		out.Report.NextLook = a.now().Add(source.FallbackPoll)
	}
	// What the attempts of an hour have in common; their texts may differ in an address or a time.
	said := cause.Error()
	if transient(cause) {
		said = string(errs.Unavailable)
	}
	out.Fingerprint = string(digest.Bytes([]byte("unreadable: " + said)))
	if out.Fingerprint == l.catalog.Fingerprint && l.catalog.Looked >= l.catalog.Wanted {
		return a.store.Seen(ctx, l.catalog.Key, out.Report)
	}
	f := catalog.Findings{{Rule: "R-CAT-43", Severity: catalog.SeverityError, Message: cause.Error()}}
	if err := a.fail(ctx, l, reason, said, f); err != nil {
		return err
	}
	if err := a.finish(ctx, *out); err != nil {
		return err
	}
	a.tell(ctx, *out, 0)
	return nil
}

// finish records the outcome, trying again where an intent of the same catalog came first.
func (a *App) finish(ctx context.Context, out store.Look) error {
	for try := 1; ; try++ {
		written, err := a.store.Finish(ctx, out)
		switch {
		case err == nil && written:
			return nil
		case err == nil:
			return errs.New(errs.Conflict, "catalog %s changed while it was looked at; looking again",
				out.Catalog.Subject)
		case !errs.Is(err, errs.Conflict) || try == finishTries:
			return err
		}
	}
}

func (a *App) tell(ctx context.Context, out store.Look, took time.Duration) {
	log := a.Telemetry.Log.With("catalog", out.Catalog.Subject, "took", took.Round(time.Millisecond).String())
	if out.Catalog.Variant != "" {
		log = log.With("kubernetes", out.Catalog.Variant)
	}
	switch {
	case out.Failed != nil:
		a.count.looked(ctx, out.Catalog.Key, "failed", took)
		log.WarnContext(ctx, "catalog cannot be served; the revision before stays", "reason", out.Failed.Reason,
			"errors", out.Failed.Findings, "first", out.Message)
	case out.Published.Revision != out.Catalog.Revision:
		a.count.looked(ctx, out.Catalog.Key, "published", took)
		log.InfoContext(ctx, "new catalog revision", "revision", out.Published.Revision.Short(), "packages",
			len(out.Published.Packages),
			"bundles", out.Published.Bundles, "changed", len(out.Published.Event.Changes), "quarantined",
			len(out.Report.Quarantined))
	default:
		a.count.looked(ctx, out.Catalog.Key, "unchanged", took)
		log.DebugContext(ctx, "catalog is as it was", "revision", out.Published.Revision.Short())
	}
}
