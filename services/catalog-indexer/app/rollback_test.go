package app

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/migrations"
)

// TestRollback proves that after the steps down to the release before every catalog is to be polled anew: what it
// served lay in packs, which are gone.
func TestRollback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := b.add("examples", examples(t))
	b.must(b.pollOnce(stream))
	names, err := fs.Glob(migrations.FS, "catalog/*.down.sql")
	b.must(err)
	admin := b.db.Pool(t, "admin")
	for _, n := range slices.Backward(names) {
		if strings.HasPrefix(n, "catalog/0003") {
			break
		}
		body, err := fs.ReadFile(migrations.FS, n)
		b.must(err)
		if _, err := admin.Exec(t.Context(), string(body)); err != nil {
			t.Fatalf("%s: %v", n, err)
		}
	}
	var fingerprint, revision string
	var due bool
	b.must(admin.QueryRow(t.Context(),
		`select fingerprint, revision, looked < wanted from catalog.catalogs where stream = $1`, stream).Scan(
		&fingerprint, &revision, &due))
	if n := b.count("catalog.packages"); fingerprint+revision != "" || !due || n != 0 {
		t.Errorf("%d documents, fingerprint %q, revision %q, due %v", n, fingerprint, revision, due)
	}
}
