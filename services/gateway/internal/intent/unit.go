package intent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// unit is one transaction for several intents. They run as they always do, with all their checks, but neither commit
// nor wait for positions: whoever opened the unit commits all of them, or takes all of them back after a look at
// what they would have written.
type unit struct {
	tx       pgx.Tx
	writes   []preview.Write
	appended []eventlog.Appended // one for each of writes
	// announced are the commitments of a preview by write: the same configuration is committed to by the same words
	// again, so that a plan that rests on it keeps its digest. What commits to something writes after it, so that the number
	// of writes so far is the place of the next one.
	announced []preview.Commitments
	warnings  []string
}

type unitKey struct{}

func withUnit(ctx context.Context, u *unit) context.Context {
	return context.WithValue(ctx, unitKey{}, u)
}

// unitOf returns the unit that a context belongs to; nil without one.
func unitOf(ctx context.Context) *unit {
	u, _ := ctx.Value(unitKey{}).(*unit)
	return u
}

// stateType is the type prefix of a state's digest.
const stateType = "chandler.intent-state.v1"

// note keeps what an intent appended in the context's unit; without one there is nothing to do.
func note(ctx context.Context, a eventlog.Appended, subject string, before any, payloads []events.Payload) error {
	u := unitOf(ctx)
	if u == nil {
		return nil
	}
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
	u.writes, u.appended = append(u.writes, w), append(u.appended, a)
	return nil
}

// announced are the commitments that a preview announced for the write that is being made; none outside of one.
func announced(ctx context.Context) preview.Commitments {
	if u := unitOf(ctx); u != nil && len(u.writes) < len(u.announced) {
		return u.announced[len(u.writes)]
	}
	return preview.Commitments{}
}
