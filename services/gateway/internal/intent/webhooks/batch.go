package webhooks

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

const (
	// maxWaiting bounds the deliveries of a webhook that wait. Further events stay in the log.
	maxWaiting = 1000
	// maxTaken bounds what is made of the log at a time, what a batch sends, and so what a process that is killed may
	// have sent without a record of it.
	maxTaken = 128
	// width is how many subjects of a webhook are sent at a time.
	width = 8
	// batchTime is how long a batch begins further attempts: what was sent is recorded soon.
	batchTime = 2 * time.Second
	// recordWithin bounds the record of a batch: with batchTime, and an attempt that began at its end, it is what renew
	// leaves of a lease. What is not recorded would be sent again.
	recordWithin = 8 * time.Second
	// enough failures without a success end a batch: the receiver is away, and the rest waits for it unasked.
	enough = width
)

// batch is what is sent between two records.
type batch struct {
	s     *sending
	queue chan []store.Delivery // of one subject each, in the order of the log
	ends  time.Time

	mu      sync.Mutex
	done    []store.Delivery
	success *time.Time
	failed  int
	gone    bool
	err     error
}

// send sends what is due, and records what became of it.
func (s *sending) send(ctx context.Context) (bool, error) {
	due := s.due(s.d.Service.Units.Now())
	if len(due) == 0 {
		return false, nil
	}
	b := &batch{s: s, queue: make(chan []store.Delivery, len(due)), ends: time.Now().Add(batchTime)}
	for _, subject := range due {
		b.queue <- subject
	}
	close(b.queue)
	var all sync.WaitGroup
	for range min(width, len(due)) {
		all.Go(func() { b.work(ctx) })
	}
	all.Wait()
	// What was sent is recorded also where this process stops: else it would be sent again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	err := s.record(ctx, b)
	s.forget()
	return true, err
}

// forget lets go of the events of deliveries that are not due: it may be days until they are sent.
func (s *sending) forget() {
	due := map[string][]byte{}
	for _, subject := range s.due(s.d.Service.Units.Now()) {
		for _, d := range subject {
			if raw, there := s.bodies[d.ID]; there {
				due[d.ID] = raw
			}
		}
	}
	s.bodies = due
}

// due are the deliveries that may be sent now, by subject, where the first of a subject is due: at most maxTaken.
func (s *sending) due(now time.Time) [][]store.Delivery {
	var out [][]store.Delivery
	index := map[string]int{}
	n := 0
	for _, w := range s.waiting {
		i, known := index[w.Subject]
		switch {
		case n == maxTaken:
			return out
		case !known && w.Next != nil && now.Before(*w.Next):
			index[w.Subject] = -1 // it waits, and so does all behind it
		case !known:
			index[w.Subject] = len(out)
			out = append(out, []store.Delivery{w})
			n++
		case i >= 0:
			out[i] = append(out[i], w)
			n++
		}
	}
	return out
}

// work sends subject after subject, until the batch has lasted long enough.
func (b *batch) work(ctx context.Context) {
	for subject := range b.queue {
		for _, d := range subject {
			if b.over(ctx) || !b.attempt(ctx, d) {
				break
			}
		}
	}
}

func (b *batch) over(ctx context.Context) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ctx.Err() != nil || b.err != nil || b.gone || time.Now().After(b.ends) ||
		b.failed >= enough && b.success == nil
}

// attempt sends one delivery, and says whether the next of its subject may go.
func (b *batch) attempt(ctx context.Context, d store.Delivery) bool {
	now := b.s.d.Service.Units.Now()
	event, there, err := b.s.event(ctx, d)
	var a Answer
	if err == nil && there {
		a, err = b.s.d.Service.Sender.deliver(ctx, b.s.row, d.ID, event, now)
	}
	if err != nil || ctx.Err() != nil && !a.Taken() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = err // an attempt that was cut off here is none of the receiver's
		return false
	}
	if !there {
		d.State, d.Ended = store.DeliveryWithdrawn, &now
	} else {
		d = attempted(d, a, now, b.s.d.Random())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = append(b.done, d)
	switch d.State {
	case store.DeliveryDelivered:
		b.success = &now
	case store.DeliveryPending:
		b.failed++
		b.gone = b.gone || a.Status == http.StatusGone
	}
	return d.State != store.DeliveryPending
}

// attempted is a delivery after an attempt.
func attempted(d store.Delivery, a Answer, now time.Time, random float64) store.Delivery {
	d.Attempts++
	d.Status, d.Error, d.Took = a.Status, a.Error, a.Took
	if d.First == nil {
		d.First = &now
	}
	if a.Taken() {
		d.State, d.Ended, d.Next = store.DeliveryDelivered, &now, nil
		return d
	}
	next := now.Add(webhook.Pause(d.Attempts, random, a.RetryAfter))
	d.State, d.Next = store.DeliveryPending, &next
	return d
}

// event is the event of a delivery, as its owner may see it; there is none where they may not.
func (s *sending) event(ctx context.Context, d store.Delivery) (raw []byte, there bool, err error) {
	if raw, there = s.bodies[d.ID]; there {
		return raw, true, nil
	}
	before := events.Position{Epoch: d.Position.Epoch, N: d.Position.N - 1}
	who, nowhere, err := s.d.caller(ctx, s.row)
	if err == nil && nowhere {
		err = store.ErrLease // the next turn gives the webhook up, and what waits stays
	}
	if err != nil {
		return nil, false, err
	}
	// Its type may be one that this program does not know.
	list, _, _, err := s.d.Events.Behind(ctx, who, model.EventFilter{
		Subject: d.Subject, After: before.String(), Limit: 1,
	})
	if err != nil || len(list) == 0 || list[0].Position != d.Position {
		return nil, false, err
	}
	return list[0].JSON, true, nil
}

// record keeps what became of a batch, and gives the webhook up where its receiver has gone, or has taken nothing for
// as long as messages are tried again.
func (s *sending) record(ctx context.Context, b *batch) error {
	giveUp := ""
	if b.success != nil {
		s.row.LastSuccess = b.success
	}
	ended := map[string]store.Delivery{}
	for i, d := range b.done {
		if d.State == store.DeliveryPending && webhook.Over(d.Since, *d.Next, d.Attempts) {
			if last := s.row.LastSuccess; last == nil || last.Before(d.Since) {
				giveUp = webhook.ReasonFailing
			} else {
				b.done[i].State, b.done[i].Ended, b.done[i].Next = store.DeliveryFailed, d.Next, nil
			}
		}
		ended[d.ID] = b.done[i]
	}
	if b.gone {
		giveUp = webhook.ReasonGone
	}
	if err := s.d.Service.Units.Work.Tx(ctx, func(tx pgx.Tx) error {
		return s.d.Service.Hooks.Record(ctx, tx, s.lease, b.done, b.success)
	}); err != nil {
		return err
	}
	s.settle(ended)
	if giveUp != "" {
		return s.disable(ctx, giveUp)
	}
	return b.err
}

// settle takes what became of deliveries over into those that wait.
func (s *sending) settle(ended map[string]store.Delivery) {
	left := s.waiting[:0]
	for _, w := range s.waiting {
		d, tried := ended[w.ID]
		switch {
		case !tried:
			left = append(left, w)
		case d.State == store.DeliveryPending:
			left = append(left, d)
		}
	}
	s.waiting = left
}

// makeRoom ends what the receiver refuses while it takes others, where that has all the places: else one kind of event
// that it does not understand would end all others.
func (s *sending) makeRoom(ctx context.Context) error {
	if !s.full() {
		return nil
	}
	now := s.d.Service.Units.Now()
	list := refused(s.waiting, s.row.LastSuccess)
	if len(list) == 0 {
		return nil
	}
	ended, ids := map[string]store.Delivery{}, make([]string, len(list))
	for i, d := range list {
		ids[i], d.State = d.ID, store.DeliveryFailed
		ended[d.ID] = d
	}
	if err := s.d.Service.Units.Work.Tx(ctx, func(tx pgx.Tx) error {
		return s.d.Service.Hooks.Crowded(ctx, tx, s.lease, ids, now)
	}); err != nil {
		return err
	}
	s.settle(ended)
	return nil
}

// full says that there may be no place for what the log has next.
func (s *sending) full() bool { return len(s.waiting) > maxWaiting-maxTaken }

// refused are the oldest of those that wait which the receiver refused more than once while it took others: at most
// maxTaken, which is the room that is needed.
func refused(waiting []store.Delivery, success *time.Time) []store.Delivery {
	var out []store.Delivery
	for _, w := range waiting {
		if len(out) < maxTaken && w.Attempts >= webhook.Refusals && final(w.Status) && w.First != nil &&
			success != nil && success.After(*w.First) {
			out = append(out, w)
		}
	}
	return out
}

// final says whether an answer is about the message, and not about the moment: the same again will not be taken.
func final(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return false
	default:
		return status >= http.StatusBadRequest && status < http.StatusInternalServerError
	}
}
