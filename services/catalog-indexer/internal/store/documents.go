package store

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Documents stores what revisions are made of: package documents, blobs of unknown schemas, and findings.
type Documents struct {
	pool     *pg.Pool
	reader   *content.Reader
	contents *Contents
}

// PutPackages stores package documents by digest; those that are there are left alone. The documents of
// one package share a chunk index: a new one mostly says what the one before did.
func (s *Documents) PutPackages(ctx context.Context, tenant string, packages []catalog.Package,
	digests map[string]digest.Digest,
) error {
	missing, err := s.missing(ctx, tenant, digests)
	if err != nil || len(missing) == 0 {
		return err
	}
	w, err := s.contents.Writer(ctx, tenant)
	if err != nil {
		return err
	}
	for _, p := range packages {
		if d := digests[p.Name]; missing[d] {
			if err = w.document(p, d); err != nil {
				err = fmt.Errorf("store package %s: %w", p.Name, err)
				break
			}
		}
	}
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	return err
}

// documentsOf begins the names of chunk indexes with documents; no package has a slash in its name.
const documentsOf = "documents/"

// document stores a package document.
func (w *ContentWriter) document(p catalog.Package, d digest.Digest) error {
	raw, err := digest.Canonical(p)
	if err != nil {
		return err
	}
	switch {
	case len(raw) > content.MaxDocumentBytes:
		return errs.New(errs.TooLarge, "the document has %d bytes, more than %d", len(raw),
			content.MaxDocumentBytes).At("", "content.MaxDocumentBytes")
	case len(raw) > content.MaxValueBytes:
		_, err := w.contents.pool.Exec(w.ctx, `insert into catalog.packages as p (tenant, digest, package, document,
			contents) values ($1, $2, $3, $4, $5)
			on conflict (tenant, digest) do update set touched = greatest(p.touched, now())`, w.tenant, d, storableKey(p.Name), bundle.Pack(raw), contentRefs(p))
		return pg.Err(err)
	}
	return w.add(documentsOf+p.Name, raw, func(r row) {
		w.next.packages = append(w.next.packages, packageRow{
			row: r, digest: d, name: storableKey(p.Name),
			contents: contentRefs(p),
		})
	})
}

// missing returns which documents are not stored. Those that are get another lease of life: the
// collector must not take them before the revision refers to them.
func (s *Documents) missing(ctx context.Context, tenant string, digests map[string]digest.Digest) (
	map[digest.Digest]bool, error,
) {
	out := map[digest.Digest]bool{}
	list := make([]string, 0, len(digests))
	for _, d := range digests {
		out[d] = true
		list = append(list, string(d))
	}
	if _, err := s.pool.Exec(ctx, `update catalog.packages set touched = now()
		where tenant = $1 and digest in (select digest from catalog.packages
		where tenant = $1 and digest = any($2) and touched < now() - $3::interval for no key update skip locked)`, tenant, list, touchEvery); err != nil {
		return nil, pg.Err(err)
	}
	rows, err := s.pool.Query(ctx, `select digest from catalog.packages where tenant = $1 and digest = any($2)`, tenant,
		list)
	if err != nil {
		return nil, pg.Err(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, d := range there {
		delete(out, digest.Digest(d))
	}
	return out, pg.Err(err)
}

// contentRefs is what a document's bundles refer to, for catalog.packages.contents.
func contentRefs(p catalog.Package) []int64 {
	refs := make([]int64, 0, len(p.Bundles))
	for _, b := range p.Bundles {
		if ref, ok := contentRef(b.Content); ok {
			refs = append(refs, ref)
		}
	}
	return refs
}

// contentRef is the number by which a document refers to content: the first 8 bytes of its digest.
func contentRef(d digest.Digest) (int64, bool) {
	raw, err := hex.DecodeString(d.Hex())
	if err != nil || len(raw) < 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(raw)), true
}

// refOfContent is contentRef of the column digest, in SQL.
const refOfContent = `('x' || substr(c.digest, 8, 16))::bit(64)::bigint`

// Revision returns the packages of a revision; "" has none.
func (s *Documents) Revision(ctx context.Context, tenant string,
	revision digest.Digest,
) (map[string]digest.Digest, error) {
	out := map[string]digest.Digest{}
	rows, err := s.pool.Query(ctx, `select package, digest from catalog.revision_packages
		where tenant = $1 and revision = $2`, tenant, revision)
	if err != nil {
		return nil, pg.Err(err)
	}
	var name string
	var d digest.Digest
	_, err = pgx.ForEachRow(rows, []any{&name, &d}, func() error { out[name] = d; return nil })
	return out, pg.Err(err)
}

// Package reads a package document.
func (s *Documents) Package(ctx context.Context, tenant string, d digest.Digest) (catalog.Package, error) {
	var p catalog.Package
	var r content.Stored
	err := s.pool.QueryRow(ctx, `select document, recipe, packs from catalog_api.packages
		where tenant = $1 and digest = $2`, tenant, d).
		Scan(&r.Whole, &r.Recipe, &r.Packs)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, errs.New(errs.NotFound, "package document %s is not stored", d)
	}
	if err != nil {
		return p, pg.Err(err)
	}
	raw, err := s.reader.Document(catalog.PackageType, d, r)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, errs.Wrap(errs.Internal, err, "package document %s", d)
	}
	return p, nil
}

// PutBlobs stores blobs of unknown schemas by the digest of their bytes.
func (s *Documents) PutBlobs(ctx context.Context, tenant string, blobs []load.Blob) error {
	for _, b := range blobs {
		_, err := s.pool.Exec(ctx, `insert into catalog.documents (tenant, digest, body) values ($1, $2, $3)
			on conflict (tenant, digest) do update set touched = now() where documents.touched < now() - $4::interval`,
			tenant, b.Digest, []byte(b.Raw), touchEvery)
		if err != nil {
			return fmt.Errorf("store a blob of schema %s: %w", b.Schema, pg.Err(err))
		}
	}
	return nil
}

// PutFindings stores the report of a poll and returns its digest, "" where there is nothing to report.
func (s *Documents) PutFindings(ctx context.Context, c Catalog, f catalog.Findings) (digest.Digest, error) {
	if len(f) == 0 {
		return "", nil
	}
	d, err := digest.JSON("chandler.findings.v1", f)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	_, err = s.pool.Exec(ctx, `insert into catalog.findings (tenant, document, catalog, findings)
		values ($1, $2, $3, $4) on conflict do nothing`,
		c.Tenant, d, c.Stream, storableJSON(raw))
	return d, pg.Err(err)
}

// insertRevision writes what a revision is made of; it may be there from another catalog. Where the
// collector took something of it meanwhile it is errs.Conflict: poll again.
func insertRevision(ctx context.Context, tx pgx.Tx, tenant string, p *Published) error {
	if err := share(ctx, tx); err != nil {
		return err
	}
	names, digests := make([]string, 0, len(p.Packages)), make([]string, 0, len(p.Packages))
	for n, d := range p.Packages {
		names, digests = append(names, n), append(digests, string(d))
	}
	if _, err := tx.Exec(ctx, `insert into catalog.revision_packages (tenant, revision, package, digest)
		select $1, $2, n, d from unnest($3::text[], $4::text[]) as u(n, d) order by n on conflict do nothing`,
		tenant, p.Revision, names, digests); err != nil {
		return err
	}
	for _, b := range p.Blobs {
		if _, err := tx.Exec(ctx, `insert into catalog.revision_blobs (tenant, revision, package, schema, name, digest)
			values ($1, $2, $3, $4, $5, $6) on conflict do nothing`, tenant, p.Revision, storableKey(b.Package), storableKey(b.Schema), storableKey(b.Name), b.Digest); err != nil {
			return err
		}
	}
	return whole(ctx, tx, tenant, p.Revision)
}

// whole checks that everything that a revision refers to is stored. The collector is kept out until the
// transaction has ended (share); from then on the revision itself holds it.
func whole(ctx context.Context, tx pgx.Tx, tenant string, revision digest.Digest) error {
	var packages, contents, blobs int
	err := tx.QueryRow(ctx, `with p as (select r.digest, p.digest as stored, p.contents from catalog.revision_packages r
		    left join catalog.packages p on p.tenant = r.tenant and p.digest = r.digest
		    where r.tenant = $1 and r.revision = $2),
		  refs as (select distinct ref from p, unnest(p.contents) as ref)
		select (select count(*) from p where stored is null),
		  (select count(*) from refs where ref not in (select `+refOfContent+` from catalog.contents c
		  	where c.tenant = $1)),
		  (select count(*) from catalog.revision_blobs b where b.tenant = $1 and b.revision = $2
		    and not exists (select from catalog.documents d where d.tenant = b.tenant and d.digest = b.digest))`,
		tenant, revision).Scan(&packages, &contents, &blobs)
	if err != nil {
		return err
	}
	if packages+contents+blobs > 0 {
		return errs.New(errs.Conflict,
			"%d package documents, %d bundles and %d other documents of revision %s were collected while it was "+
				"read; polling again",
			packages, contents, blobs, revision.Short())
	}
	return nil
}
