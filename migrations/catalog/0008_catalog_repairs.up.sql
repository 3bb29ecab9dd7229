-- What a bundle image holds is checked against the bundle that it is named for, so that an outcome belongs
-- to image and bundle: two bundles may name one image, and one of them wrongly.
alter table catalog.bundle_images drop constraint bundle_images_pkey,
  add primary key (tenant, catalog, image, package, bundle);

-- A variant that no cluster uses any more goes, and its last revision has no follower: this says when it
-- left service.
alter table catalog.revisions add column ended timestamptz;
comment on column catalog.revisions.ended is 'when the variant went that was served so; null while it is there, and where a follower says it';
update catalog.revisions r set ended = now() where r.variant <> ''
  and not exists (select from catalog.variants v where v.tenant = r.tenant and v.stream = r.catalog and v.variant = r.variant);

-- Who asks for a templated catalog without naming a cluster gets what the newest Kubernetes minor gets that
-- has something: a catalog is not empty for as long as its newest variant is read for the first time.
create or replace view catalog_api.catalogs with (security_barrier) as
  select c.tenant, c.subject as name, c.stream, c.priority, c.visibility_cluster, c.visibility_namespace,
         coalesce(v.revision, c.revision) as revision, coalesce(v.state, c.state) as state, coalesce(v.reason, c.reason) as reason,
         coalesce(v.message, c.message) as message, coalesce(v.document, c.document) as document, coalesce(v.updated, c.updated) as updated,
         c.disabled, c.templated
  from catalog.catalogs c
  left join lateral (select * from catalog.variants x where c.templated and x.tenant = c.tenant and x.stream = c.stream
    order by x.revision <> '' desc, string_to_array(x.variant, '.')::int[] desc limit 1) v on true
  where not c.removed and current_setting('chandler.tenant', true) in ('*', c.tenant);
