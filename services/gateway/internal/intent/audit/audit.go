// Package audit keeps who asked what and who made or revoked tokens: actions that leave no event.
package audit

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// maxAbout bounds what one entry says about its subject.
const maxAbout = 500

// Service reads the audit.
type Service struct{ Units *unit.Runner }

// Record adds an entry in a unit of work; id is the preview that it is about, if any.
func Record(ctx context.Context, u *unit.Work, action, about string, id uuid.UUID) error {
	return store.Previews{}.Audit(ctx, u.Tx, preview.Asked{
		Tenant: u.Caller.Tenant, ID: u.NewID(), At: u.Now(), Actor: u.Caller.Person(), Via: u.Caller.Via(),
		Action: action, About: about[:min(len(about), maxAbout)], Preview: id,
	})
}

// List returns entries, newest first.
func (s *Service) List(
	ctx context.Context, who model.Caller, page model.Page,
) (items []model.Question, next []string, err error) {
	before, id, err := entryBefore(page.After)
	if err != nil {
		return nil, nil, err
	}
	var list []preview.Asked
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		list, err = store.Previews{}.Asked(ctx, u.Tx, who.Tenant, before, id, page.Limit)
		return err
	})
	for _, a := range list {
		q := model.Question{ID: a.ID.String(), At: a.At, Actor: a.Actor, Via: a.Via, Action: a.Action, About: a.About}
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

// entryBefore reads the cursor of List.
func entryBefore(after []string) (at time.Time, id uuid.UUID, err error) {
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
