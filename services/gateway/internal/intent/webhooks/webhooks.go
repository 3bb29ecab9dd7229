// Package webhooks carries out intents about webhooks, and sends their events.
//
// A webhook is a row with where it is in the log. One process at a time has its lease, and does three things over and
// over: it makes deliveries of the events behind that place, sends those that are due, and records what became of them.
// An event and its delivery, an attempt and its outcome, are each one transaction: a process that is killed leaves
// deliveries that wait, and the next one sends them again with the same webhook-id. Of one subject the next event is
// sent when the one before was taken or given up.
package webhooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/url"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

const span = "intent webhook"

var aggregate = unit.Aggregate[webhook.State, webhook.Command]{
	Kind: events.KindWebhook, Subject: func(s webhook.State) string { return s.Name },
	Decide: webhook.Decide, Evolve: unit.ByPayload(webhook.Evolve),
	Passing: []events.Type{
		events.WebhookSecretRotated{}.EventType(), events.WebhookReplayRequested{}.EventType(),
		events.WebhookDisabled{}.EventType(),
	},
}

// Service carries out intents about webhooks.
type Service struct {
	Units  *unit.Runner
	Hooks  store.Webhooks
	Sender *Sender
}

// Set makes a webhook, or replaces all of it but its secrets. A new one answers its secret, and begins now.
func (s *Service) Set(
	ctx context.Context, who model.Caller, name string, in model.WebhookSpec,
) (model.Webhook, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span,
		func(ctx context.Context, u *unit.Work) (model.Webhook, error) { return s.set(ctx, u, name, in) })
	out.Position = position
	return out, err
}

func (s *Service) set(ctx context.Context, u *unit.Work, name string, in model.WebhookSpec) (model.Webhook, error) {
	if u.Caller.OnBehalfOf != "" {
		// It would send on when the service may ask for that person no longer, or the person has no rights any more.
		return model.Webhook{}, errs.New(errs.Forbidden, "a webhook lasts longer than a request for somebody: set it "+
			"with a token of your own, or as the service itself")
	}
	row := store.WebhookRow{Tenant: u.Caller.Tenant, Name: name}
	fresh := false
	out, err := unit.Change(ctx, u, aggregate, name, webhook.State{Name: name},
		func(now webhook.State) (webhook.Command, error) {
			var err error
			if now.Set {
				row, err = s.Hooks.Get(ctx, u.Tx, u.Caller.Tenant, name, true)
			} else {
				fresh = true
				row, err = s.begin(ctx, u, row)
			}
			if err != nil {
				return nil, err
			}
			spec := in.Event()
			if now.Set && in.URL == "" && row.Owner.Actor != u.Caller.Actor {
				// Their events would go where somebody else said, who sees nothing of it any more, maybe.
				return nil, errs.New(errs.Invalid, "/url is missing: who takes a webhook of somebody else over says where "+
					"it sends").At("/url", rule.Required)
			}
			if spec.Address, err = addressed(&row.Sealed, in); err != nil {
				return nil, err
			}
			others, err := s.Hooks.CountOthers(ctx, u.Tx, u.Caller.Tenant, name)
			return webhook.Set{Spec: spec, Owner: owner(u.Caller), Rights: u.Caller.Rights, Others: others}, err
		})
	if err != nil {
		return model.Webhook{}, err
	}
	was := row
	row.Stream, row.Version, row.Spec, row.Owner = out.Stream.String(), out.Version, out.State.Spec, out.State.Owner
	row.Disabled = ""
	if was.Version != row.Version {
		if err := s.put(ctx, u, row); err != nil {
			return model.Webhook{}, err
		}
	}
	if was.Disabled != "" || was.Spec.Suspended && !row.Spec.Suspended {
		if err := s.Hooks.Again(ctx, u.Tx, row.Tenant, name, u.Now()); err != nil {
			return model.Webhook{}, err
		}
	}
	answer := answer(row, out.Time)
	if fresh {
		answer.Secret = row.Sealed.Secrets[0].Value
	}
	return answer, nil
}

// begin makes the parts of a new webhook that nobody says: its secret, and that it begins at the end of the log.
func (s *Service) begin(ctx context.Context, u *unit.Work, row store.WebhookRow) (store.WebhookRow, error) {
	secret, err := newSecret()
	if err != nil {
		return row, err
	}
	row.Sealed.Secrets = []webhook.Secret{secret}
	row.At, err = s.Units.Log.Head(ctx, u.Tx)
	return row, err
}

func newSecret() (webhook.Secret, error) {
	random := make([]byte, webhook.SecretBytes)
	if _, err := rand.Read(random); err != nil {
		return webhook.Secret{}, errs.Wrap(errs.Internal, err, "draw a secret")
	}
	return webhook.NewSecret(random), nil
}

// addressed takes the address of a request, and returns the commitment to it: the one that is there where the address
// stays.
func addressed(sealed *webhook.Sealed, in model.WebhookSpec) (string, error) {
	if in.URL != "" && in.URL != sealed.URL {
		sealed.URL, sealed.Salt = in.URL, make([]byte, digest.SaltBytes)
		if _, err := rand.Read(sealed.Salt); err != nil {
			return "", errs.Wrap(errs.Internal, err, "draw a salt")
		}
	}
	if sealed.URL == "" {
		return "", errs.New(errs.Invalid, "/url is missing: a new webhook needs the address to send to").At("/url",
			rule.Required)
	}
	return digest.Commitment(sealed.Salt, []byte(sealed.URL)), webhook.CheckURL(in.Target.Type, sealed.URL)
}

func owner(who model.Caller) events.WebhookOwner {
	return events.WebhookOwner{
		Kind: cmp.Or(who.Kind, access.KindUser), Actor: who.Actor, Groups: who.Groups,
	}
}

func (s *Service) put(ctx context.Context, u *unit.Work, row store.WebhookRow) error {
	return s.Hooks.Put(ctx, u.Tx, row, hostOf(row.Sealed.URL), u.Now())
}

// hostOf is what people see of an address.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func answer(r store.WebhookRow, at time.Time) model.Webhook {
	w := model.Webhook{
		Name: r.Name, Spec: model.WebhookSpecOf(r.Spec), Host: hostOf(r.Sealed.URL), Owner: r.Owner.Actor,
		Reason: r.Disabled, At: r.At.String(), LastSuccess: r.LastSuccess, CreatedAt: at, UpdatedAt: at,
		Stream: r.Stream, Version: r.Version,
	}
	w.State = model.WebhookState(r.Spec.Suspended, r.Disabled)
	return w
}

// decide has the aggregate decide about a webhook that is there, and stores what came of it. The row is locked before
// the stream is appended to, as by set: two that change a webhook wait for each other in one order.
func (s *Service) decide(
	ctx context.Context, who model.Caller, name string, command func(row store.WebhookRow) (webhook.Command, error),
	change func(ctx context.Context, u *unit.Work, row *store.WebhookRow) error,
) (model.Webhook, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span,
		func(ctx context.Context, u *unit.Work) (model.Webhook, error) {
			var row store.WebhookRow
			out, err := unit.Decide(ctx, u, aggregate, name, webhook.State{Name: name},
				func(webhook.State) (_ webhook.Command, err error) {
					if row, err = s.Hooks.Get(ctx, u.Tx, who.Tenant, name, true); err != nil {
						return nil, err
					}
					return command(row)
				})
			if err != nil {
				return model.Webhook{}, err
			}
			row.Version, row.Disabled = out.Version, out.State.Disabled
			err = change(ctx, u, &row)
			return answer(row, out.Time), err
		})
	out.Position = position
	return out, err
}

func always(c webhook.Command) func(store.WebhookRow) (webhook.Command, error) {
	return func(store.WebhookRow) (webhook.Command, error) { return c, nil }
}

// Rotate has another secret sign, which is answered this once. The one before signs beside it for webhook.Overlap.
func (s *Service) Rotate(ctx context.Context, who model.Caller, name string) (model.Webhook, error) {
	secret, err := newSecret()
	if err != nil {
		return model.Webhook{}, err
	}
	out, err := s.decide(ctx, who, name, always(webhook.Rotate{}),
		func(ctx context.Context, u *unit.Work, row *store.WebhookRow) error {
			row.Sealed.Secrets = webhook.Rotated(row.Sealed.Secrets, secret, u.Now())
			return s.put(ctx, u, *row)
		})
	if err == nil {
		out.Secret = secret.Value
	}
	return out, err
}

// Replay has the events behind a position sent again.
func (s *Service) Replay(
	ctx context.Context, who model.Caller, name string, after events.Position,
) (model.Webhook, error) {
	return s.decide(ctx, who, name, always(webhook.Replay{After: after}),
		func(ctx context.Context, u *unit.Work, row *store.WebhookRow) error {
			head, err := s.Units.Log.Head(ctx, u.Tx)
			if err == nil && head.Less(after) {
				err = errs.New(errs.Conflict, "position %s is beyond the event log, which ends at %s", after, head).
					At("/after", "position-in-record")
			}
			if err != nil {
				return err
			}
			if after.Less(row.At) { // else it stands before that: what lies between would never be sent
				row.At = after
			}
			return s.Hooks.Rewind(ctx, u.Tx, *row)
		})
}

// actorDelivery takes the place of a person's id in events.
const actorDelivery = "webhook-delivery"

// Disable gives a webhook up, as it was at a claim: what somebody has changed since then, or made anew under its name,
// is not what failed. The error is store.ErrLease then.
func (s *Service) Disable(ctx context.Context, l store.Lease, reason string) error {
	_, err := s.decide(ctx, model.Caller{Tenant: l.Tenant, Actor: actorDelivery}, l.Name,
		func(row store.WebhookRow) (webhook.Command, error) {
			if row.Revision != l.Revision || row.Stream != l.Stream {
				return nil, store.ErrLease
			}
			return webhook.Disable{Reason: reason}, nil
		},
		func(ctx context.Context, u *unit.Work, row *store.WebhookRow) error { return s.put(ctx, u, *row) })
	return err
}

// Delete ends a webhook. What waits is not sent.
func (s *Service) Delete(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span,
		func(ctx context.Context, u *unit.Work) (model.Removed, error) {
			_, err := unit.Decide(ctx, u, aggregate, name, webhook.State{Name: name},
				func(webhook.State) (webhook.Command, error) {
					_, err := s.Hooks.Get(ctx, u.Tx, who.Tenant, name, true) // in the order of decide
					return webhook.Delete{}, err
				})
			if err != nil {
				return model.Removed{}, err
			}
			return model.Removed{}, s.Hooks.Delete(ctx, u.Tx, who.Tenant, name)
		})
	out.Position = position
	return out, err
}

const (
	// testWithin is how long a test keeps others of its webhook out, where its process is killed meanwhile.
	testWithin = webhook.Timeout + 5*time.Second
	// testEvery is how soon after a test the next one may be.
	testEvery = time.Second
	// maxTests is how many webhooks of a tenant are tested at a time: a handful of people who set some up at once. It
	// bounds also who makes a webhook of another name for each test.
	maxTests = 8
)

// ErrTesting says that a webhook is being tested.
var ErrTesting = errs.New(errs.Unavailable,
	"a test of this webhook is under way, or was within %s, or %d others are: wait, and test again", testEvery, maxTests)

// Test sends an event that is in no log, once and now, and answers what became of it. One at a time does: who may set a
// webhook has no means to send much to others by it.
func (s *Service) Test(ctx context.Context, who model.Caller, name string) (out model.WebhookDelivery, err error) {
	var row store.WebhookRow
	if err := s.Units.Once(ctx, who, func(u *unit.Work) (err error) {
		if row, err = s.Hooks.Get(ctx, u.Tx, who.Tenant, name, false); err != nil {
			return err
		}
		mine, err := s.Hooks.BeginTest(ctx, u.Tx, who.Tenant, name, testWithin, maxTests)
		if err == nil && !mine {
			err = ErrTesting
		}
		return err
	}); err != nil {
		return out, err
	}
	now, began := s.Units.Now(), time.Now()
	event := s.Units.NewID()
	raw, err := webhook.TestEvent(name, event.String(), now)
	if err != nil {
		return out, err
	}
	d := store.Delivery{ID: messageID(row, event.String()), Type: webhook.TypeTest, Subject: name}
	a, err := s.Sender.deliver(ctx, row, d.ID, raw, now)
	if err != nil {
		return out, err
	}
	if a.Error == nowhere {
		// A name that is not known is known sooner or later than one that leads inside: all that is told of them comes
		// when an attempt ends at the latest.
		wait(ctx, webhook.Timeout-time.Since(began))
	}
	d.State, d.Status, d.Error, d.Took = store.DeliveryFailed, a.Status, a.Error, a.Took
	if a.Taken() {
		d.State = store.DeliveryDelivered
	}
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		return s.Hooks.Tested(ctx, u.Tx, row, d, now, testEvery)
	})
	return model.WebhookDelivery{
		ID: d.ID, Type: d.Type, Subject: d.Subject, State: d.State, Attempts: 1, Status: d.Status, Error: d.Error,
		TookMicros: d.Took.Microseconds(), CreatedAt: now, EndedAt: &now,
	}, err
}

// wait returns after a time, or when nobody waits for it any more.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// messageID is the webhook-id of an event for a webhook.
func messageID(row store.WebhookRow, event string) string {
	stream, err := events.ParseStreamID(row.Stream)
	if err != nil {
		return "msg_" + event // a name of a stream that String has not written: the event's own id is as good
	}
	return webhook.MessageID(stream, event)
}
