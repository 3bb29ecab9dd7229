package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/preview"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// sweepEvery is how often expired previews are deleted: they are refused from the moment they expire, so that this
// is about room alone.
const sweepEvery = 5 * time.Minute

// catchUpWait bounds how long a question waits for the tables to hold what was in the log when it came.
const catchUpWait = 5 * time.Second

// previewer answers questions about what has not happened. It writes its own tables and nothing else: no event, no
// mark, no request for a bundle image. Where the process dies before the answer is kept, there is no preview; after
// that, it is there for whoever asks again.
type previewer struct {
	*worker
	now func() time.Time
}

// catchUp waits until the tables hold what is in the log: who has just made an operator group asks about a subscription
// beside it. An answer on less would be wrong without a sign.
func (p *previewer) catchUp(ctx context.Context) error {
	head, err := p.store.History.Head(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpWait)
	defer cancel()
	for {
		at, err := p.store.Projection.Checkpoint(ctx, consumerName)
		if ctx.Err() != nil {
			return errs.New(errs.Unavailable,
				"the resolver has read the log up to %s, and it ends at %s: try again in a moment", at, head)
		}
		if err != nil || !at.Less(head) {
			return err
		}
		p.await(ctx)
	}
}

// preview works out the first page of scopes and keeps the question with it.
func (p *previewer) preview(ctx context.Context, question json.RawMessage) (any, error) {
	var q previewapi.Question
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	if q.ID == uuid.Nil || q.Tenant == "" || len(q.Hypotheses) > previewapi.MaxHypotheses {
		return nil, errs.New(errs.Invalid, "a preview has an id, a tenant and at most %d hypotheses",
			previewapi.MaxHypotheses)
	}
	kept := store.Preview{Question: q, AskedAt: p.now().UTC()}
	kept.Expires = kept.AskedAt.Add(previewapi.Lifetime)
	if err := p.catchUp(ctx); err != nil {
		return nil, err
	}
	if err := p.store.Hypotheses.Known(ctx, q.Tenant, previewapi.Scope{Cluster: q.Cluster, Namespace: q.Namespace},
		"/changes",
		q.Hypotheses); err != nil {
		return nil, err
	}
	page, err := p.previewPage(ctx, &kept, q.Limit)
	if err != nil {
		return nil, err
	}
	if err := p.store.Previews.Put(ctx, kept, page); err != nil {
		return nil, err
	}
	return answer(kept, page), nil
}

// previewPage goes on behind the scope that was reached, and notes in the preview how far it came.
func (p *previewer) previewPage(ctx context.Context, kept *store.Preview, limit int) ([]store.PreviewScope, error) {
	touched, err := p.store.Hypotheses.Touched(ctx, kept.Question)
	if err != nil {
		return nil, err
	}
	touched = behind(touched, kept.Reached)
	n := min(len(touched), pageSize(limit), previewapi.MaxDecisions)
	page := make([]store.PreviewScope, n)
	totals := make([]previewapi.Totals, n)
	err = each(n, func(i int) error {
		x, scopePreview, err := p.previewScope(ctx, kept.Question, touched[i])
		if scopePreview.News() || kept.Single() {
			x.Preview = &scopePreview
		}
		page[i], totals[i] = x, scopePreview.Totals()
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, t := range totals {
		kept.Totals.Add(t)
		kept.Reached = page[i].Scope
	}
	kept.Complete = n == len(touched)
	return page, nil
}

// previewParallel bounds the scopes that one question resolves at the same time: most of it goes to waiting for
// Postgres, and decisions must not wait for questions.
const previewParallel = 4

// each calls fn for 0 to n-1, some at once, and returns the error of the first of those that fail.
func each(n int, fn func(i int) error) error {
	failed := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, previewParallel) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				failed[i] = guarded(i, fn)
			}
		})
	}
	all.Wait()
	return cmp.Or(failed...)
}

func pageSize(limit int) int {
	if limit < 1 {
		return previewapi.PageScopes
	}
	return min(limit, previewapi.MaxPageScopes)
}

// behind leaves out what is not behind a scope; the zero scope is before all.
func behind(list []previewapi.Scope, after previewapi.Scope) []previewapi.Scope {
	return slices.DeleteFunc(slices.Clone(list), func(s previewapi.Scope) bool { return s.Compare(after) <= 0 })
}

// guarded turns a panic into an error: one question must not end the service.
func guarded(i int, fn func(i int) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Internal, "panic while answering a question: %v", r)
		}
	}()
	return fn(i)
}

// previewScope decides on the state of one scope as it would be, in the very way in which it is decided on as it is.
func (p *previewer) previewScope(ctx context.Context, q previewapi.Question, at previewapi.Scope) (
	store.PreviewScope, previewapi.ScopePreview, error,
) {
	x, _, o, err := p.suppose(ctx, q, at)
	if err != nil {
		return x, o, err
	}
	announced, err := preview.Announced(o)
	x.Announced = string(announced)
	return x, o, err
}

// suppose is the state of a scope with the hypotheses, and what would be decided on it.
func (p *previewer) suppose(ctx context.Context, q previewapi.Question, at previewapi.Scope) (
	x store.PreviewScope, s decide.State, o previewapi.ScopePreview, err error,
) {
	x = store.PreviewScope{Scope: at}
	l, err := p.store.Scopes.Load(ctx, q.Tenant, resolution.Scope{Cluster: at.Cluster, Namespace: at.Namespace})
	if err != nil {
		return x, s, o, err
	}
	if err := fingerprint(&x, l); err != nil {
		return x, s, o, err
	}
	if l.DisabledCatalogs, err = p.store.Scopes.DisabledCatalogs(ctx, q.Tenant, l.Scope,
		catalogsOf(q.Hypotheses)); err != nil {
		return x, s, o, err
	}
	if l.State, err = preview.Apply(l.State, q.Hypotheses); err != nil {
		return x, s, o, err
	}
	var generated []string
	l.State, generated = preview.ApplyGenerated(l.State)
	var c evaluation
	if !l.Removed { // nothing is decided for a removed cluster
		if c, err = p.evaluate(ctx, l); err != nil {
			return x, s, o, err
		}
	}
	o, err = preview.Describe(l.State, c.verdicts, c.decisions, q.Single())
	o.Generated = generated
	return x, l.State, o, err
}

// fingerprint notes what the answer about a scope rests on.
func fingerprint(x *store.PreviewScope, l store.Loaded) (err error) {
	if x.Facts, err = preview.Facts(l.State); err != nil {
		return err
	}
	f, err := preview.Fingerprint(x.Facts, l.Clock())
	x.Fingerprint = string(f)
	return err
}

func catalogsOf(list []previewapi.Hypothesis) []string {
	var out []string
	for _, h := range list {
		if h.Type == (events.CatalogChanged{}).EventType() {
			out = append(out, h.Subject)
		}
	}
	return out
}

func answer(kept store.Preview, page []store.PreviewScope) previewapi.Page {
	out := previewapi.Page{
		ID: kept.ID, AskedAt: kept.AskedAt, Expires: kept.Expires, Totals: kept.Totals,
		Scopes: []previewapi.ScopePreview{},
	}
	for _, x := range page {
		if x.Preview != nil {
			out.Scopes = append(out.Scopes, *x.Preview)
		}
	}
	if !kept.Complete {
		out.Next = &previewapi.Scope{Cluster: kept.Reached.Cluster, Namespace: kept.Reached.Namespace}
	}
	return out
}

func (p *previewer) readRequest(ctx context.Context, question json.RawMessage) (
	previewapi.PageRequest, store.Preview, error,
) {
	var r previewapi.PageRequest
	if err := json.Unmarshal(question, &r); err != nil {
		return r, store.Preview{}, errs.Wrap(errs.Invalid, err, "read the question")
	}
	kept, err := p.store.Previews.Read(ctx, r.Tenant, r.ID)
	return r, kept, err
}

// read answers with what was announced, and goes on to scopes that nobody has asked about yet.
func (p *previewer) read(ctx context.Context, question json.RawMessage) (any, error) {
	r, kept, err := p.readRequest(ctx, question)
	if err != nil {
		return nil, err
	}
	if kept.Complete || r.After.Compare(kept.Reached) < 0 {
		return p.reread(ctx, kept, r)
	}
	if r.After != kept.Reached {
		return nil, errs.New(errs.Invalid, "preview %s was read up to %s/%s; go on from there", kept.ID,
			kept.Reached.Cluster, kept.Reached.Namespace).At("query.cursor", "cursor")
	}
	page, err := p.previewPage(ctx, &kept, r.Limit)
	if err != nil {
		return nil, err
	}
	if err := p.store.Previews.Extend(ctx, kept, r.After, page); err != nil {
		return nil, err
	}
	return answer(kept, page), nil
}

// reread serves a page that is kept.
func (p *previewer) reread(ctx context.Context, kept store.Preview, r previewapi.PageRequest) (any, error) {
	n := pageSize(r.Limit)
	page, err := p.store.Previews.ReadScopes(ctx, kept.Tenant, kept.ID, r.After, n)
	if err != nil {
		return nil, err
	}
	if len(page) == n && page[n-1].Scope != kept.Reached {
		kept.Complete, kept.Reached = false, page[n-1].Scope
	}
	return answer(kept, page), nil
}

// check compares what a preview announced with what would be announced now. Scopes whose fingerprint is the same are
// not decided again, and of the others a bounded number for one answer.
func (p *previewer) check(ctx context.Context, question json.RawMessage) (any, error) {
	r, kept, err := p.readRequest(ctx, question)
	if err != nil {
		return nil, err
	}
	if !kept.Complete {
		return nil, errs.New(errs.Conflict,
			"preview %s has pages behind %s/%s that were not read yet: read them before it is checked", kept.ID,
			kept.Reached.Cluster, kept.Reached.Namespace)
	}
	if err := p.catchUp(ctx); err != nil {
		return nil, err
	}
	n := pageSize(r.Limit)
	before, err := p.store.Previews.ReadScopes(ctx, kept.Tenant, kept.ID, r.After, n)
	if err != nil {
		return nil, err
	}
	touched, err := p.store.Hypotheses.Touched(ctx, kept.Question)
	if err != nil {
		return nil, err
	}
	known := map[previewapi.Scope]store.PreviewScope{}
	all := behind(touched, r.After)
	for _, x := range before {
		known[x.Scope] = x
		all = append(all, x.Scope)
	}
	slices.SortFunc(all, previewapi.Scope.Compare)
	all = slices.Compact(all)
	v := previewapi.CheckResult{Changed: []previewapi.Change{}}
	if len(all) > n {
		all = all[:n]
		v.Next = &all[n-1]
	}
	stale, err := p.stale(ctx, kept.Question, all, known)
	if err != nil {
		return nil, err
	}
	if len(stale) > previewapi.MaxDecisions {
		stale = stale[:previewapi.MaxDecisions]
		v.Next = &stale[len(stale)-1] // what lies between it and the next one that moved is compared again
	}
	changed := make([][]previewapi.Change, len(stale))
	err = each(len(stale), func(i int) (err error) {
		changed[i], err = p.changed(ctx, kept.Question, stale[i], known[stale[i]])
		return err
	})
	if v.Changed = append(v.Changed, slices.Concat(changed...)...); len(v.Changed) > previewapi.MaxChanges {
		v.Changed = v.Changed[:previewapi.MaxChanges]
	}
	return v, err
}

// stale are the scopes of a list in which something that an announcement rests on is another thing: they have to be
// decided on again. For the others comparing the fingerprint is enough.
func (p *previewer) stale(ctx context.Context, q previewapi.Question, all []previewapi.Scope,
	known map[previewapi.Scope]store.PreviewScope,
) ([]previewapi.Scope, error) {
	moved := make([]bool, len(all))
	err := each(len(all), func(i int) error {
		before := known[all[i]]
		if before.Fingerprint == "" {
			moved[i] = true
			return nil
		}
		l, err := p.store.Scopes.Load(ctx, q.Tenant, resolution.Scope{
			Cluster:   all[i].Cluster,
			Namespace: all[i].Namespace,
		})
		if err != nil {
			return err
		}
		var now store.PreviewScope
		err = fingerprint(&now, l)
		moved[i] = now.Fingerprint != before.Fingerprint
		return err
	})
	var out []previewapi.Scope
	for i, at := range all {
		if moved[i] {
			out = append(out, at)
		}
	}
	return out, err
}

// changed decides on a scope again and names what makes the announcement about it void; nothing where it still holds.
func (p *previewer) changed(ctx context.Context, q previewapi.Question, at previewapi.Scope,
	before store.PreviewScope,
) ([]previewapi.Change, error) {
	if before.Fingerprint == "" {
		return []previewapi.Change{{
			Cluster: at.Cluster, Namespace: at.Namespace,
			What: "the namespace, which was not touched then,",
		}}, nil
	}
	now, _, err := p.previewScope(ctx, q, at)
	if err != nil || now.Announced == before.Announced {
		return nil, err
	}
	names := preview.Differences(before.Facts, now.Facts)
	if len(names) == 0 {
		names = []string{"the content of its catalogs, or the rules"}
	}
	var out []previewapi.Change
	for _, name := range names {
		out = append(out, previewapi.Change{Cluster: at.Cluster, Namespace: at.Namespace, What: name})
	}
	return out, nil
}

// sweep deletes expired previews until ctx ends.
func (p *previewer) sweep(ctx context.Context) error {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		if _, err := p.store.Previews.Sweep(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "expired previews are not deleted; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
