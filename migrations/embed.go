// Package migrations holds the SQL of every schema, embedded so that one binary carries what it needs.
//
// One folder per owning schema, NNNN_title.up.sql and NNNN_title.down.sql in each; README.md has the
// conventions, schema.sql the result of them all. libs/migrate runs them; nothing here runs anything.
package migrations

import "embed"

// FS holds the folders of Schemas.
//
//go:embed eventlog catalog resolver installer gateway
var FS embed.FS

// Schemas are the folders in the order in which they are migrated: eventlog first, since the others
// may refer to it; otherwise no schema refers to another.
func Schemas() []string {
	return []string{"eventlog", "catalog", "resolver", "installer", "gateway"}
}
