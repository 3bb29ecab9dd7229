package readmodel

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Document reads one JSON document by a query with one text or bytea column, nil where there is none.
func Document(ctx context.Context, q pg.Querier, sql string, args ...any) (json.RawMessage, error) {
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

// Kinds of messages in installer_api.messages.
const (
	MessageCluster = "cluster"
	MessageReports = "cluster-reports" // about what came of a cluster that nobody asked for
	MessagePlan    = "installplan"
	MessageCSV     = "csv"
	MessageRemoval = "removal"
	MessageGroup   = "operatorgroup" // its subjects end in the type of a condition
)

// AddMessages adds the installer's messages for people to items. place gives an item's subject and where its message
// goes; an empty subject asks for none. It is a query of its own rather than a join, since the planner does not reach
// into a security barrier with the keys of a join.
func AddMessages[T any](
	ctx context.Context, q pg.Querier, tenant, kind string, items []T, place func(*T) (subject string, message *string),
) error {
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
	rows, err := q.Query(ctx, `select subject, message from installer_api.messages where tenant = $1 and kind = $2
		and subject = any ($3)`,
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

// Detail is a column of JSON, as text, and where it goes; a column that is null is left out.
type Detail struct {
	Text *string
	Into any
}

// Unpack reads details of an object.
func Unpack(of string, details ...Detail) error {
	for _, d := range details {
		if d.Text == nil {
			continue
		}
		if err := json.Unmarshal([]byte(*d.Text), d.Into); err != nil {
			return errs.Wrap(errs.Internal, err, "details of %s", of)
		}
	}
	return nil
}
