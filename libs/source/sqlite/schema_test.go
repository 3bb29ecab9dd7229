package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/source/internal/sourcetest"
)

// first are the tables of the first index databases, last those of the last.
const (
	first = `
create table operatorbundle (name text primary key, csv text unique, bundle text);
create table package (name text primary key, default_channel text, foreign key(name, default_channel) references channel(package_name, name));
create table channel (name text, package_name text, head_operatorbundle_name text, primary key(name, package_name), foreign key(package_name) references package(name), foreign key(head_operatorbundle_name) references operatorbundle(name));
create table channel_entry (entry_id integer primary key, channel_name text, package_name text, operatorbundle_name text, replaces integer, depth integer, foreign key(replaces) references channel_entry(entry_id) deferrable initially deferred, foreign key(channel_name, package_name) references channel(name, package_name));
create table api (group_name text, version text, kind text, plural text not null, primary key(group_name, version, kind));
create table api_provider (group_name text, version text, kind text, channel_entry_id integer, foreign key(channel_entry_id) references channel_entry(entry_id), foreign key(group_name, version, kind) references api(group_name, version, kind));
`
	last = `
create table schema_migrations (version integer primary key);
insert into schema_migrations values (13);
create table operatorbundle (name text primary key, csv text, bundle text, bundlepath text, skiprange text, version text, replaces text, skips text, substitutesfor text);
create unique index pk on operatorbundle(name, version, bundlepath);
create table package (name text primary key, default_channel text, foreign key(name, default_channel) references channel(package_name, name) on delete cascade);
create table channel (name text, package_name text, head_operatorbundle_name text, primary key(name, package_name), foreign key(head_operatorbundle_name) references operatorbundle(name) on delete cascade);
create table channel_entry (entry_id integer primary key, channel_name text, package_name text, operatorbundle_name text, replaces integer, depth integer, foreign key(replaces) references channel_entry(entry_id) deferrable initially deferred, foreign key(channel_name, package_name) references channel(name, package_name) on delete cascade);
create table api (group_name text, version text, kind text, plural text not null, primary key(group_name, version, kind));
create table api_provider (group_name text, version text, kind text, operatorbundle_name text, operatorbundle_version text, operatorbundle_path text);
create table api_requirer (group_name text, version text, kind text, operatorbundle_name text, operatorbundle_version text, operatorbundle_path text);
create table related_image (image text, operatorbundle_name text, foreign key(operatorbundle_name) references operatorbundle(name) on delete cascade);
create table dependencies (type text, value text, operatorbundle_name text, operatorbundle_version text, operatorbundle_path text);
create table properties (type text, value text, operatorbundle_name text, operatorbundle_version text, operatorbundle_path text);
create table deprecated (operatorbundle_name text primary key);
`
)

// builder fills a database as the tools of its time did.
type builder struct {
	*testing.T

	db   *sql.DB
	file string
}

func newDatabase(t *testing.T, schema string) *builder {
	t.Helper()
	file := filepath.Join(t.TempDir(), "index.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{T: t, db: db, file: file}
	b.exec(schema)
	return b
}

func (b *builder) exec(query string, args ...any) int64 {
	b.Helper()
	r, err := b.db.ExecContext(context.Background(), query, args...)
	if err != nil {
		b.Fatalf("%.200s: %v", query, err)
	}
	id, err := r.LastInsertId()
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// done closes the database and returns its file.
func (b *builder) done() string {
	b.Helper()
	if err := b.db.Close(); err != nil {
		b.Fatal(err)
	}
	return b.file
}

// fill puts a catalog into a database. Images, where given, names the image of a bundle; then manifests
// stay with heads of channels alone, as they did in published indexes.
func (b *builder) fill(c *load.Catalog, store *sourcetest.Store, schema string, image func(catalog.Bundle) string) {
	b.Helper()
	for _, p := range c.Packages {
		heads := map[string]bool{}
		for _, ch := range p.Channels {
			heads[catalog.Heads(ch)[0]] = true
		}
		for _, bun := range p.Bundles {
			b.bundle(bun, store, schema, image(bun), heads[bun.Name] || image(bun) == "")
		}
		b.exec(`insert into package(name) values (?)`, p.Name)
		for _, ch := range p.Channels {
			b.channel(p.Name, ch)
		}
		b.exec(`update package set default_channel = ? where name = ?`, p.DefaultChannel, p.Name)
	}
}

// bundle adds one bundle.
func (b *builder) bundle(bun catalog.Bundle, store *sourcetest.Store, schema, image string, whole bool) {
	b.Helper()
	raw, err := store.Content(bun.Content)
	if err != nil {
		b.Fatal(err)
	}
	var content bundle.Content
	if err := json.Unmarshal(raw, &content); err != nil {
		b.Fatal(err)
	}
	var manifests strings.Builder
	for _, m := range content.Manifests {
		manifests.Write(m)
		manifests.WriteByte('\n')
	}
	csv, err := content.CSV()
	if err != nil {
		b.Fatal(err)
	}
	if schema == first {
		b.exec(`insert into operatorbundle(name, csv, bundle) values (?, ?, ?)`, bun.Name, []byte(csv.Raw),
			manifests.String())
		return
	}
	var csvText, text any
	if whole {
		csvText, text = []byte(csv.Raw), []byte(manifests.String())
	}
	b.exec(
		`insert into operatorbundle(name, csv, bundle, bundlepath, version, skiprange, replaces, skips) values (?, ?, ?, ?, ?, ?, ?, ?)`,
		bun.Name, csvText, text, image, bun.Version, csv.Annotations["olm.skipRange"], csv.Spec.Replaces,
		strings.Join(csv.Spec.Skips, ","))
	for _, i := range bun.RelatedImages {
		if i.Image != image {
			b.exec(`insert into related_image(image, operatorbundle_name) values (?, ?)`, i.Image, bun.Name)
		}
	}
	for _, q := range bun.Properties {
		typ, value, table := q.Type, string(q.Value), "properties"
		switch q.Type {
		case catalog.TypeGVKRequired:
			typ, table = catalog.TypeGVK, "dependencies"
		case catalog.TypePackageRequired:
			var v catalog.PackageRequired
			if err := json.Unmarshal(q.Value, &v); err != nil {
				b.Fatal(err)
			}
			dep, err := json.Marshal(catalog.PackageProperty{PackageName: v.PackageName, Version: v.VersionRange})
			if err != nil {
				b.Fatal(err)
			}
			typ, table, value = catalog.TypePackage, "dependencies", string(dep)
		case catalog.TypeGVK:
			var g catalog.GVK
			if err := json.Unmarshal(q.Value, &g); err != nil {
				b.Fatal(err)
			}
			b.exec(`insert into api_provider values (?, ?, ?, ?, ?, ?)`, g.Group, g.Version, g.Kind, bun.Name,
				bun.Version, image)
		}
		b.exec(`insert into `+table+` values (?, ?, ?, ?, ?)`, typ, value, bun.Name, bun.Version, image)
	}
}

// channel writes a channel as rows: the chain of what replaces what, and for each skipped name two rows
// beside it.
func (b *builder) channel(pkg string, ch catalog.Channel) {
	b.Helper()
	g, err := catalog.NewGraph(ch)
	if err != nil {
		b.Fatal(err)
	}
	head := g.Head().Name
	b.exec(`insert into channel values (?, ?, ?)`, ch.Name, pkg, head)
	row := func(name string, depth int) int64 {
		return b.exec(
			`insert into channel_entry(channel_name, package_name, operatorbundle_name, depth) values (?, ?, ?, ?)`,
			ch.Name, pkg, name, depth)
	}
	replaces := func(id, by int64) { b.exec(`update channel_entry set replaces = ? where entry_id = ?`, id, by) }
	depth := 0
	current := row(head, depth)
	for e, ok := g.Entry(head); ok; e, ok = g.Entry(e.Replaces) {
		depth++
		for _, s := range e.Skips {
			skipped := row(s, depth)
			replaces(skipped, row(e.Name, depth))
			depth++
		}
		if e.Replaces == "" {
			break
		}
		next := row(e.Replaces, depth)
		replaces(next, current)
		current = next
	}
}
