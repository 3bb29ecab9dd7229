package intent

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// ShadowOutcome makes recorded decisions again beside something else, page by page; nothing is written but who asked.
func (s *Service) Shadow(ctx context.Context, who model.Caller, in model.AskShadow) (previewapi.ShadowPage, error) {
	var page previewapi.ShadowPage
	q := previewapi.ShadowQuestion{
		Tenant: who.Tenant, Cluster: in.Cluster, Namespace: in.Namespace, Catalog: in.Catalog, Revision: in.Revision, After: in.Cursor, Limit: in.Limit,
	}
	for _, at := range []struct {
		field, text string
		into        **events.Position
	}{{"/from", in.From, &q.From}, {"/to", in.To, &q.To}} {
		if at.text == "" {
			continue
		}
		p, err := events.ParsePosition(at.text)
		if err != nil {
			return page, errs.New(errs.Invalid, "%q is not a position: want epoch-number, such as 1-42", at.text).At(at.field, "position")
		}
		*at.into = &p
	}
	var err error
	if q.Policy, err = shadowPolicy(in.Policy); err != nil {
		return page, err
	}
	about := strings.TrimSpace("decisions " + in.Catalog + " " + in.Revision)
	if in.Policy != nil {
		about += " approvalpolicy " + in.Policy.Name
	}
	// For each page: a cursor is anybody's to write, so that it is no sign of a page before.
	if err := s.auditAlone(ctx, who, preview.ActionShadow, about[:min(len(about), maxAbout)], uuid.Nil); err != nil {
		return page, err
	}
	err = s.ask(ctx, previewapi.ShadowSubject, q, &page)
	return page, err
}

// shadowPolicy checks a policy as the intent that sets it does.
func shadowPolicy(in *model.PreviewPolicy) (*events.ApprovalPolicySet, error) {
	if in == nil {
		return nil, nil //nolint:nilnil // none is asked about
	}
	if in.Spec == nil || in.Remove {
		return nil, errs.New(errs.Invalid, "recorded decisions are made again beside a policy that has a spec").At("/approvalPolicy/spec", rule.Required)
	}
	list, err := approvalpolicy.Decide(approvalpolicy.State{Name: in.Name}, approvalpolicy.Set{Spec: in.Spec.Event()})
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if set, ok := p.(events.ApprovalPolicySet); ok {
			return &set, nil
		}
	}
	return nil, errs.New(errs.Internal, "a new approval policy came to nothing")
}

func (s *Service) audit(ctx context.Context, q pg.Querier, who model.Caller, action, about string, id uuid.UUID) error {
	return s.Previews.Audit(ctx, q, preview.Asked{
		Tenant: who.Tenant, ID: s.NewID(), At: s.Now().UTC(), Actor: who.Actor, Action: action, About: about, Preview: id,
	})
}

// Questions lists who asked what, newest first.
func (s *Service) Questions(ctx context.Context, who model.Caller, page model.Page) (items []model.Question, next []string, err error) {
	before, id, err := askedBefore(page.After)
	if err != nil {
		return nil, nil, err
	}
	var list []preview.Asked
	err = s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		list, err = s.Previews.Asked(ctx, tx, who.Tenant, before, id, page.Limit)
		return err
	})
	for _, a := range list {
		q := model.Question{ID: a.ID.String(), At: a.At, Actor: a.Actor, Action: a.Action, About: a.About}
		if a.Preview != uuid.Nil {
			q.Preview = a.Preview.String()
		}
		items = append(items, q)
	}
	if len(list) == page.Limit {
		last := list[len(list)-1]
		next = []string{last.At.Format(time.RFC3339Nano), last.ID.String()}
	}
	return items, next, err
}

// askedBefore reads the cursor of Questions.
func askedBefore(after []string) (at time.Time, id uuid.UUID, err error) {
	if len(after) == 0 {
		return at, id, nil
	}
	var wrong error
	at, err = time.Parse(time.RFC3339Nano, after[0])
	if id, wrong = uuid.Parse(after[len(after)-1]); err != nil || wrong != nil {
		return at, id, errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
	return at, id, nil
}

// auditAlone notes a question that writes nothing else.
func (s *Service) auditAlone(ctx context.Context, who model.Caller, action, about string, id uuid.UUID) error {
	return s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error { return s.audit(ctx, tx, who, action, about, id) })
}
