package view

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Kinds of messages in installer_api.messages.
const (
	messageCluster = "cluster"
	messagePlan    = "installplan"
	messageCSV     = "csv"
)

// say adds the installer's sentences for people to items. place gives an item's subject and where its
// sentence goes; an empty subject asks for none. It is a query of its own rather than a join, since
// the planner does not reach into a security barrier with the keys of a join.
func say[T any](ctx context.Context, q pg.Querier, tenant, kind string, items []T, place func(*T) (subject string, message *string)) error {
	want := map[string]*string{}
	subjects := make([]string, 0, len(items))
	for i := range items {
		if subject, message := place(&items[i]); subject != "" {
			want[subject] = message
			subjects = append(subjects, subject)
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `select subject, message from installer_api.messages where tenant = $1 and kind = $2 and subject = any ($3)`,
		tenant, kind, subjects)
	if err != nil {
		return err
	}
	var subject, message string
	_, err = pgx.ForEachRow(rows, []any{&subject, &message}, func() error {
		*want[subject] = message
		return nil
	})
	return err
}

// document reads one JSON document by a query with one text or bytea column, nil where there is none.
func document(ctx context.Context, q pg.Querier, sql string, args ...any) (json.RawMessage, error) {
	var raw []byte
	err := pg.Err(q.QueryRow(ctx, sql, args...).Scan(&raw))
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !json.Valid(raw) {
		return nil, errs.New(errs.Internal, "a stored document is not JSON")
	}
	return raw, nil
}
