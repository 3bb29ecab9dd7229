// Package bodies stores the parts of intents that stay outside the event log because they may have to be erased: events
// have a commitment to them only.
package bodies

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/metadata"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Commit stores a body and returns its commitment: previous where that is a commitment to the same body.
func Commit(ctx context.Context, u *unit.Work, kind bodies.Kind, body []byte, previous string) (string, error) {
	return u.Bodies().Commit(ctx, u.Tx, u.Caller.Tenant, kind, body, previous)
}

// Read returns the body of a commitment, nil where it was erased.
func Read(ctx context.Context, u *unit.Work, commitment string) ([]byte, error) {
	return u.Bodies().Body(ctx, u.Tx, u.Caller.Tenant, commitment)
}

// CommitMetadata checks labels and annotations of an intent, and stores the annotations. now is what the object has.
func CommitMetadata(
	ctx context.Context, u *unit.Work, kind events.Kind, in model.Metadata, now events.Metadata,
) (events.Metadata, error) {
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
	out.Annotations, err = Commit(ctx, u, store.KindAnnotations, body, u.Announced().AnnotationsOr(now.Annotations))
	return out, err
}

// Metadata returns labels and annotations that were committed to, without annotations that were erased.
func Metadata(ctx context.Context, u *unit.Work, now events.Metadata) (model.Metadata, error) {
	out := model.Metadata{Labels: now.Labels}
	if now.Annotations == "" {
		return out, nil
	}
	body, err := Read(ctx, u, now.Annotations)
	if err != nil || body == nil {
		return out, err
	}
	return out, errs.Wrap(errs.Internal, json.Unmarshal(body, &out.Annotations), "read annotations")
}
