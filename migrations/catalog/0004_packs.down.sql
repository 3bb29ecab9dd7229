-- Bundles in packs cannot be read by the release before: it indexes their catalogs again.
delete from catalog.contents where pack is null;
delete from catalog.decoded where value is null;
delete from catalog.packages where document is null;
drop view catalog_api.contents;
create view catalog_api.contents with (security_barrier) as
  select tenant, digest, size, pack from catalog.contents
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.contents is 'canonical bundles: zstd';
alter table catalog.documents drop column touched;
drop view catalog_api.packages;
create view catalog_api.packages with (security_barrier) as
  select tenant, digest, package, document from catalog.packages
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.packages is 'package documents: zstd of canonical JSON';
alter table catalog.packages drop constraint packages_form, drop column recipe, drop column packs, drop column contents,
  drop column touched, alter column document set not null;
alter table catalog.decoded drop constraint decoded_form, drop column recipe, drop column packs, drop column touched,
  alter column value set not null;
alter table catalog.contents drop constraint contents_form, drop column recipe, drop column packs, drop column touched,
  alter column pack set not null;
drop table catalog.packs;
