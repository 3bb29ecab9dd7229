package migrate

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// concurrentMark is the line by which a migration says that its indexes are built while the table is written. Such a
// file runs outside of a transaction, statement by statement.
var concurrentMark = regexp.MustCompile(`(?m)^-- concurrently$`)

// The two statements that a file with the mark may have: each can be done again without harm, which is what makes up
// for the missing transaction. The name of an index to be dropped carries its schema, as everywhere; that of one to be
// made must not, in PostgreSQL: it stands in the schema of its table.
var (
	createIndex = regexp.MustCompile(
		`(?is)^create\s+(?:unique\s+)?index\s+concurrently\s+([a-z0-9_]+)\s+on\s+([a-z0-9_]+)\.[a-z0-9_]+[\s(]`)
	dropIndex = regexp.MustCompile(`(?is)^drop\s+index\s+concurrently\s+if\s+exists\s+[a-z0-9_]+\.[a-z0-9_]+$`)
	comment   = regexp.MustCompile(`(?m)--.*$`)
)

// concurrentStatements are the statements of a file with the mark; nil for a file without it.
func concurrentStatements(body []byte) ([]string, error) {
	if !concurrentMark.Match(body) {
		return nil, nil
	}
	var list []string
	for s := range strings.SplitSeq(comment.ReplaceAllString(string(body), ""), ";") {
		s = strings.TrimSpace(s)
		switch {
		case s == "":
		case createIndex.MatchString(s), dropIndex.MatchString(s):
			list = append(list, s)
		default:
			return nil, errs.New(errs.Internal, "a migration with -- concurrently may hold only create index concurrently "+
				"name on schema.table, and drop index concurrently if exists schema.name; it has %q", s)
		}
	}
	return list, nil
}

// concurrent is a driver that carries out files with the mark outside of a transaction.
type concurrent struct {
	database.Driver
	db *sql.DB
}

// Run implements database.Driver.
func (c concurrent) Run(migration io.Reader) error {
	body, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	migrating, book, _ := bytes.Cut(body, []byte(booking))
	list, err := concurrentStatements(migrating)
	if err != nil {
		return err
	}
	if list == nil {
		return c.Driver.Run(bytes.NewReader(body))
	}
	// The interface of golang-migrate has no context; one that was killed leaves what the next run finds.
	if err := runConcurrent(context.Background(), c.db, list); err != nil {
		return err
	}
	return c.Driver.Run(bytes.NewReader(book))
}

// runConcurrent carries out statements one by one. It may be killed behind any of them, and in the middle of one: an
// index that is there and valid is left alone, and one that a killed run has left invalid is dropped and made anew.
func runConcurrent(ctx context.Context, db *sql.DB, list []string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// Nobody queues behind a build: it waits for transactions that are older, for as long as they take.
	if _, err := conn.ExecContext(ctx, `set lock_timeout = 0; set statement_timeout = 0`); err != nil {
		return err
	}
	for _, s := range list {
		if m := createIndex.FindStringSubmatch(s); m != nil {
			there, err := dropInvalid(ctx, conn, m[2], m[1])
			if err != nil {
				return err
			}
			if there {
				continue
			}
		}
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// dropInvalid reports whether an index is there, and drops it where it is invalid.
func dropInvalid(ctx context.Context, conn *sql.Conn, schema, index string) (there bool, err error) {
	var valid bool
	err = conn.QueryRowContext(ctx, `select i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
		join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2`, schema, index).Scan(&valid)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil || valid {
		return valid, err
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf(`drop index concurrently %s.%s`, schema, index))
	return false, err
}
