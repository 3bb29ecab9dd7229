package intent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// Asker puts questions to other services; *bus.Bus is one.
type Asker interface {
	Ask(ctx context.Context, subject string, question, answer any) error
}

// Previews keeps what people asked without changing anything.
type Previews interface {
	PreviewRows
	PreviewRoom
	PreviewBodies
	Audit
}

// PreviewRows keeps previews until they expire.
type PreviewRows interface {
	Put(ctx context.Context, tx pgx.Tx, p preview.Kept) error
	// Get and Lock are errs.NotFound for one that expired. Until the transaction of Lock ends, nobody else carries
	// it out or deletes it.
	Get(ctx context.Context, q pg.Querier, tenant string, id uuid.UUID, now time.Time) (preview.Kept, error)
	Lock(ctx context.Context, tx pgx.Tx, tenant string, id uuid.UUID, now time.Time) (preview.Kept, error)
	Applied(ctx context.Context, tx pgx.Tx, p preview.Kept) error
}

// PreviewRoom bounds what is kept: Alive counts the previews of a tenant that have not expired, Sweep deletes the others.
type PreviewRoom interface {
	Alive(ctx context.Context, q pg.Querier, tenant string, now time.Time) (int, error)
	Sweep(ctx context.Context, q pg.Querier, now time.Time) error
}

// PreviewBodies keeps the configurations of previews: Saved are those of commitments, and Keep stores them again after
// what stored them was taken back.
type PreviewBodies interface {
	Saved(ctx context.Context, q pg.Querier, tenant string, commitments []string) ([]preview.Body, error)
	Keep(ctx context.Context, q pg.Querier, tenant string, bodies []preview.Body) error
}

// Audit records who asked what and when.
type Audit interface {
	Audit(ctx context.Context, q pg.Querier, a preview.Asked) error
	// Asked reads at most limit questions of a tenant before one, newest first; the zero time and id are the newest.
	Asked(ctx context.Context, q pg.Querier, tenant string, before time.Time, id uuid.UUID, limit int) ([]preview.Asked, error)
}

const (
	// maxAbout bounds what the record of questions says of one.
	maxAbout = 500
	// sweepEvery is how often expired previews are deleted; they are refused from the moment they expire.
	sweepEvery = 5 * time.Minute
)

// Preview tries the changes, takes them back, and asks the resolver what they would lead to. The order is: the intents
// run with all their checks up to a savepoint; what they came to is kept, in the same transaction, with who asked; then
// the resolver is asked. Where the process dies after that, the preview can be read by its id, which nobody was told,
// until it expires; before, nothing was kept.
func (s *Service) Preview(ctx context.Context, who model.Caller, in model.AskPreview, how model.Validate, limit int) (previewapi.Page, preview.Kept, error) {
	var page previewapi.Page
	changes, about, err := s.supposeAll(who, in, how)
	if err == nil {
		err = s.roomForPreview(ctx, who)
	}
	if err != nil {
		return page, preview.Kept{}, err
	}
	var kept preview.Kept
	var list []previewapi.Hypothesis
	err = s.transact(ctx, who, "preview", func(ctx context.Context, tx pgx.Tx) error {
		now := s.Now().UTC()
		kept = preview.Kept{
			Tenant: who.Tenant, ID: s.NewID(), Actor: who.Actor, Asked: now, Expires: now.Add(previewapi.Lifetime), Request: in, Validate: how,
		}
		if list, err = s.try(ctx, tx, who, changes, &kept); err != nil {
			return err
		}
		if err := s.Previews.Put(ctx, tx, kept); err != nil {
			return err
		}
		return s.audit(ctx, tx, who, preview.ActionPreview, about, kept.ID)
	})
	if err != nil {
		return page, kept, err
	}
	q := previewapi.Question{Tenant: who.Tenant, ID: kept.ID, Hypotheses: list, Cluster: in.Cluster, Namespace: in.Namespace, Limit: limit}
	if err := s.ask(ctx, previewapi.PreviewSubject, q, &page); err != nil {
		return page, kept, err
	}
	removed, err := s.adviseRemoved(ctx, who, page)
	kept.Warnings = append(kept.Warnings, removed...)
	return page, kept, err
}

// adviseRemoved says what plans would write that the next version of their cluster no longer serves (R-CSV-61), as far as
// their documents were answered.
func (s *Service) adviseRemoved(ctx context.Context, who model.Caller, page previewapi.Page) ([]string, error) {
	var out []string
	for _, o := range page.Scopes {
		for _, p := range o.Plans {
			if len(p.Document) == 0 {
				continue
			}
			c, err := s.Clusters.Observed(ctx, s.Pool, who.Tenant, o.Cluster)
			if err != nil {
				return nil, err
			}
			for _, r := range cluster.RemovedByPlan(c.KubernetesVersion, p.Document) {
				out = append(out, fmt.Sprintf("%s of the plan for %s is %s, which Kubernetes %s no longer serves; cluster %s has %s",
					r.For, p.Component, strings.TrimPrefix(r.Group+"/"+r.Version, "/"), r.Removed, o.Cluster, c.KubernetesVersion))
			}
		}
	}
	return out, nil
}

// roomForPreview refuses another preview where as many are kept as may be. What is asked at the same moment may go
// beyond by as much: this is about room, which has no sharp end.
func (s *Service) roomForPreview(ctx context.Context, who model.Caller) error {
	alive, err := s.Previews.Alive(ctx, s.Pool, who.Tenant, s.Now().UTC())
	if err == nil && alive >= previewapi.MaxAlive {
		return errs.New(errs.Conflict, "%d previews and dry runs of the last hour are kept, which is as many as can be: they go %s after they were asked for", alive, previewapi.Lifetime).
			At("", "previews-kept")
	}
	return err
}

func (s *Service) supposeAll(who model.Caller, in model.AskPreview, how model.Validate) (changes []supposed, about string, err error) {
	var names []string
	for i, c := range in.Changes {
		x, err := s.suppose(who, c, how, "/changes/"+strconv.Itoa(i))
		if err != nil {
			return nil, "", err
		}
		changes, names = append(changes, x), append(names, x.about)
	}
	about = strings.Join(names, ", ")
	return changes, about[:min(len(about), maxAbout)], nil
}

// try runs the changes and takes them back, but for the configurations that their events commit to: these are the
// preview's until it is carried out. It returns what is to be supposed, in order.
func (s *Service) try(ctx context.Context, tx pgx.Tx, who model.Caller, changes []supposed, kept *preview.Kept) (list []previewapi.Hypothesis, err error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return nil, pg.Err(err)
	}
	u := &unit{tx: savepoint}
	var bodies []preview.Body
	var commitments []string
	list, err = carryOut(withUnit(ctx, u), changes)
	if err == nil {
		commitments, bodies, err = s.committed(ctx, savepoint, who, u.writes)
	}
	if back := savepoint.Rollback(ctx); err == nil {
		err = pg.Err(back)
	}
	if err != nil {
		return nil, err
	}
	before, err := s.Previews.Saved(ctx, tx, who.Tenant, commitments)
	if err != nil {
		return nil, err
	}
	bodies = slices.DeleteFunc(bodies, func(b preview.Body) bool {
		return slices.ContainsFunc(before, func(o preview.Body) bool { return o.Commitment == b.Commitment })
	})
	kept.Writes, kept.Warnings = u.writes, u.warnings
	for _, b := range bodies {
		kept.Bodies = append(kept.Bodies, b.Commitment)
	}
	for _, c := range changes {
		kept.NotApplicable = cmp.Or(kept.NotApplicable, c.why, c.beyond(kept.Request))
	}
	return list, s.Previews.Keep(ctx, tx, who.Tenant, bodies)
}

// carryOut runs changes in the unit of the context, and returns their events in order.
func carryOut(ctx context.Context, changes []supposed) ([]previewapi.Hypothesis, error) {
	u := unitOf(ctx)
	list := []previewapi.Hypothesis{}
	for _, c := range changes {
		if c.intent == nil {
			h, err := c.hypothesis()
			if err != nil {
				return nil, err
			}
			list = append(list, h)
			continue
		}
		n := len(u.writes)
		if err := c.intent(ctx, u.tx); err != nil {
			return nil, err
		}
		for _, w := range u.writes[n:] {
			list = append(list, w.Hypotheses...)
		}
	}
	return list, nil
}

// committed are the bodies that writes commit to.
func (s *Service) committed(ctx context.Context, tx pgx.Tx, who model.Caller, writes []preview.Write) (commitments []string, bodies []preview.Body, err error) {
	if commitments, err = preview.AllCommitments(writes); err != nil {
		return nil, nil, err
	}
	slices.Sort(commitments)
	commitments = slices.Compact(commitments)
	bodies, err = s.Previews.Saved(ctx, tx, who.Tenant, commitments)
	return commitments, bodies, err
}

// ReadPreview reads a page of a preview; where nobody has read so far, the resolver goes on.
func (s *Service) ReadPreview(ctx context.Context, who model.Caller, id uuid.UUID, after previewapi.Scope, limit int) (previewapi.Page, preview.Kept, error) {
	var page previewapi.Page
	kept, err := s.Previews.Get(ctx, s.Pool, who.Tenant, id, s.Now().UTC())
	if err != nil {
		return page, kept, err
	}
	if err := s.auditAlone(ctx, who, preview.ActionRead, "", id); err != nil {
		return page, kept, err
	}
	err = s.ask(ctx, previewapi.ReadSubject, previewapi.PageRequest{Tenant: who.Tenant, ID: id, After: after, Limit: limit}, &page)
	return page, kept, err
}

// ApplyPreview carries out a preview while it holds. First the resolver compares what it announced with what it would
// announce now; then all intents run in one transaction, with their checks, on the very states that they were tried
// on. Once is enough: what was carried out answers the same again. Where the process dies before the transaction is
// committed, nothing has happened; after it, asking again tells what did.
//
// What comes into the log between the comparison and the transaction is decided on like anything else: the plan has
// another digest then, and nobody has approved that.
func (s *Service) ApplyPreview(ctx context.Context, who model.Caller, id uuid.UUID) (model.PreviewApplied, error) {
	kept, err := s.Previews.Get(ctx, s.Pool, who.Tenant, id, s.Now().UTC())
	if err != nil {
		return model.PreviewApplied{}, err
	}
	_, about, err := s.supposeAll(who, kept.Request, kept.Validate)
	if err != nil {
		return model.PreviewApplied{}, err
	}
	if err := s.auditAlone(ctx, who, preview.ActionApply, about, id); err != nil { // whatever comes of it
		return model.PreviewApplied{}, err
	}
	if kept.AppliedAt.IsZero() {
		if kept.NotApplicable != "" {
			return model.PreviewApplied{}, errs.New(errs.Unprocessable, "preview %s cannot be applied: %s", id, kept.NotApplicable).At("path.id", "applicable")
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
		var v previewapi.CheckResult
		if err := s.ask(ctx, previewapi.CheckSubject, r, &v); err != nil {
			return err
		}
		var changed []error
		for _, c := range v.Changed {
			changed = append(changed, errs.New(errs.Conflict, "%s changed since the preview", c).At("path.id", "preview-holds"))
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
	err = s.transact(ctx, who, "apply preview", func(ctx context.Context, tx pgx.Tx) error {
		now := s.Now().UTC().Truncate(time.Microsecond) // as it is stored: applying again answers the same
		if kept, err = s.Previews.Lock(ctx, tx, who.Tenant, id, now); err != nil || !kept.AppliedAt.IsZero() {
			return err
		}
		changes, _, err := s.supposeAll(who, kept.Request, kept.Validate)
		if err != nil {
			return err
		}
		u := &unit{tx: tx}
		if u.announced, err = preview.CommitmentsOf(kept.Writes); err != nil {
			return err
		}
		if _, err := carryOut(withUnit(ctx, u), changes); err != nil {
			return overtaken(err)
		}
		if changed := kept.Changed(u.writes); len(changed) > 0 {
			return errs.New(errs.Conflict, "%s changed since the preview", strings.Join(changed, ", ")).At("path.id", "preview-holds")
		}
		kept.AppliedAt, kept.AppliedBy, kept.Done = now, who.Actor, []preview.Done{}
		for i, w := range u.writes {
			kept.Done = append(kept.Done, preview.Done{Subject: w.Subject, Stream: w.Stream, Version: u.appended[i].Version})
		}
		return s.Previews.Applied(ctx, tx, kept)
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
	out := model.PreviewApplied{ID: kept.ID.String(), AppliedAt: kept.AppliedAt, AppliedBy: kept.AppliedBy, Writes: []model.PreviewWrite{}}
	for _, d := range kept.Done {
		stream, err := events.ParseStreamID(d.Stream)
		if err != nil {
			return out, errs.Wrap(errs.Internal, err, "read what carried out preview %s", kept.ID)
		}
		w := model.PreviewWrite{Subject: d.Subject, Stream: d.Stream, Version: d.Version}
		w.Position = s.position(ctx, eventlog.Appended{Tenant: kept.Tenant, Stream: stream, Version: d.Version})
		out.Writes, out.Position = append(out.Writes, w), w.Position
	}
	return out, nil
}

// ask puts a question to the resolver.
func (s *Service) ask(ctx context.Context, subject string, question, answer any) error {
	err := s.Asker.Ask(ctx, subject, question, answer)
	if errs.Is(err, errs.Unavailable) {
		s.Slog.WarnContext(ctx, "the resolver does not answer", "subject", subject, "error", err)
		return errs.New(errs.Unavailable, "the resolver does not answer at the moment, so that nobody can say what this would lead to; nothing was changed: try again in a moment")
	}
	return err
}

// SweepPreviews deletes expired previews, and the configurations that only they had, until ctx ends.
func (s *Service) SweepPreviews(ctx context.Context) error {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		if err := s.Previews.Sweep(ctx, s.Pool, s.Now().UTC()); err != nil && ctx.Err() == nil {
			s.Slog.WarnContext(ctx, "expired previews are not deleted; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
