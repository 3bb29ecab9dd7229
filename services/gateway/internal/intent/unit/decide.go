package unit

import (
	"context"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// Aggregate is what a decision needs of a pure aggregate.
type Aggregate[S, C any] struct {
	Kind    events.Kind
	Subject func(S) string // that the stream's events carry
	Decide  func(S, C) ([]events.Payload, error)
	Evolve  func(S, eventlog.Recorded) (S, error)
}

// ByPayload adapts an Evolve that needs the payload only.
func ByPayload[S any](evolve func(S, events.Payload) (S, error)) func(S, eventlog.Recorded) (S, error) {
	return func(s S, r eventlog.Recorded) (S, error) { return evolve(s, r.Payload) }
}

// Decision is what a decision came to.
type Decision[S any] struct {
	State   S
	Stream  events.StreamID
	Version int64
	Time    time.Time
}

// Decide folds the stream of a key, has the command made from its state, lets the aggregate decide and appends its
// events. initial is the state before the first event.
func Decide[S, C any](
	ctx context.Context, u *Work, a Aggregate[S, C], key string, initial S, command func(now S) (C, error),
) (Decision[S], error) {
	out := Decision[S]{State: initial, Time: u.Now()}
	head, err := u.runner.Log.Latest(ctx, u.Tx, u.Caller.Tenant, a.Kind, key)
	if err != nil {
		return out, err
	}
	stream, version := head.Create(), int64(0)
	if head.Exists() {
		stream, version = head.ID, head.Version
		if out.State, err = replay(ctx, u, a, head, initial); err != nil {
			return out, err
		}
	}
	c, err := command(out.State)
	if err != nil {
		return out, err
	}
	payloads, err := a.Decide(out.State, c)
	if err != nil {
		return out, err
	}
	before := out.State
	// Where nothing changes, the answer names the event that said so last.
	appended := eventlog.Appended{Stream: stream, Version: version, Tenant: u.Caller.Tenant}
	if len(payloads) > 0 {
		appended, err = u.runner.Log.Append(ctx, u.Tx, u.meta(ctx, out.Time), stream, a.Subject(out.State), version,
			payloads...)
		if err != nil {
			return out, err
		}
	}
	for _, p := range payloads {
		r := eventlog.Recorded{Payload: p, Envelope: events.Envelope{Time: out.Time, Actor: u.Caller.Person()}}
		if out.State, err = a.Evolve(out.State, r); err != nil {
			return out, err
		}
	}
	out.Stream, out.Version = appended.Stream, appended.Version
	u.done.last = appended
	if r := u.done.recorder; r != nil {
		err = r.add(appended, a.Subject(out.State), before, payloads)
	}
	return out, err
}

// Load folds the stream of a key; found is false where none is open.
func Load[S, C any](
	ctx context.Context, u *Work, a Aggregate[S, C], key string, initial S,
) (state S, found bool, err error) {
	head, err := u.runner.Log.Latest(ctx, u.Tx, u.Caller.Tenant, a.Kind, key)
	if err != nil || !head.Exists() {
		return initial, false, err
	}
	state, err = replay(ctx, u, a, head, initial)
	return state, true, err
}

func replay[S, C any](ctx context.Context, u *Work, a Aggregate[S, C], head eventlog.StreamHead, initial S) (S, error) {
	state := initial
	recorded, err := u.runner.Log.ReadStream(ctx, u.Tx, u.Caller.Tenant, head.ID, 0)
	if err != nil {
		return state, err
	}
	for _, r := range recorded {
		// Only what the head counted: an event after it belongs to the next attempt.
		if r.Version > head.Version {
			break
		}
		if state, err = a.Evolve(state, r); err != nil {
			return state, err
		}
	}
	return state, nil
}

func (u *Work) meta(ctx context.Context, now time.Time) events.Meta {
	command := u.NewID()
	return events.Meta{
		Tenant: u.Caller.Tenant, Source: events.Gateway, Command: command, Correlation: command.String(),
		TraceParent: telemetry.TraceParent(ctx), Actor: u.Caller.Person(), Time: now,
	}
}

// stateType is the type prefix of a state's digest.
const stateType = "chandler.intent-state.v1"

// add records one decision.
func (r *Recorder) add(a eventlog.Appended, subject string, before any, payloads []events.Payload) error {
	d, err := digest.JSON(stateType, before)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "digest of the state of %s", subject)
	}
	w := preview.Write{Subject: subject, Stream: a.Stream.String(), Before: string(d)}
	for _, p := range payloads {
		h, err := previewapi.NewHypothesis(subject, a.Stream.Incarnation, p)
		if err != nil {
			return err
		}
		w.Hypotheses = append(w.Hypotheses, h)
	}
	r.Writes, r.Appended = append(r.Writes, w), append(r.Appended, a)
	return nil
}
