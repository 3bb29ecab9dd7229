package unit

import (
	"context"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// Aggregate is what a decision needs of a pure aggregate.
type Aggregate[S, C any] struct {
	Kind    events.Kind
	Subject func(S) string // that the stream's events carry
	Decide  func(S, C) ([]events.Payload, error)
	Evolve  func(S, eventlog.Recorded) (S, error)
	// Passing are events that ask for something to be done once, and change nothing of what people ask for.
	Passing []events.Type
	// Version is of a stream that several objects share: at which version of the stream the one that a change is about
	// was defined last, 0 where it is not there. What happened to the others is no change of it.
	Version func(S) int64
}

// object is at which version a change finds its object, and at which people changed last what they ask of it.
func (a Aggregate[S, C]) object(s S, version, intent int64) (there, asked int64) {
	if a.Version == nil {
		return version, intent
	}
	there = a.Version(s)
	return there, there
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
	return decide(ctx, u, a, key, initial, command, model.Match{Optional: true})
}

// Change is Decide for the one object that a request is about: what the request wants of it is checked.
func Change[S, C any](
	ctx context.Context, u *Work, a Aggregate[S, C], key string, initial S, command func(now S) (C, error),
) (Decision[S], error) {
	match, asked := ctx.Value(matchKey{}).(model.Match)
	match.Optional = match.Optional || !asked
	return decide(ctx, u, a, key, initial, command, match)
}

type matchKey struct{}

// Matching has the changes of ctx be about an object that matches.
func Matching(ctx context.Context, m model.Match) context.Context {
	return context.WithValue(ctx, matchKey{}, m)
}

// PreconditionError is a change that was decided on another state of its object, or on none that it names.
type PreconditionError struct {
	err      *errs.Error
	Required bool // there should be a precondition
}

func (e *PreconditionError) Error() string { return e.err.Error() }

// Unwrap returns the error of the field.
func (e *PreconditionError) Unwrap() error { return e.err }

// precondition is checked when everything else has passed, so that who may not see the object learns nothing of it.
func precondition(m model.Match, head eventlog.StreamHead, version, intent int64) error {
	switch {
	case !m.Given() && !m.Optional && version > 0:
		return &PreconditionError{errs.New(errs.Invalid,
			"the object is there: name the version that is to be replaced, its ETag, in If-Match; * is whatever is there").
			At("header.If-Match", "precondition"), true}
	case m.Holds(head.ID.Incarnation, version, intent):
		return nil
	case m.None:
		return &PreconditionError{errs.New(errs.Conflict, "the object is there, and If-None-Match wants that it is not").
			At("header.If-None-Match", "precondition"), false}
	case version == 0:
		return &PreconditionError{errs.New(errs.Conflict, "the object is not there, and If-Match wants that it is").
			At("header.If-Match", "precondition"), false}
	default:
		return &PreconditionError{errs.New(errs.Conflict,
			"somebody changed the object since the version that If-Match names: read it again, and decide again").
			At("header.If-Match", "precondition"), false}
	}
}

func decide[S, C any](
	ctx context.Context, u *Work, a Aggregate[S, C], key string, initial S, command func(now S) (C, error),
	match model.Match,
) (Decision[S], error) {
	out := Decision[S]{State: initial, Time: u.Now()}
	head, err := u.Latest(ctx, a.Kind, key)
	if err != nil {
		return out, err
	}
	stream, version, intent := head.Create(), int64(0), int64(0)
	if head.Exists() {
		stream, version = head.ID, head.Version
		if out.State, intent, err = replay(ctx, u, a, head, initial); err != nil {
			return out, err
		}
	}
	c, err := command(out.State)
	if err != nil {
		return out, err
	}
	payloads, err := a.Decide(out.State, c)
	if err == nil {
		there, asked := a.object(out.State, version, intent)
		err = precondition(match, head, there, asked)
	}
	if err != nil {
		return out, err
	}
	if len(payloads) > 0 && !head.Exists() {
		if err := u.admit(ctx, a.Kind); err != nil {
			return out, err
		}
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
	for i, p := range payloads {
		r := eventlog.Recorded{Payload: p, Envelope: events.Envelope{
			Time: out.Time, Actor: u.Caller.Person(), Via: u.Caller.Via(),
			Version: appended.Version - int64(len(payloads)-1-i),
		}}
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

// admit holds the tenant to its quota when something new is made. What the configuration of the installation makes is
// not refused.
func (u *Work) admit(ctx context.Context, kind events.Kind) error {
	if u.Caller.Person() == model.ActorConfiguration {
		return nil
	}
	return store.Quotas{}.Admit(ctx, u.Tx, u.Caller.Tenant, kind)
}

// Load folds the stream of a key; found is false where none is open.
func Load[S, C any](
	ctx context.Context, u *Work, a Aggregate[S, C], key string, initial S,
) (state S, found bool, err error) {
	head, err := u.Latest(ctx, a.Kind, key)
	if err != nil || !head.Exists() {
		return initial, false, err
	}
	state, _, err = replay(ctx, u, a, head, initial)
	return state, true, err
}

// LoadLast is Load of a thing that need not live any more: found is false where there never was one.
func LoadLast[S, C any](
	ctx context.Context, u *Work, a Aggregate[S, C], key string, initial S,
) (state S, found bool, err error) {
	head, err := u.Latest(ctx, a.Kind, key)
	if err != nil || head.Version == 0 {
		return initial, false, err
	}
	state, _, err = replay(ctx, u, a, head, initial)
	return state, true, err
}

// replay folds a stream. intent is the version of its last event that says what people ask for, also through a fleet
// subscription.
func replay[S, C any](
	ctx context.Context, u *Work, a Aggregate[S, C], head eventlog.StreamHead, initial S,
) (state S, intent int64, err error) {
	state = initial
	recorded, err := u.runner.Log.ReadStream(ctx, u.Tx, u.Caller.Tenant, head.ID, 0)
	if err != nil {
		return state, 0, err
	}
	for _, r := range recorded {
		// Only what the head counted: an event after it belongs to the next attempt.
		if r.Version > head.Version {
			break
		}
		if state, err = a.Evolve(state, r); err != nil {
			return state, 0, err
		}
		d, known := events.Lookup(r.Type)
		asks := d.Writer == events.Gateway || d.Writer == events.Fleet
		if known && asks && !slices.Contains(a.Passing, r.Type) {
			intent = r.Version
		}
	}
	return state, intent, nil
}

func (u *Work) meta(ctx context.Context, now time.Time) events.Meta {
	command := u.NewID()
	return events.Meta{
		Tenant: u.Caller.Tenant, Source: events.Gateway, Command: command, Correlation: command.String(),
		TraceParent: telemetry.TraceParent(ctx), Actor: u.Caller.Person(), Via: u.Caller.Via(), Time: now,
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
