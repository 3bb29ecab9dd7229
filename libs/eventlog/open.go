package eventlog

import (
	"context"
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// AnyOpen reports whether a stream of a kind, whose subject begins with a prefix, exists and was not ended. It asks the
// heads, so that it knows of what was appended a moment ago, and looks at all of a tenant's: not for what many ask
// often.
func (l *Log) AnyOpen(ctx context.Context, q pg.Querier, tenant string, kind events.Kind, prefix string) (
	is bool, err error,
) {
	like := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(prefix) + "%"
	err = q.QueryRow(ctx, `select exists (select from eventlog.streams where tenant = $1 and kind = $2 and not closed
		and subject like $3)`,
		tenant, string(kind), like).Scan(&is)
	if err != nil {
		return false, fmt.Errorf("look for a %s below %q: %w", kind, prefix, pg.Err(err))
	}
	return is, nil
}
