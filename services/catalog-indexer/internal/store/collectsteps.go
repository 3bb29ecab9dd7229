package store

// collectStep removes one kind of row. Its statement returns, for each tenant of which rows went, how many, their
// bytes, and where that is recorded their ids, the oldest and the newest time at which one was stored, and now.
type collectStep struct {
	kind, sql string
	recorded  bool // an event says what went: events refer to it
}

// counted makes a step of a select of the keys to remove.
func counted(kind, table, bytes, key, keys string) collectStep {
	return collectStep{kind, `with gone as (delete from ` + table + ` as x where (` + key + `) in (` + keys +
		` limit @limit)
		returning x.tenant, ` + bytes + ` as bytes)
		select tenant, count(*), coalesce(sum(bytes), 0)::bigint, '{}'::text[], now() as oldest, now() as newest, now() as at from gone group by tenant`, false}
}

// recorded is counted for what events refer to by id.
func recorded(kind, table, bytes, key, id, keys string) collectStep {
	return collectStep{kind, `with gone as (delete from ` + table + ` as x where (` + key + `) in (` + keys +
		` limit @limit)
		returning x.tenant, ` + bytes + ` as bytes, ` + id + ` as id, x.created)
		select tenant, count(*), coalesce(sum(bytes), 0)::bigint, array_agg(id), min(created), max(created), now() from gone group by tenant`, true}
}

// served are the revisions that are in service, or were within the retention: the rows of
// catalog.revisions outlive the step that comes first by just that.
const served = `(select tenant, revision from catalog.revisions
	union select tenant, revision from catalog.catalogs where not removed
	union select v.tenant, v.revision from catalog.variants v join catalog.catalogs c using (tenant, stream) where not c.removed)`

// imaged are the contents of bundle images that were fetched for catalogs which are there, or were within
// the retention.
const imaged = `(select i.tenant, i.content as digest from catalog.bundle_images i
	join catalog.catalogs c on c.tenant = i.tenant and c.stream = i.catalog
	where i.content <> '' and (not c.removed or c.updated > now() - @retention::interval))`

// collectSteps are all steps in their order: who refers before what is referred to.
func collectSteps() []collectStep {
	return []collectStep{
		// A revision leaves service when the next one of the same catalog and variant comes, when the variant
		// goes (ended), or when the catalog is removed. The last one of a catalog that is there is in service.
		recorded("revisions", "catalog.revisions", "0", "x.tenant, x.catalog, x.version", "x.revision",
			`select r.tenant, r.catalog, r.version
			from (select tenant, catalog, version, created, ended, lead(created) over (partition by tenant, catalog, variant order by version) as replaced
			      from catalog.revisions) r
			left join catalog.catalogs c on c.tenant = r.tenant and c.stream = r.catalog
			where coalesce(r.replaced, r.ended, case when c.removed then greatest(c.updated, r.created) when c.stream is null then '-infinity' end) < now() - @retention::interval`),
		counted("revision packages", "catalog.revision_packages", "0", "x.tenant, x.revision, x.package",
			`select p.tenant, p.revision, p.package
			from catalog.revision_packages p where (p.tenant, p.revision) not in `+served),
		counted("revision blobs", "catalog.revision_blobs", "0",
			"x.tenant, x.revision, x.package, x.schema, x.name, x.digest",
			`select b.tenant, b.revision, b.package, b.schema, b.name, b.digest
			from catalog.revision_blobs b where (b.tenant, b.revision) not in `+served),
		recorded("packages", "catalog.packages", "length(coalesce(document, recipe))", "x.tenant, x.digest", "x.digest",
			`select p.tenant, p.digest from catalog.packages p
			where p.touched < now() - @grace::interval
			  and not exists (select from catalog.revision_packages r where r.tenant = p.tenant and r.digest = p.digest)
			  and not exists (select from resolver_api.content_references r where r.tenant = p.tenant and r.digest = p.digest and r.kind = 'package')`),
		recorded("documents", "catalog.documents", "length(body)", "x.tenant, x.digest", "x.digest",
			`select d.tenant, d.digest from catalog.documents d
			where d.touched < now() - @grace::interval
			  and not exists (select from catalog.revision_blobs b where b.tenant = d.tenant and b.digest = d.digest)`),
		recorded("findings", "catalog.findings", "pg_column_size(findings)", "x.tenant, x.document, x.catalog",
			"x.document",
			`select f.tenant, f.document, f.catalog from catalog.findings f where f.created < now() - @retention::interval
			  and not exists (select from catalog.catalogs c where c.tenant = f.tenant and c.stream = f.catalog and c.document = f.document)
			  and not exists (select from catalog.variants v where v.tenant = f.tenant and v.stream = f.catalog and v.document = f.document)`),
		counted("bundle images", "catalog.bundle_images", "0", "x.tenant, x.catalog, x.image, x.package, x.bundle",
			`select i.tenant, i.catalog, i.image, i.package, i.bundle
			from catalog.bundle_images i left join catalog.catalogs c on c.tenant = i.tenant and c.stream = i.catalog
			where c.stream is null or c.removed and c.updated < now() - @retention::interval`),
		// A document that could not be read (noteContents) may refer to everything that was there before it.
		recorded("contents", "catalog.contents", "length(coalesce(pack, recipe))", "x.tenant, x.digest", "x.digest",
			`select c.tenant, c.digest from catalog.contents c
			where c.touched < now() - @grace::interval
			  and not exists (select from (select distinct tenant, unnest(contents) as ref from catalog.packages) p
			    where p.tenant = c.tenant and p.ref = `+refOfContent+`)
			  and not exists (select from catalog.packages p where p.tenant = c.tenant and p.contents is null and p.created >= c.created)
			  and not exists (select from `+imaged+` i where i.tenant = c.tenant and i.digest = c.digest)
			  and not exists (select from resolver_api.content_references r where r.tenant = c.tenant and r.digest = c.digest and r.kind = 'content')
			  and not exists (select from installer_api.content_references r where r.tenant = c.tenant and r.digest = c.digest)`),
		counted("decoded", "catalog.decoded", "length(coalesce(value, recipe))", "x.tenant, x.key",
			`select d.tenant, d.key from catalog.decoded d
			where d.content = '' and d.touched < now() - @unused::interval
			  or d.content <> '' and not exists (select from catalog.contents c where c.tenant = d.tenant and c.digest = d.content)`),
		counted("packs", "catalog.packs", "length(data)", "x.tenant, x.digest",
			`select p.tenant, p.digest from catalog.packs p
			where not exists (select from (select tenant, unnest(packs) as id from catalog.contents
			    union select tenant, unnest(packs) from catalog.decoded
			    union select tenant, unnest(packs) from catalog.packages) u where u.tenant = p.tenant and u.id = p.id)`),
		// What is computed of the rest goes with it.
		counted("search", "catalog.search", "0", "x.tenant, x.digest", `select s.tenant, s.digest from catalog.search s
			where not exists (select from catalog.packages p where p.tenant = s.tenant and p.digest = s.digest)`),
		counted("compared", "catalog.compared", "0", "x.tenant, x.digest",
			`select s.tenant, s.digest from catalog.compared s
			where not exists (select from catalog.packages p where p.tenant = s.tenant and p.digest = s.digest)`),
		counted("upgrades", "catalog.upgrades", "length(difference)", "x.tenant, x.from_content, x.to_content",
			`select u.tenant, u.from_content, u.to_content from catalog.upgrades u
			where not exists (select from catalog.contents c where c.tenant = u.tenant and c.digest = u.from_content)
			   or not exists (select from catalog.contents c where c.tenant = u.tenant and c.digest = u.to_content)`),
	}
}
