-- What a bundle image holds is checked against the bundle that it is named for, so that wishes and outcomes
-- belong to image, package and bundle: a catalog may name one image for two bundles, and one of them wrongly.
alter table resolver.bundle_images drop constraint bundle_images_pkey,
  add column package text not null default '', add column bundle text not null default '',
  add primary key (tenant, subject, image, package, bundle);

-- Outcomes that are known stand in the log with package and bundle: read in one pass, and only where there are any.
with told as (
  select distinct on (e.tenant, e.subject, b ->> 'image', b ->> 'package', b ->> 'bundle') e.tenant, e.subject, b ->> 'image' as image,
    b ->> 'package' as package, b ->> 'bundle' as bundle, coalesce(b ->> 'content', '') as content, coalesce(b ->> 'reason', '') as reason
  from eventlog.events e, jsonb_array_elements(replace(convert_from(e.body, 'UTF8'), '\u0000', '\ufffd')::jsonb -> 'data' -> 'bundles') b
  where exists (select from resolver.bundle_images) and e.type = 'catalog.bundles-fetched.v1'
    and exists (select from resolver.bundle_images i where i.tenant = e.tenant and i.subject = e.subject and i.image = b ->> 'image')
  order by e.tenant, e.subject, b ->> 'image', b ->> 'package', b ->> 'bundle', e.position desc), forgotten as (
  delete from resolver.bundle_images where package = '' and bundle = '')
insert into resolver.bundle_images (tenant, subject, image, package, bundle, content, reason)
  select tenant, subject, image, package, bundle, content, reason from told;
alter table resolver.bundle_images alter column package drop default, alter column bundle drop default;
-- Who asked for an image asked for its bundle.
update resolver.reads r set name = r.name || ' ' || i.package || ' ' || i.bundle from resolver.bundle_images i
  where r.kind = 'image' and i.tenant = r.tenant and i.subject = r.catalog and i.image = r.name;

alter table resolver.wanted_images drop constraint wanted_images_pkey, add primary key (tenant, subject, image, package, bundle);
