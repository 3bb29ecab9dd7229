package eventlog

import (
	"context"
	"fmt"

	"github.com/chandler-fleet/chandler/libs/pg"
)

// Installation is who this installation is: the same for every process with this database, and after a restore.
type Installation struct {
	ID string // a UUID
	// HintKey authenticates hints: whoever knows it can read the log's database.
	HintKey []byte
}

// Installation reads it.
func (l *Log) Installation(ctx context.Context) (i Installation, err error) {
	err = l.pool.QueryRow(ctx, `select id::text, hint_key from eventlog.installation`).Scan(&i.ID, &i.HintKey)
	if err != nil {
		return i, fmt.Errorf("read the installation: %w", pg.Err(err))
	}
	return i, nil
}
