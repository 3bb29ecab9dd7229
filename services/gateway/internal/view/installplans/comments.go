package installplans

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/namelookup"
)

// Comments are what people said of a plan behind a number, in the order in which they did. Words that were erased are
// told as that.
func (r *Reader) Comments(
	ctx context.Context, who model.Caller, id string, behind, limit int,
) (items []model.PlanComment, more bool, err error) {
	w := readmodel.Tenant("p.tenant", who.Tenant)
	w.Add("p.id = ?", id)
	w.Within(who, access.Get, access.InstallPlans, places)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w, errs.New(errs.NotFound, "there is no install plan %s", id))
		if err != nil {
			return err
		}
		var commitments []string
		for i, c := range x.State.Comments {
			if i < behind {
				continue
			}
			if more = len(items) == limit; more {
				break
			}
			commitments = append(commitments, c.Comment)
			items = append(items, model.PlanComment{
				Number: i + 1, About: c.About, By: c.By, At: c.At, Text: erasedReason, Body: c.Comment,
			})
		}
		if len(items) == 0 {
			return nil
		}
		words, err := r.Bodies.Read(ctx, tx, who.Tenant, commitments...)
		if err != nil {
			return err
		}
		for i := range items {
			c := &items[i]
			if text := words.Text(c.Body, model.PartReason, &c.Unreadable); text != nil {
				c.Text = string(text)
			} else if len(c.Unreadable) > 0 {
				c.Text = unreadableReason
			}
		}
		return nil
	})
	return items, more, err
}

// ID finds the plan that a person names: an id is taken as it is, whether it exists or not; a name is looked for among
// the plans that the caller may see, in a cluster and a namespace where these are given.
func (r *Reader) ID(ctx context.Context, who model.Caller, name, cluster, namespace string) (id string, err error) {
	if _, err := uuid.Parse(name); err == nil {
		return name, nil
	}
	w := readmodel.Tenant("p.tenant", who.Tenant)
	w.Add("p.name = ?", name)
	w.Equal("p.cluster", cluster)
	w.Equal("p.namespace", namespace)
	w.Within(who, access.Get, access.InstallPlans, places)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		found, _, err := readmodel.Page[namelookup.Plan](ctx, tx,
			"select p.id, p.cluster, p.namespace from installplans p", w, "p.cluster, p.namespace, p.id",
			namelookup.MaxPlans)
		if err == nil {
			id, err = namelookup.FindPlan(name, cluster, namespace, found)
		}
		return err
	})
	return id, err
}
