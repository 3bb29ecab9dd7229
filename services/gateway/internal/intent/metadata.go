package intent

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/metadata"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// kindAnnotations is the kind of body that holds annotations.
const kindAnnotations = "annotations"

// metadata checks labels and annotations of an intent, and stores the annotations.
func (s *Service) metadata(ctx context.Context, tx pgx.Tx, who model.Caller, kind events.Kind, in model.Metadata, now events.Metadata) (events.Metadata, error) {
	in = in.Kept()
	out := events.Metadata{Labels: in.Labels}
	var v rule.Violations
	metadata.Check(&v, "", kind, in)
	if err := v.Err(); err != nil || len(in.Annotations) == 0 {
		return out, err
	}
	body, err := digest.Canonical(in.Annotations)
	if err != nil {
		return out, errs.Wrap(errs.Invalid, err, "annotations cannot be written as canonical JSON")
	}
	out.Annotations, err = s.Bodies.Commit(ctx, tx, who.Tenant, kindAnnotations, body, announced(ctx).AnnotationsOr(now.Annotations))
	return out, err
}

// currentMetadata is what people last said of labels and annotations. Annotations that were erased are none.
func (s *Service) currentMetadata(ctx context.Context, tx pgx.Tx, who model.Caller, now events.Metadata) (model.Metadata, error) {
	out := model.Metadata{Labels: now.Labels}
	if now.Annotations == "" {
		return out, nil
	}
	body, err := s.Bodies.Body(ctx, tx, who.Tenant, now.Annotations)
	if err != nil || body == nil {
		return out, err
	}
	return out, errs.Wrap(errs.Internal, json.Unmarshal(body, &out.Annotations), "read annotations")
}
