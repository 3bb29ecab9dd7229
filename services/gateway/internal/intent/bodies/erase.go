package bodies

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Service erases bodies.
type Service struct {
	Units *unit.Runner
	// LegalHold refuses every erasure.
	LegalHold bool
}

// Erase erases a body for good: events keep its commitment, and who erased it when is an event in the same transaction.
// Who erases it again is told when it was erased.
func (s *Service) Erase(ctx context.Context, who model.Caller, id string) (model.ErasedBody, error) {
	if s.LegalHold {
		return model.ErasedBody{}, errs.New(errs.Conflict,
			"a legal hold is set (setting legal-hold of the gateway): nothing is erased until it is lifted").
			At("path.id", "legal-hold")
	}
	var erased model.ErasedBody
	err := s.Units.Run(ctx, who, "intent erase body", func(ctx context.Context, u *unit.Work) error {
		e := model.ErasedBody{ID: id, ErasedAt: u.Now(), ErasedBy: who.Person()}
		var done bool
		var err error
		erased, done, err = u.Bodies().Erase(ctx, u.Tx, who.Tenant, e)
		if err != nil || !done {
			return err
		}
		return u.Append(ctx, "body/"+id, events.BodyErased{Body: id, Kind: erased.Kind})
	})
	return erased, err
}
