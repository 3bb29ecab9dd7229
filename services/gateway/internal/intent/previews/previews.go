// Package previews answers what changes would lead to, and carries out what was previewed.
//
// A preview runs the intents with all their checks up to a savepoint, keeps what they would write, and takes them back;
// the resolver then decides as if they had been written. Applying one runs the same intents again, together, and
// commits them where they come to the same writes on the same states.
package previews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/approvalpolicies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/audit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// sweepInterval is how often expired previews are deleted; they are refused from the moment they expire.
const sweepInterval = 5 * time.Minute

// Clusters returns what was last observed of a cluster; the zero value while nothing is known.
type Clusters interface {
	Observed(ctx context.Context, q pg.Querier, tenant, cluster string) (events.ClusterObserved, error)
}

// Service answers previews and carries them out.
type Service struct {
	Units         *unit.Runner
	Store         store.Previews
	Resolver      resolverclient.Client
	Clusters      Clusters
	Subscriptions *subscriptions.Service
	Groups        *operatorgroups.Service
	Catalogs      *catalogs.Service
	Policies      *approvalpolicies.Service
	Slog          *slog.Logger
}

// Create tries the changes, takes them back, and asks the resolver what they would lead to. What the intents would
// write is kept, in the transaction that tried them, with who asked; then the resolver is asked. Where the process dies
// in between, the preview is kept until it expires, though nobody knows its id.
func (s *Service) Create(
	ctx context.Context, who model.Caller, in model.PreviewRequest, how model.Validate, limit int,
) (previewapi.Page, preview.Kept, error) {
	var page previewapi.Page
	changes, about, err := s.changes(in, how)
	if err == nil {
		err = s.checkRoom(ctx, who)
	}
	if err != nil {
		return page, preview.Kept{}, err
	}
	var kept preview.Kept
	var list []previewapi.Hypothesis
	err = s.Units.Run(ctx, who, "preview", func(ctx context.Context, u *unit.Work) error {
		now := u.Now()
		kept = preview.Kept{
			Tenant: who.Tenant, ID: u.NewID(), Actor: who.Person(), Asked: now, Expires: now.Add(previewapi.Lifetime),
			Request: in, Validate: how,
		}
		if list, err = s.try(ctx, u, changes, &kept); err != nil {
			return err
		}
		if err := s.Store.Put(ctx, u.Tx, kept); err != nil {
			return err
		}
		return audit.Record(ctx, u, preview.ActionPreview, about, kept.ID)
	})
	if err != nil {
		return page, kept, err
	}
	page, err = s.Resolver.Preview(ctx, previewapi.Question{
		Tenant: who.Tenant, ID: kept.ID, Hypotheses: list, Cluster: in.Cluster, Namespace: in.Namespace, Limit: limit,
	})
	if err != nil {
		return page, kept, err
	}
	removed, err := s.warnRemoved(ctx, who, page)
	kept.Warnings = append(kept.Warnings, removed...)
	return page, kept, err
}

// warnRemoved names what plans would write that the next version of their cluster no longer serves (R-CSV-61), as far
// as the resolver returned their documents.
func (s *Service) warnRemoved(ctx context.Context, who model.Caller, page previewapi.Page) ([]string, error) {
	var out []string
	for _, o := range page.Scopes {
		for _, p := range o.Plans {
			if len(p.Document) == 0 {
				continue
			}
			var c events.ClusterObserved
			err := s.Units.Once(ctx, who, func(u *unit.Work) (err error) {
				c, err = s.Clusters.Observed(ctx, u.Tx, who.Tenant, o.Cluster)
				return err
			})
			if err != nil {
				return nil, err
			}
			for _, r := range cluster.RemovedByPlan(c.KubernetesVersion, p.Document) {
				out = append(out, fmt.Sprintf(
					"%s of the plan for %s is %s, which Kubernetes %s no longer serves; cluster %s has %s",
					r.For, p.Component, strings.TrimPrefix(r.Group+"/"+r.Version,
						"/"), r.Removed, o.Cluster, c.KubernetesVersion))
			}
		}
	}
	return out, nil
}

// checkRoom refuses another preview where as many are kept as may be. What is asked at the same moment may go
// beyond by as much: this is about room, which has no sharp end.
func (s *Service) checkRoom(ctx context.Context, who model.Caller) error {
	var alive int
	err := s.Units.Once(ctx, who, func(u *unit.Work) (err error) {
		alive, err = s.Store.Alive(ctx, u.Tx, who.Tenant, u.Now())
		return err
	})
	if err == nil && alive >= previewapi.MaxAlive {
		return errs.New(errs.Conflict,
			"%d previews and dry runs are kept, which is the limit: each is deleted %s after it was made", alive,
			previewapi.Lifetime).
			At("", "previews-kept")
	}
	return err
}

func (s *Service) changes(in model.PreviewRequest, how model.Validate) (list []change, about string, err error) {
	var names []string
	for i, c := range in.Changes {
		x, err := s.change(c, how, "/changes/"+strconv.Itoa(i))
		if err != nil {
			return nil, "", err
		}
		list, names = append(list, x), append(names, x.about)
	}
	return list, strings.Join(names, ", "), nil
}

// try runs the changes and takes them back, but for the configurations that their events commit to: these are the
// preview's until it is carried out. It returns what is to be supposed, in order.
func (s *Service) try(
	ctx context.Context, u *unit.Work, changes []change, kept *preview.Kept,
) (list []previewapi.Hypothesis, err error) {
	savepoint, err := u.Tx.Begin(ctx)
	if err != nil {
		return nil, pg.Err(err)
	}
	var r unit.Recorder
	tried := u.Recorded(savepoint, &r)
	var written []bodies.Row
	var commitments []string
	list, err = carryOut(ctx, tried, &r, changes)
	if err == nil {
		commitments, written, err = s.committed(ctx, tried, r.Writes)
	}
	if back := savepoint.Rollback(ctx); err == nil {
		err = pg.Err(back)
	}
	if err != nil {
		return nil, err
	}
	tenant := u.Caller.Tenant
	before, err := s.Store.Saved(ctx, u.Tx, tenant, commitments)
	if err != nil {
		return nil, err
	}
	written = slices.DeleteFunc(written, func(b bodies.Row) bool {
		return slices.ContainsFunc(before, func(o bodies.Row) bool { return o.Commitment == b.Commitment })
	})
	kept.Writes, kept.Warnings = r.Writes, tried.Warnings()
	for _, b := range written {
		kept.Bodies = append(kept.Bodies, b.Commitment)
	}
	for _, c := range changes {
		kept.NotApplicable = cmp.Or(kept.NotApplicable, c.why, c.beyond(kept.Request))
	}
	return list, s.Store.Keep(ctx, u.Tx, tenant, written)
}

// carryOut runs changes in a unit of work, and returns their events in order.
func carryOut(ctx context.Context, u *unit.Work, r *unit.Recorder, changes []change) ([]previewapi.Hypothesis, error) {
	list := []previewapi.Hypothesis{}
	for _, c := range changes {
		if c.intent == nil {
			if err := c.may(u.Caller); err != nil {
				return nil, err
			}
			h, err := c.hypothesis()
			if err != nil {
				return nil, err
			}
			list = append(list, h)
			continue
		}
		n := len(r.Writes)
		if err := c.intent(ctx, u); err != nil {
			return nil, err
		}
		for _, w := range r.Writes[n:] {
			list = append(list, w.Hypotheses...)
		}
	}
	return list, nil
}

// committed are the bodies that writes commit to.
func (s *Service) committed(
	ctx context.Context, u *unit.Work, writes []preview.Write,
) (commitments []string, written []bodies.Row, err error) {
	if commitments, err = preview.AllCommitments(writes); err != nil {
		return nil, nil, err
	}
	slices.Sort(commitments)
	commitments = slices.Compact(commitments)
	written, err = s.Store.Saved(ctx, u.Tx, u.Caller.Tenant, commitments)
	return commitments, written, err
}

// Read reads a page of a preview; where nobody has read so far, the resolver goes on.
func (s *Service) Read(
	ctx context.Context, who model.Caller, id uuid.UUID, after previewapi.Scope, limit int,
) (previewapi.Page, preview.Kept, error) {
	var page previewapi.Page
	kept, err := s.get(ctx, who, access.Get, id)
	if err != nil {
		return page, kept, err
	}
	if err := s.record(ctx, who, preview.ActionRead, "", id); err != nil {
		return page, kept, err
	}
	page, err = s.Resolver.ReadPreview(ctx, previewapi.PageRequest{
		Tenant: who.Tenant, ID: id, After: after, Limit: limit,
	})
	return page, kept, err
}

// get reads a preview for who may: it shows plans of the cluster and namespace to which it is narrowed, else of any.
func (s *Service) get(
	ctx context.Context, who model.Caller, v access.Verb, id uuid.UUID,
) (kept preview.Kept, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) (err error) {
		kept, err = s.Store.Get(ctx, u.Tx, who.Tenant, id, u.Now())
		return err
	})
	if err != nil {
		return kept, err
	}
	at := access.Target{Cluster: kept.Request.Cluster, Namespace: kept.Request.Namespace}
	switch {
	case who.May(v, access.Previews, at):
		return kept, nil
	case who.May(access.Get, access.Previews, at):
		return kept, access.Denied(v, access.Previews, at)
	default:
		return kept, store.NoPreview(id)
	}
}

// Apply carries out a preview while it holds. First the resolver compares what it announced with what it would
// announce now; then all intents run in one transaction, with their checks, on the very states that they were tried
// on. Once is enough: what was carried out answers the same again. Where the process dies before the transaction is
// committed, nothing has happened; after it, asking again answers what did.
//
// What comes into the log between the comparison and the transaction is decided on like anything else: the plan has
// another digest then, and nobody has approved that.
func (s *Service) Apply(ctx context.Context, who model.Caller, id uuid.UUID) (model.PreviewApplied, error) {
	kept, err := s.get(ctx, who, access.Create, id)
	if err != nil {
		return model.PreviewApplied{}, err
	}
	_, about, err := s.changes(kept.Request, kept.Validate)
	if err != nil {
		return model.PreviewApplied{}, err
	}
	if err := s.record(ctx, who, preview.ActionApply, about, id); err != nil { // whatever comes of it
		return model.PreviewApplied{}, err
	}
	if kept.AppliedAt.IsZero() {
		if kept.NotApplicable != "" {
			return model.PreviewApplied{}, errs.New(errs.Unprocessable, "preview %s cannot be applied: %s", id,
				kept.NotApplicable).At("path.id", "applicable")
		}
		if err := s.stillHolds(ctx, who, id); err != nil {
			return model.PreviewApplied{}, err
		}
		if kept, err = s.carryOutKept(ctx, who, id); err != nil {
			return model.PreviewApplied{}, err
		}
	}
	return s.appliedAnswer(ctx, kept)
}

// stillHolds asks the resolver, page by page.
func (s *Service) stillHolds(ctx context.Context, who model.Caller, id uuid.UUID) error {
	r := previewapi.PageRequest{Tenant: who.Tenant, ID: id, Limit: previewapi.MaxPageScopes}
	for {
		v, err := s.Resolver.CheckPreview(ctx, r)
		if err != nil {
			return err
		}
		var changed []error
		for _, c := range v.Changed {
			changed = append(changed, errs.New(errs.Conflict, "%s changed since the preview", c).At("path.id",
				"preview-holds"))
		}
		if len(changed) > 0 {
			return errors.Join(changed...)
		}
		if v.Next == nil {
			return nil
		}
		r.After = *v.Next
	}
}

// carryOutKept runs the intents of a preview in one transaction, which also notes that they ran.
func (s *Service) carryOutKept(ctx context.Context, who model.Caller, id uuid.UUID) (kept preview.Kept, err error) {
	err = s.Units.Run(ctx, who, "apply preview", func(ctx context.Context, u *unit.Work) error {
		now := u.Now().Truncate(time.Microsecond) // as it is stored: applying again answers the same
		if kept, err = s.Store.Lock(ctx, u.Tx, who.Tenant, id, now); err != nil || !kept.AppliedAt.IsZero() {
			return err
		}
		changes, _, err := s.changes(kept.Request, kept.Validate)
		if err != nil {
			return err
		}
		var r unit.Recorder
		if r.Announced, err = preview.CommitmentsOf(kept.Writes); err != nil {
			return err
		}
		if _, err := carryOut(ctx, u.Recorded(u.Tx, &r), &r, changes); err != nil {
			return overtaken(err)
		}
		if changed := kept.Changed(r.Writes); len(changed) > 0 {
			return errs.New(errs.Conflict, "%s changed since the preview", strings.Join(changed, ", ")).At("path.id",
				"preview-holds")
		}
		kept.AppliedAt, kept.AppliedBy, kept.Done = now, who.Person(), []preview.Done{}
		for i, w := range r.Writes {
			kept.Done = append(kept.Done, preview.Done{
				Subject: w.Subject, Stream: w.Stream, Version: r.Appended[i].Version,
			})
		}
		return s.Store.Applied(ctx, u.Tx, kept)
	})
	return kept, err
}

// overtaken makes a conflict of what could be done when the preview was asked for, and cannot now.
func overtaken(err error) error {
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.AlreadyExists) {
		return errs.New(errs.Conflict, "this changed since the preview: %v", err).At("path.id", "preview-holds")
	}
	return err
}

func (s *Service) appliedAnswer(ctx context.Context, kept preview.Kept) (model.PreviewApplied, error) {
	out := model.PreviewApplied{
		ID: kept.ID.String(), AppliedAt: kept.AppliedAt, AppliedBy: kept.AppliedBy, Writes: []model.PreviewWrite{},
	}
	for _, d := range kept.Done {
		stream, err := events.ParseStreamID(d.Stream)
		if err != nil {
			return out, errs.Wrap(errs.Internal, err, "read what carried out preview %s", kept.ID)
		}
		w := model.PreviewWrite{Subject: d.Subject, Stream: d.Stream, Version: d.Version}
		w.Position = s.Units.Position(ctx, kept.Tenant, stream, d.Version)
		out.Writes, out.Position = append(out.Writes, w), w.Position
	}
	return out, nil
}

// record adds an entry to the audit for a question that writes nothing else.
func (s *Service) record(ctx context.Context, who model.Caller, action, about string, id uuid.UUID) error {
	return s.Units.Once(ctx, who, func(u *unit.Work) error { return audit.Record(ctx, u, action, about, id) })
}

// Sweep deletes expired previews, and the configurations that only they had, until ctx ends.
func (s *Service) Sweep(ctx context.Context) error {
	t := time.NewTicker(sweepInterval)
	defer t.Stop()
	for {
		if err := s.Store.Sweep(ctx, s.Units.Work, s.Units.Now()); err != nil && ctx.Err() == nil {
			s.Slog.WarnContext(ctx, "expired previews are not deleted; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
