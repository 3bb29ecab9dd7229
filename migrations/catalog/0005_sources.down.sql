drop view catalog_api.bundle_images, catalog_api.catalog_status, catalog_api.catalogs, catalog_api.revisions;
alter table catalog.revisions drop column variant;
create view catalog_api.revisions with (security_barrier) as
  select tenant, catalog, version, revision, previous, packages, bundles, created from catalog.revisions
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.revisions is 'revisions that a catalog (its stream) has served; version is that of the event';
drop table catalog.fetches, catalog.bundle_images, catalog.clusters, catalog.variants;
alter table catalog.catalogs
  drop column variant, drop column templated, drop column disabled, drop column reference, drop column resolved,
  drop column connection, drop column observed, drop column connected, drop column polled, drop column next_look,
  drop column error, drop column error_reason, drop column quarantined, drop column errors, drop column warnings, drop column infos,
  drop column template, drop column template_message;
create view catalog_api.catalogs with (security_barrier) as
  select tenant, subject as name, stream, priority, visibility_cluster, visibility_namespace, revision,
         state, reason, message, document, updated
  from catalog.catalogs
  where not removed and current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.catalogs is 'live catalogs: what is served and the state of the last look';
