drop view resolver_api.wanted_images;
alter table resolver.catalogs add column revision text not null default '', add column failed boolean not null default false;
update resolver.catalogs c set revision = r.revision, failed = r.failed
  from resolver.catalog_revisions r where r.tenant = c.tenant and r.subject = c.subject and r.variant = '';
drop table resolver.catalog_health, resolver.wanted_images, resolver.bundle_images, resolver.catalog_revisions;
alter table resolver.catalogs drop column templated, drop column disabled;
alter table resolver.clusters drop column minor;
