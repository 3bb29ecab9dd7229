package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Images stores which bundle images are to be fetched, and what came of it.
type Images struct {
	pool *pg.Pool
	log  *eventlog.Log
}

// Image is a bundle image that a catalog names.
type Image struct {
	Image, Package, Bundle string
	Attempts               int
	Reason                 string // of the last attempt, as it was recorded
}

// TakeUpWanted takes up what the resolver waits for. It returns the catalogs with something new to fetch. The
// resolver's list is durable and asked again and again, so that nothing is lost whatever ends a process: a request
// stays until it is fulfilled or nobody has it any more, and what is taken up already is not touched.
func TakeUpWanted(ctx context.Context, tx pgx.Tx) ([]Key, error) {
	rows, err := tx.Query(ctx, `insert into catalog.bundle_images as b (tenant, catalog, image, package, bundle, needed)
		select w.tenant, c.stream, w.image, w.package, w.bundle, true from resolver_api.wanted_images w
		join catalog.catalogs c on c.tenant = w.tenant and c.subject = w.catalog and not c.removed and not c.disabled
		where greatest(octet_length(w.image), octet_length(w.package), octet_length(w.bundle)) <= $1
		  and not exists (select from catalog.bundle_images h where h.tenant = w.tenant and h.catalog = c.stream
		    and (h.image, h.package, h.bundle) = (w.image, w.package, w.bundle) and (h.needed or h.content <> ''))
		order by 1, 2, 3, 4, 5
		on conflict (tenant, catalog, image, package, bundle) do update set needed = true,
		next_try = coalesce(b.next_try, now()) where not b.needed and b.content = ''
		returning tenant, catalog`, maxKeyText)
	if err != nil {
		return nil, fmt.Errorf("take up wanted bundle images: %w", pg.Err(err))
	}
	return streams(rows)
}

// DueFetches returns the catalogs with images to be fetched by now that no lane holds, needed ones apart.
func (s *Images) DueFetches(ctx context.Context) (needed, ahead []Key, err error) {
	rows, err := s.pool.Query(ctx, `select b.tenant, b.catalog, bool_or(b.needed) from catalog.bundle_images b
		join catalog.catalogs c on c.tenant = b.tenant and c.stream = b.catalog and not c.removed and not c.disabled
		where b.content = '' and b.next_try <= now()
		  and not exists (select from `+FetchTable+` d where d.tenant = b.tenant and d.cluster = b.catalog) group by 1, 2 order by 1, 2`)
	if err != nil {
		return nil, nil, pg.Err(err)
	}
	var k Key
	var urgent bool
	_, err = pgx.ForEachRow(rows, []any{&k.Tenant, &k.Stream, &urgent}, func() error {
		if urgent {
			needed = append(needed, k)
		} else {
			ahead = append(ahead, k)
		}
		return nil
	})
	return needed, ahead, pg.Err(err)
}

func streams(rows pgx.Rows) ([]Key, error) {
	var out []Key
	seen := map[Key]bool{}
	var k Key
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Stream}, func() error {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
		return nil
	})
	return out, pg.Err(err)
}

// Prefetch notes the bundle images of a revision as to be fetched ahead.
func (s *Images) Prefetch(ctx context.Context, c Catalog, images []Image) error {
	names, packages, bundles := imageKeys(images)
	_, err := s.pool.Exec(ctx, `insert into catalog.bundle_images (tenant, catalog, image, package, bundle)
		select $1, $2, i, p, b from unnest($3::text[], $4::text[], $5::text[]) as u(i, p, b) order by i, p, b
		on conflict do nothing`,
		c.Tenant, c.Stream, names, packages, bundles)
	return pg.Err(err)
}

// Now is the time by the database's clock.
func (s *Images) Now(ctx context.Context) (now time.Time, err error) {
	err = s.pool.QueryRow(ctx, `select now()`).Scan(&now)
	return now, pg.Err(err)
}

// Unfetched returns up to limit images of a catalog that are to be fetched by now, those that somebody
// waits for first. Of those that were tried before it returns what was due at a time since: what one call after the
// other fails to get is left to the next round, however slowly this one goes.
func (s *Images) Unfetched(ctx context.Context, c Catalog, since time.Time, limit int) ([]Image, error) {
	rows, err := s.pool.Query(ctx, `select image, package, bundle, attempts, reason from catalog.bundle_images b
		where tenant = $1 and catalog = $2 and content = '' and next_try <= case when attempts = 0 then now()
		else $4 end
		  and exists (select from catalog.catalogs c where c.tenant = b.tenant and c.stream = b.catalog
		  and not c.removed and not c.disabled)
		order by needed desc, next_try, image, package, bundle limit $3`, c.Tenant, c.Stream, limit, since)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Image])
	return out, pg.Err(err)
}

// Fetched is what came of one image.
type Fetched struct {
	Image    Image
	Content  digest.Digest // "" where Reason says why there is none
	Resolved string        // digest of the image
	// Digest is what was fetched, and Evidence what the hub checks its signature again by (oci.ReadEvidence); "" and
	// nil without a signature policy.
	Digest   string
	Evidence []byte
	Mutable  bool // named by a tag
	Reason   string
	Message  string
	// Pause is how long the image is left alone; 0 is for ever.
	Pause time.Duration
}

// imageKeys are images as their rows name them.
func imageKeys(list []Image) (images, packages, bundles []string) {
	images, packages, bundles = make([]string, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, one := range list {
		images[i], packages[i], bundles[i] = storableKey(one.Image), storableKey(one.Package), storableKey(one.Bundle)
	}
	return images, packages, bundles
}

// named ends the attempts to fetch images that a catalog has ceased to name, and begins those anew that it
// names again. What a digest makes final stays so.
func named(ctx context.Context, tx pgx.Tx, c Catalog, list []Image) error {
	images, packages, bundles := imageKeys(list)
	_, err := tx.Exec(ctx, `update catalog.bundle_images set next_try = now()
		where tenant = $1 and catalog = $2 and content = '' and next_try is null
		  and (image, package, bundle) in (select i, p, b from unnest($3::text[], $4::text[], $5::text[]) as u(i, p, b))
		  and not (reason = any ($6) and image like '%@%')`, c.Tenant, c.Stream, images, packages, bundles, finalReasons())
	if err != nil || c.Templated { // another variant may name what this one does not
		return err
	}
	_, err = tx.Exec(ctx, `update catalog.bundle_images set next_try = null, needed = false
		where tenant = $1 and catalog = $2 and content = ''
		  and (image, package, bundle) not in (select i, p, b from unnest($3::text[], $4::text[], $5::text[]) as u(i, p,
		  b))`, c.Tenant, c.Stream, images, packages, bundles)
	return err
}

// Reasons of catalog.bundles-fetched.v1 that a digest makes final.
const (
	FetchInvalid  = "InvalidBundle"
	FetchTooLarge = "TooLarge"
)

func finalReasons() []string { return []string{FetchInvalid, FetchTooLarge} }

// Final says whether an image will never be another one: it is named by digest, and what is wrong is in it.
func (f Fetched) Final() bool { return !f.Mutable && slices.Contains(finalReasons(), f.Reason) }

// Known returns the content of an image by digest where another catalog of the tenant has fetched it for the
// same bundle: an image that holds another bundle than it is named for must not pass unchecked.
func (s *Images) Known(ctx context.Context, tenant string, image Image) (
	content digest.Digest, resolved string, err error,
) {
	rows, err := s.pool.Query(ctx, `select content, resolved from catalog.bundle_images b
		where tenant = $1 and image = $2 and package = $3 and bundle = $4 and content <> '' and not mutable
		  and exists (select from catalog.contents c where c.tenant = b.tenant and c.digest = b.content) limit 1`, tenant, image.Image, image.Package, image.Bundle)
	if err != nil {
		return "", "", pg.Err(err)
	}
	_, err = pgx.ForEachRow(rows, []any{&content, &resolved}, func() error { return nil })
	return content, resolved, pg.Err(err)
}

// PutFetched records outcomes, with an event of those that are news, in one transaction; upgrades of their
// packages are to be compared anew (ForgetCompared). The contents are stored already.
func (s *Images) PutFetched(ctx context.Context, c Catalog, m events.Meta, list []Fetched) error {
	return s.pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := stored(ctx, tx, c, list); err != nil {
			return err
		}
		var news []events.FetchedBundle
		var packages []string
		for _, f := range list {
			if f.Content != "" {
				packages = append(packages, f.Image.Package)
			}
			if f.news() {
				news = append(news, f.event())
			}
			if err := putFetched(ctx, tx, c, f); err != nil {
				return err
			}
			if err := putEvidence(ctx, tx, c, f); err != nil {
				return err
			}
		}
		if len(news) == 0 {
			return nil
		}
		if err := ForgetCompared(ctx, tx, c.Tenant, packages); err != nil {
			return err
		}
		what, err := digest.JSON("chandler.fetched-bundles.v1", news)
		if err != nil {
			return err
		}
		_, err = appendNext(ctx, tx, s.log, c, m, string(what), events.CatalogBundlesFetched{Bundles: news})
		return err
	})
}

// news says that an outcome is not the one before.
func (f Fetched) news() bool { return f.Content != "" || f.Reason != f.Image.Reason }

func (f Fetched) event() events.FetchedBundle {
	return events.FetchedBundle{
		Package: f.Image.Package, Bundle: f.Image.Bundle, Image: f.Image.Image, Content: string(f.Content),
		Reason: f.Reason,
	}
}

// stored makes sure that contents stay stored until the rows that refer to them are written. One that the collector
// took meanwhile, which was fetched for another catalog long ago, is fetched again.
func stored(ctx context.Context, tx pgx.Tx, c Catalog, list []Fetched) error {
	if err := share(ctx, tx); err != nil {
		return err
	}
	var contents []string
	for _, f := range list {
		if f.Content != "" {
			contents = append(contents, string(f.Content))
		}
	}
	var missing int
	err := tx.QueryRow(ctx, `select count(*) from unnest($2::text[]) as d
		where not exists (select from catalog.contents c where c.tenant = $1 and c.digest = d)`, c.Tenant, contents).Scan(&missing)
	if err != nil {
		return pg.Err(err)
	}
	if missing > 0 {
		return errs.New(errs.Conflict,
			"%d of the fetched bundles of catalog %s are not stored any more; fetching them again", missing, c.Subject)
	}
	return nil
}

func putFetched(ctx context.Context, tx pgx.Tx, c Catalog, f Fetched) error {
	// One clock, the database's, says when a pause ends and whether it has ended: with that of this process, one that
	// is behind would have its images asked for again at once.
	_, err := tx.Exec(ctx, `update catalog.bundle_images set content = $4, resolved = $5, mutable = $6, reason = $7,
		message = $8,
		attempts = attempts + 1, next_try = now() + nullif($9, interval '0'), fetched = case when $4 = '' then fetched
		else now() end
		where tenant = $1 and catalog = $2 and image = $3 and package = $10 and bundle = $11`,
		c.Tenant, c.Stream, f.Image.Image, f.Content, Storable(f.Resolved), f.Mutable, f.Reason, Storable(f.Message),
		f.Pause, f.Image.Package, f.Image.Bundle)
	return err
}

// putEvidence keeps what the hub checks the signature of an image again by. It goes with the content.
func putEvidence(ctx context.Context, tx pgx.Tx, c Catalog, f Fetched) error {
	if f.Content == "" || len(f.Evidence) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into catalog.signed_images (tenant, catalog, image, content, evidence)
		values ($1, $2, $3, $4, $5)
		on conflict (tenant, catalog, image) do update set content = excluded.content, evidence = excluded.evidence`,
		c.Tenant, c.Subject, f.Digest, f.Content, f.Evidence)
	return pg.Err(err)
}

// fetchAgain has every bundle image of a catalog fetched again: what was fetched under another signature policy may not
// bear the signatures that this one wants. What is installed already stays installed.
func fetchAgain(ctx context.Context, tx pgx.Tx, tenant, catalog string) error {
	_, err := tx.Exec(ctx, `update catalog.bundle_images set content = '', resolved = '', reason = '', message = '',
		attempts = 0, next_try = now() where tenant = $1 and catalog = $2`, tenant, catalog)
	return pg.Err(err)
}
