create or replace view catalog_api.catalogs with (security_barrier) as
  select c.tenant, c.subject as name, c.stream, c.priority, c.visibility_cluster, c.visibility_namespace,
         coalesce(v.revision, c.revision) as revision, coalesce(v.state, c.state) as state, coalesce(v.reason, c.reason) as reason,
         coalesce(v.message, c.message) as message, coalesce(v.document, c.document) as document, coalesce(v.updated, c.updated) as updated,
         c.disabled, c.templated
  from catalog.catalogs c
  left join lateral (select * from catalog.variants x where c.templated and x.tenant = c.tenant and x.stream = c.stream
    order by string_to_array(x.variant, '.')::int[] desc limit 1) v on true
  where not c.removed and current_setting('chandler.tenant', true) in ('*', c.tenant);

alter table catalog.revisions drop column ended;

delete from catalog.bundle_images a using catalog.bundle_images b
  where b.tenant = a.tenant and b.catalog = a.catalog and b.image = a.image and (b.package, b.bundle) < (a.package, a.bundle);
alter table catalog.bundle_images drop constraint bundle_images_pkey,
  add primary key (tenant, catalog, image);

-- The steps down that follow (0004) delete documents and bundles in packs, which the release before cannot
-- read, and leave the catalogs that serve them. This one is carried out first: every catalog is as if it had
-- never been looked at, so that the release before reads it again and stores it in its own form.
update catalog.catalogs set fingerprint = '', revision = '', looked = 0, state = 'Loading', reason = '', message = '', next_look = now();
