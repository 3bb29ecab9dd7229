package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	lite "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/errtext"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

// Bounds on a database.
const (
	// MaxFileBytes bounds the file; the largest published index has 1.2 GB.
	MaxFileBytes = 4 << 30
	// MaxCellBytes bounds one value; the largest real bundle has 6.8 MB of manifests.
	MaxCellBytes = 64 << 20
	// MaxRows bounds what is read of one table; the largest published index has 60,000 channel entries.
	MaxRows = 1_000_000
	// MaxFacts bounds what is remembered beside manifests, in bytes; 10,000 versions have about 30 MB.
	MaxFacts = 256 << 20

	// headerBytes is the size of a database's header: it counts the changes.
	headerBytes = 100
	magic       = "SQLite format 3\x00"
)

// Options say which database to read.
type Options struct {
	// Path is the file.
	Path string
	// Dir is where the catalog is written until it is closed; "" is the system's temporary directory.
	Dir string

	limits limits
}

// limits are the constants above, smaller in tests.
type limits struct {
	cell, rows, facts int
	bytes             int64
}

func (l limits) orDefault() limits {
	if l == (limits{}) {
		return limits{cell: MaxCellBytes, rows: MaxRows, facts: MaxFacts, bytes: spool.MaxBytes}
	}
	return l
}

// Probe returns the fingerprint of a database: a digest of size, time of change and header, in which
// SQLite counts changes. It reads a hundred bytes.
func Probe(_ context.Context, o Options) (string, error) {
	return inspect(o.Path)
}

// Open reads the whole catalog of a database. The tree is valid until it is closed.
func Open(ctx context.Context, o Options) (tree fs.FS, fingerprint string, closeTree func() error, err error) {
	if fingerprint, err = inspect(o.Path); err != nil {
		return nil, "", nil, err
	}
	l := o.limits.orDefault()
	s, err := spool.New(o.Dir, l.bytes)
	if err != nil {
		return nil, "", nil, err
	}
	if err = read(ctx, o.Path, l, s); err == nil {
		err = unchanged(o.Path, fingerprint)
	}
	if err != nil {
		return nil, "", nil, errors.Join(err, s.Close())
	}
	return s.FS(), fingerprint, s.Close, nil
}

// unchanged returns an error where a file is another one than before.
func unchanged(file, fingerprint string) error {
	now, err := inspect(file)
	if err == nil && now != fingerprint {
		err = errs.New(errs.Unavailable,
			"index database %s changed while it was read; it is read again at the next poll", file)
	}
	return err
}

// inspect checks a file before any of it is used, and returns its fingerprint.
func inspect(file string) (fingerprint string, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errs.New(errs.NotFound, "index database %s is not there", file).At("path", "R-CAT-75")
	}
	if err != nil {
		return "", errs.Wrap(errs.Unavailable, err, "index database")
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return "", errs.Wrap(errs.Unavailable, err, "index database")
	}
	header := make([]byte, headerBytes)
	if n, err := io.ReadFull(f, header); !st.Mode().IsRegular() || err != nil ||
		!bytes.HasPrefix(header, []byte(magic)) {
		return "", errs.New(errs.Invalid, "%s is no SQLite database (%d bytes of a header)", file, n).At(
			"path", "R-CAT-75")
	}
	if st.Size() > MaxFileBytes {
		return "", errs.New(errs.TooLarge, "index database %s has %d bytes, more than %d", file, st.Size(),
			int64(MaxFileBytes)).At("path", "sqlite.MaxFileBytes")
	}
	if wal, err := os.Stat(file + "-wal"); err == nil && wal.Size() > 0 {
		return "", errs.New(errs.Invalid,
			"index database %s has changes beside it, in %s; close the program that writes it, or run PRAGMA "+
				"wal_checkpoint(TRUNCATE)", file, filepath.Base(file)+"-wal").At("path", "R-CAT-75")
	}
	sum := sha256.Sum256(fmt.Appendf(header, "%d %d", st.Size(), st.ModTime().UnixNano()))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// read opens a database so that nothing of it can act, and reads it.
func read(ctx context.Context, file string, l limits, s *spool.Spool) (err error) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "index database")
	}
	// Immutable: no locks, no journal, no other file. Untrusted: no function of the schema may act.
	name := url.URL{
		Scheme: "file", Path: absolute,
		RawQuery: "mode=ro&immutable=1&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)&_pragma=mmap_size(0)",
	}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "index database %s", file)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return explain(ctx, file, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := lite.Limit(conn, code.SQLITE_LIMIT_LENGTH, l.cell); err != nil {
		return errs.Wrap(errs.Internal, err, "limit of index database %s", file)
	}
	d := &database{conn: conn, limits: l, tables: map[string]map[string]bool{}}
	x, err := d.index(ctx)
	if err == nil {
		err = x.write(ctx, d, s)
	}
	return explain(ctx, file, err)
}

// explain makes an error of SQLite one that says what can be done.
func explain(ctx context.Context, file string, err error) error {
	var known *errs.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if e := (*lite.Error)(nil); errors.As(err, &e) && e.Code() == code.SQLITE_TOOBIG {
		return errs.New(errs.TooLarge, "index database %s has a value of more than %d bytes", file, MaxCellBytes).At(
			"path", "sqlite.MaxCellBytes")
	}
	return errs.New(errs.Invalid, "index database %s is broken, or no catalog: %s", file,
		errtext.Clean(err.Error())).At("path", "R-CAT-75")
}
