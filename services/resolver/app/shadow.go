package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/preview"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// shadow makes a page of recorded decisions again and lists what comes out differently (PEERS, capability 3). One
// decision at a time is in memory, and nothing is written.
func (p *previewer) shadow(ctx context.Context, question json.RawMessage) (any, error) {
	var q previewapi.ShadowQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	if q.Revision != "" && q.Policy != nil || (q.Catalog == "") != (q.Revision == "") {
		return nil, errs.New(errs.Invalid, "a shadow run takes a catalog revision or a policy, not both").At(
			"/catalog", "one-of")
	}
	if err := p.knownRevision(ctx, q); err != nil {
		return nil, err
	}
	list, next, err := p.recorded(ctx, q)
	if err != nil {
		return nil, err
	}
	page := previewapi.ShadowPage{Differences: []previewapi.ShadowDifference{}, Next: next}
	run := &shadowRun{previewer: p, q: q}
	for _, d := range list {
		diff, err := run.recompute(ctx, d)
		switch {
		case errs.Is(err, errs.NotFound): // retention took the record, or content that it names
			page.Missing++
		case err != nil:
			return nil, err
		case diff == nil:
			page.Same++
		default:
			page.Differences = append(page.Differences, *diff)
		}
	}
	return page, nil
}

// knownRevision refuses a run beside what is not there: every decision would come out the same, and a pipeline that
// misspells a catalog would pass for ever.
func (p *previewer) knownRevision(ctx context.Context, q previewapi.ShadowQuestion) error {
	if q.Revision == "" {
		return nil
	}
	if err := p.catchUp(ctx); err != nil { // who has just added the catalog asks about it
		return err
	}
	h, err := previewapi.NewHypothesis(q.Catalog, 0, events.CatalogRevisionPublished{Revision: q.Revision})
	if err != nil {
		return err
	}
	return p.store.Hypotheses.Known(ctx, q.Tenant, previewapi.Scope{Cluster: q.Cluster, Namespace: q.Namespace},
		"/catalog",
		[]previewapi.Hypothesis{h})
}

// recorded reads the decisions of one page, and where the next one begins.
func (p *previewer) recorded(ctx context.Context, q previewapi.ShadowQuestion) (
	list []store.Decided, next string, err error,
) {
	limit := min(cmp.Or(max(q.Limit, 0), previewapi.ShadowDecisions), previewapi.MaxShadowDecisions)
	narrow := store.DecisionFilter{Tenant: q.Tenant, Cluster: q.Cluster, Namespace: q.Namespace}
	if q.From != nil || q.To != nil {
		return p.recordedIn(ctx, q, narrow, limit)
	}
	var after [3]string
	if q.After != "" {
		parts := strings.Split(q.After, "/")
		if len(parts) != len(after) {
			return nil, "", errs.New(errs.Invalid, "the cursor is not one of this run").At("/cursor", "cursor")
		}
		copy(after[:], parts)
	}
	if list, err = p.store.History.Last(ctx, narrow, after, limit); err == nil && len(list) == limit {
		last := list[limit-1]
		next = last.Scope.Cluster + "/" + last.Scope.Namespace + "/" + last.Subscription
	}
	return list, next, err
}

// recordedIn reads from a range of the log; its cursor is a position.
func (p *previewer) recordedIn(ctx context.Context, q previewapi.ShadowQuestion, narrow store.DecisionFilter,
	limit int,
) (list []store.Decided, next string, err error) {
	var after, to events.Position
	if q.From != nil {
		after = *q.From
	}
	if q.After != "" {
		if after, err = events.ParsePosition(q.After); err != nil {
			return nil, "", errs.New(errs.Invalid, "the cursor is not one of this run: %v", err).At("/cursor", "cursor")
		}
	}
	if to, err = p.store.History.Head(ctx); err != nil {
		return nil, "", err
	}
	if q.To != nil && q.To.Less(to) {
		to = *q.To
	}
	list, at, scanned, err := p.store.History.After(ctx, narrow, after, limit)
	if err != nil {
		return nil, "", err
	}
	n := len(list)
	for n > 0 && to.Less(at[n-1]) {
		n--
	}
	if scanned.Less(to) {
		next = scanned.String()
	}
	return list[:n], next, nil
}

// shadowRun is one page of a run. It keeps what it read of the last scope: decisions come scope by scope.
type shadowRun struct {
	*previewer
	q  previewapi.ShadowQuestion
	at store.Loaded
}

// recompute makes a decision again; nil is no difference.
func (r *shadowRun) recompute(ctx context.Context, d store.Decided) (*previewapi.ShadowDifference, error) {
	record, err := r.store.Documents.Record(ctx, r.q.Tenant, d.Outcome.Input)
	if err != nil {
		return nil, err
	}
	out := &previewapi.ShadowDifference{
		Cluster: d.Scope.Cluster, Namespace: d.Scope.Namespace, Subscription: d.Subscription, Input: d.Outcome.Input,
		Semantics: record.Semantics,
	}
	var same bool
	switch {
	case r.q.Revision != "":
		same, err = r.besideRevision(ctx, d, record, out)
	case r.q.Policy != nil:
		same, err = r.besidePolicy(ctx, d, record, out)
	default:
		same, err = r.byThisBuild(ctx, d, record, out)
	}
	if err != nil || same {
		return nil, err
	}
	return out, nil
}

// byThisBuild compares what this build makes of the record, by the rules that it names, with what was recorded.
func (r *shadowRun) byThisBuild(ctx context.Context, d store.Decided, record resolution.Record,
	out *previewapi.ShadowDifference,
) (bool, error) {
	result, err := r.views.Recompute(ctx, r.q.Tenant, record)
	if err != nil {
		return false, err
	}
	var c resolution.Component
	if i := slices.IndexFunc(result.Components, func(c resolution.Component) bool {
		return slices.Contains(
			c.Subscriptions, d.Subscription)
	}); i >= 0 {
		c = result.Components[i]
	}
	explained, err := r.explained(ctx, d)
	if err != nil {
		return false, err
	}
	differences, err := decide.CompareOutcome(d.Outcome, explained, d.Subscription, c)
	if err != nil || len(differences) == 0 {
		return true, err
	}
	verdicts, err := decide.Assess(preview.RecordedState(record, nil, nil), result)
	if err != nil {
		return false, err
	}
	out.Before = preview.RecordedOutcome(d.Outcome, "")
	out.After, _ = preview.ShadowOutcome(verdicts, d.Subscription)
	for _, x := range differences {
		out.Why = append(out.Why, fmt.Sprintf("%s was %s, and is %s now", x.What, x.Recorded, x.Again))
	}
	return false, nil
}

func (r *shadowRun) explained(ctx context.Context, d store.Decided) (*resolution.Explanation, error) {
	if d.Outcome.Explanation == "" {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return r.store.Documents.Explanation(ctx, r.q.Tenant, d.Outcome.Explanation)
}

// scope reads the scope of a decision as it is now.
func (r *shadowRun) scope(ctx context.Context, s resolution.Scope) error {
	if r.at.Scope == s {
		return nil
	}
	l, err := r.store.Scopes.Load(ctx, r.q.Tenant, s)
	if err == nil {
		r.at = l
	}
	return err
}

// besideRevision puts a revision in the place of what a catalog offered then. Decisions that asked nothing of the
// catalog are the same.
func (r *shadowRun) besideRevision(ctx context.Context, d store.Decided, record resolution.Record,
	out *previewapi.ShadowDifference,
) (bool, error) {
	if err := r.scope(ctx, d.Scope); err != nil {
		return false, err
	}
	i := slices.IndexFunc(r.at.Catalogs, func(c decide.Catalog) bool { return c.Subject == r.q.Catalog })
	if i < 0 || !slices.ContainsFunc(record.Reads,
		func(x resolution.Read) bool { return x.Catalog == r.at.Catalogs[i].Key }) {
		return true, nil
	}
	catalogs := slices.Clone(r.at.Catalogs)
	catalogs[i].Revision, catalogs[i].Failed, catalogs[i].Reason = r.q.Revision, false, ""
	view := r.view(ctx, record, catalogs)
	view.instead = &catalogs[i]
	return r.compare(ctx, d, record, view, preview.RecordedState(record, r.at.Labels, r.at.Policies), out)
}

// besidePolicy puts an approval policy beside those of the record, and of today for what a record does not hold: who
// has to agree.
func (r *shadowRun) besidePolicy(ctx context.Context, d store.Decided, record resolution.Record,
	out *previewapi.ShadowDifference,
) (bool, error) {
	if err := r.scope(ctx, d.Scope); err != nil {
		return false, err
	}
	p := decide.Policy{Name: r.q.Policy.Name, Spec: r.q.Policy.Spec}
	policies := slices.DeleteFunc(slices.Clone(r.at.Policies), func(o decide.Policy) bool { return o.Name == p.Name })
	state := preview.RecordedState(record, r.at.Labels, append(policies, p))
	record.Policy.Bounds = preview.Bounds(record, p, r.at.Labels)
	return r.compare(ctx, d, record, r.view(ctx, record, r.at.Catalogs), state, out)
}

// compare resolves by the rules of this build, and compares with what was recorded.
func (r *shadowRun) compare(ctx context.Context, d store.Decided, record resolution.Record, view *shadowView,
	state decide.State, out *previewapi.ShadowDifference,
) (bool, error) {
	in := record.Input(view)
	in.Semantics = resolution.Semantics
	result := resolve.Resolve(in)
	if err := view.err(); err != nil {
		return false, err
	}
	var err error
	if state.PermissionGrowth, err = r.permissionGrowth(ctx, r.q.Tenant, state.Upgrades(result)); err != nil {
		return false, err
	}
	verdicts, err := decide.Assess(state, result)
	if err != nil {
		return false, err
	}
	approval, err := r.approvalOf(ctx, d)
	if err != nil {
		return false, err
	}
	out.Before, out.Later = preview.RecordedOutcome(d.Outcome, approval), view.later
	out.After, out.Why = preview.ShadowOutcome(verdicts, d.Subscription)
	if preview.SameOutcome(out.Before, out.After) {
		return true, nil
	}
	explained, err := r.explained(ctx, d)
	return explained != nil && explained.Class == resolution.ClassNotInstallable && plans(result, explained), err
}

// plans says whether a result still plans what could not be rendered then.
func plans(result resolution.Result, e *resolution.Explanation) bool {
	for _, c := range result.Components {
		for _, b := range c.Bundles {
			if slices.ContainsFunc(e.Statements,
				func(s resolution.Statement) bool { return s.Kind == resolution.NotInstallable && s.Bundle == b.CSV }) {
				return true
			}
		}
	}
	return false
}

// approvalOf is the mode of the plan of a decision; "" where there is none.
func (r *shadowRun) approvalOf(ctx context.Context, d store.Decided) (string, error) {
	if d.Outcome.Plan == "" {
		return "", nil
	}
	p, err := r.store.History.Plan(ctx, r.q.Tenant, d.Outcome.Plan)
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	return p.State.Proposed.Approval, err
}

// shadowView answers as a record does, but for a catalog that has another revision; what was not asked then, catalogs
// answer as they are now.
type shadowView struct {
	*catalogview.Replay
	now     *catalogview.View
	asked   map[resolution.Read]bool // without answers
	record  resolution.Record
	instead *decide.Catalog // nil for none
	later   bool            // an answer of now was given
}

var _ resolution.View = (*shadowView)(nil)

func (r *shadowRun) view(ctx context.Context, record resolution.Record, catalogs []decide.Catalog) *shadowView {
	v := &shadowView{
		Replay: r.views.Replay(ctx, r.q.Tenant, record), now: r.views.View(ctx, r.q.Tenant, visible(catalogs)),
		asked: map[resolution.Read]bool{}, record: record,
	}
	for _, x := range record.Reads {
		v.asked[resolution.Read{Kind: x.Kind, Catalog: x.Catalog, Name: x.Name}] = true
	}
	return v
}

func (v *shadowView) err() error { return cmp.Or(v.Err(), v.now.Err()) }

// then says whether the record answers.
func (v *shadowView) then(kind resolution.ReadKind, c resolution.CatalogKey, name string) bool {
	if v.instead != nil && v.instead.Key == c && kind != resolution.ReadImage {
		return false
	}
	if v.asked[resolution.Read{Kind: kind, Catalog: c, Name: name}] {
		return true
	}
	v.later = true
	return false
}

// Catalogs implements resolution.View.
func (v *shadowView) Catalogs() []resolution.Catalog {
	out := slices.Clone(v.record.Catalogs)
	for i := range out {
		if v.instead != nil && out[i].Key == v.instead.Key {
			out[i].Ready, out[i].Revision = true, v.instead.Revision
		}
	}
	return out
}

// Package implements resolution.View.
func (v *shadowView) Package(c resolution.CatalogKey, name string) *offer.Package {
	if v.then(resolution.ReadPackage, c, name) {
		return v.Replay.Package(c, name)
	}
	return v.now.Package(c, name)
}

// Providers implements resolution.View.
func (v *shadowView) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	if v.then(resolution.ReadAPI, c, resolution.APIName(api)) {
		return v.Replay.Providers(c, api)
	}
	return v.now.Providers(c, api)
}

// Packages implements resolution.View.
func (v *shadowView) Packages(c resolution.CatalogKey) []string {
	if v.then(resolution.ReadNames, c, "") {
		return v.Replay.Packages(c)
	}
	return v.now.Packages(c)
}

// Image implements resolution.View.
func (v *shadowView) Image(c resolution.CatalogKey, b resolution.BundleImage) resolution.Fetched {
	if v.then(resolution.ReadImage, c, b.ReadName()) {
		return v.Replay.Image(c, b)
	}
	return v.now.Image(c, b)
}
