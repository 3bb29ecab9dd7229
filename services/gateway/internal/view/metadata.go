package view

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// labelsOf are labels as their column has them.
func labelsOf(m events.Metadata) map[string]string {
	if m.Labels == nil {
		return map[string]string{}
	}
	return m.Labels
}

// label wants a label with a value, or with any, in a column; "" wants none.
func (w *where) label(column, selector string) error {
	if selector == "" {
		return nil
	}
	key, value, hasValue := strings.Cut(selector, "=")
	if !hasValue {
		w.add("jsonb_exists("+column+", ?)", key)
		return nil
	}
	want, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "label %q", selector)
	}
	w.add(column+" @> ?::jsonb", string(want))
	return nil
}

// annotations opens the annotations behind a commitment, which stand outside the log; those that were erased are none.
func annotations(ctx context.Context, tx pgx.Tx, tenant, commitment string, into *model.Metadata) error {
	if commitment == "" {
		return nil
	}
	body, err := document(ctx, tx, `select body from gateway.bodies where tenant = $1 and commitment = $2`, tenant, commitment)
	if err != nil || body == nil {
		return err
	}
	return errs.Wrap(errs.Internal, json.Unmarshal(body, &into.Annotations), "read annotations")
}
