package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/migrations"
)

// Latest returns the version of a schema that this program carries; 0 for a folder without migrations.
func Latest(schema string) (int64, error) {
	names, err := fs.Glob(migrations.FS, schema+"/*.up.sql")
	if err != nil {
		return 0, fmt.Errorf("list migrations of %s: %w", schema, err)
	}
	var latest int64
	for _, n := range names {
		number, _, ok := strings.Cut(strings.TrimPrefix(n, schema+"/"), "_")
		v, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || v < 1 {
			return 0, fmt.Errorf("migration %s: its name must begin with a number and an underscore", n)
		}
		latest = max(latest, v)
	}
	return latest, nil
}

// closes reports whether a type ends its stream; the names of all that do end so.
func closes(t events.Type) bool {
	return strings.HasSuffix(string(t), ".deleted.v1") || strings.HasSuffix(string(t), ".removed.v1")
}

// release is how the version of a release begins. A build from source has the name of its commit, or none.
var release = regexp.MustCompile(`^v?\d+\.`)

// olderThan compares two releases "major.minor.patch". What follows a "-" or "+" does not count: the
// schema of a pre-release is that of its release. A build from source counts as the newest.
func olderThan(binary, oldest string) (bool, error) {
	if !release.MatchString(binary) {
		return false, nil
	}
	b, err := numbers(binary)
	if err != nil {
		return false, err
	}
	o, err := numbers(oldest)
	if err != nil {
		return false, err
	}
	for i := range b {
		if b[i] != o[i] {
			return b[i] < o[i], nil
		}
	}
	return false, nil
}

func numbers(release string) ([3]int, error) {
	var n [3]int
	core := strings.TrimPrefix(release, "v")
	if i := strings.IndexAny(core, "-+"); i >= 0 {
		core = core[:i]
	}
	parts := strings.Split(core, ".")
	if len(parts) != len(n) {
		return n, errs.New(errs.Internal, "release %q: want major.minor.patch", release)
	}
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil {
			return n, errs.New(errs.Internal, "release %q: want major.minor.patch", release)
		}
		n[i] = v
	}
	return n, nil
}

// checkError says what a failed look at the schema means. A database that was never migrated has no
// such table or no such schema.
func checkError(err error) error {
	var p *pgconn.PgError
	if errors.As(err, &p) && (p.Code == "42P01" || p.Code == "3F000" || p.Code == "42501") {
		return errs.New(errs.Unavailable,
			"the database has no Chandler schema that this role can see (%s): run the migration command, chandler migrate, first",
			p.Message)
	}
	return fmt.Errorf("read the version of the schema: %w", err)
}

// statement is the line by which a migration says until which version of its schema it reaches back: binaries made for
// that version, and later ones, work with the schema behind it.
var statement = regexp.MustCompile(`(?m)^-- compatible: (\d+)$`)

// compatibleFrom is the oldest version of a schema whose binaries work with the latest one that this program carries.
func compatibleFrom(schema string) (int64, error) {
	names, err := fs.Glob(migrations.FS, schema+"/*.up.sql")
	if err != nil {
		return 0, fmt.Errorf("list migrations of %s: %w", schema, err)
	}
	back := map[int64]int64{}
	for _, n := range names {
		body, err := fs.ReadFile(migrations.FS, n)
		if err != nil {
			return 0, fmt.Errorf("read migration %s: %w", n, err)
		}
		number, _, _ := strings.Cut(strings.TrimPrefix(n, schema+"/"), "_")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", n, err)
		}
		if back[v], err = reachesBack(v, body); err != nil {
			return 0, fmt.Errorf("migration %s: %w", n, err)
		}
	}
	latest, err := Latest(schema)
	if err != nil {
		return 0, err
	}
	return oldestServed(latest, back), nil
}

// reachesBack reads the statement of migration v. One that says nothing reaches back to itself: what is not known to
// be harmless is taken for harmful, and an older program is refused rather than let write what is wrong.
func reachesBack(v int64, body []byte) (int64, error) {
	m := statement.FindSubmatch(body)
	if m == nil {
		return v, nil
	}
	from, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil || from > v {
		return 0, errs.New(errs.Internal, `"-- compatible: %s": want a version of the schema from 0 to %d`, m[1], v)
	}
	return from, nil
}

// oldestServed is the smallest version that all later migrations reach back to.
func oldestServed(latest int64, back map[int64]int64) int64 {
	reach := int64(0) // how far those behind v reach back, at least
	for v := latest; ; v-- {
		reach = max(reach, back[v])
		if v == 0 || reach >= v {
			return v
		}
	}
}
