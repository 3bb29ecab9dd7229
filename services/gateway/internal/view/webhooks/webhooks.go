// Package webhooks answers what webhooks there are, and what they send. It reads the rows that intents and the process
// that sends write (store.Webhooks): an answer is never behind a write.
package webhooks

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

const columns = `select name, spec, owner->>'actor' as owner, disabled, host, stream, version, created, updated, epoch,
	position, last_success, (select count(*) from gateway.webhook_deliveries d
		where d.tenant = w.tenant and d.webhook = w.name and d.state = 'Pending') as pending
	from gateway.webhooks w`

type row struct {
	Name        string
	Spec        events.WebhookSpec
	Owner       string
	Disabled    string
	Host        string
	Stream      string
	Version     int64
	Created     time.Time
	Updated     time.Time
	Epoch       int64
	Position    int64
	LastSuccess *time.Time
	Pending     int64
}

func (r row) answer() model.Webhook {
	return model.Webhook{
		Name: r.Name, Spec: model.WebhookSpecOf(r.Spec), Host: r.Host, Owner: r.Owner,
		State: model.WebhookState(r.Spec.Suspended, r.Disabled), Reason: r.Disabled, Pending: r.Pending,
		At: events.Position{Epoch: r.Epoch, N: r.Position}.String(), LastSuccess: utc(r.LastSuccess),
		CreatedAt: r.Created.UTC(), UpdatedAt: r.Updated.UTC(), Stream: r.Stream, Version: r.Version,
	}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// Reader answers queries about webhooks.
type Reader struct{ Pool *pg.Pool }

// List returns webhooks by name.
func (r *Reader) List(ctx context.Context, who model.Caller, page model.Page) (
	items []model.Webhook, next []string, err error,
) {
	w := readmodel.Tenant("w.tenant", who.Tenant)
	if err := w.After(page.After, "name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, "name", page.Limit)
		for _, p := range rows {
			items = append(items, p.answer())
		}
		if more {
			next = []string{rows[len(rows)-1].Name}
		}
		return err
	})
	return items, next, err
}

// Get returns one webhook.
func (r *Reader) Get(ctx context.Context, who model.Caller, name string) (out model.Webhook, err error) {
	w := readmodel.Tenant("w.tenant", who.Tenant)
	w.Add("name = ?", name)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w, webhook.NotKnown(name))
		out = x.answer()
		return err
	})
	return out, err
}

const deliveryColumns = `select id, epoch, position, type, subject, state, attempts, status, error,
	extract(epoch from took) * 1000000 as took, created, next, ended,
	(extract(epoch from created) * 1000000)::bigint::text as micros from gateway.webhook_deliveries`

type delivery struct {
	ID       string
	Epoch    int64
	Position int64
	Type     string
	Subject  string
	State    string
	Attempts int
	Status   int
	Error    string
	Took     float64
	Created  time.Time
	Next     *time.Time
	Ended    *time.Time
	Micros   string
}

func (d delivery) answer() model.WebhookDelivery {
	out := model.WebhookDelivery{
		ID: d.ID, Type: d.Type, Subject: d.Subject, State: d.State, Attempts: d.Attempts, Status: d.Status,
		Error: d.Error, TookMicros: int64(d.Took), CreatedAt: d.Created.UTC(), NextAttempt: utc(d.Next),
		EndedAt: utc(d.Ended),
	}
	if d.Position > 0 {
		out.Event = events.Position{Epoch: d.Epoch, N: d.Position}.String()
	}
	return out
}

// Deliveries returns what a webhook sends and has sent, newest first.
func (r *Reader) Deliveries(ctx context.Context, who model.Caller, name string, f model.DeliveryFilter) (
	items []model.WebhookDelivery, next []string, err error,
) {
	if _, err := r.Get(ctx, who, name); err != nil {
		return nil, nil, err
	}
	w := readmodel.Tenant("tenant", who.Tenant)
	w.Add("webhook = ?", name)
	w.Equal("state", f.State)
	if len(f.After) > 0 {
		micros, err := strconv.ParseInt(f.After[0], 10, 64)
		if err != nil || len(f.After) != 2 {
			return nil, nil, readmodel.ForeignCursor()
		}
		w.Add("(created, id) < (?, ?)", time.UnixMicro(micros), f.After[1])
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[delivery](ctx, tx, deliveryColumns, w, "created desc, id desc", f.Limit)
		for _, d := range rows {
			items = append(items, d.answer())
		}
		if more {
			last := rows[len(rows)-1]
			next = []string{last.Micros, last.ID}
		}
		return err
	})
	return items, next, err
}
