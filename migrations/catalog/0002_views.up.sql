-- What the other services may read of the catalogs.

create view catalog_api.catalogs with (security_barrier) as
  select tenant, subject as name, stream, priority, visibility_cluster, visibility_namespace, revision,
         state, reason, message, document, updated
  from catalog.catalogs
  where not removed and current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.catalogs is 'live catalogs: what is served and the state of the last look';

create view catalog_api.revision_packages with (security_barrier) as
  select tenant, revision, package, digest from catalog.revision_packages
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.revision_packages is 'package documents of a revision';

create view catalog_api.packages with (security_barrier) as
  select tenant, digest, package, document from catalog.packages
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.packages is 'package documents: zstd of canonical JSON';

create view catalog_api.contents with (security_barrier) as
  select tenant, digest, size, pack from catalog.contents
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.contents is 'canonical bundles: zstd';

create view catalog_api.documents with (security_barrier) as
  select tenant, digest, body from catalog.documents
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.documents is 'blobs of unknown schemas by digest';

create view catalog_api.revision_blobs with (security_barrier) as
  select tenant, revision, package, schema, name, digest from catalog.revision_blobs
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.revision_blobs is 'blobs of unknown schemas of a revision';

create view catalog_api.revisions with (security_barrier) as
  select tenant, catalog, version, revision, previous, packages, bundles, created from catalog.revisions
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.revisions is 'revisions that a catalog (its stream) has served; version is that of the event';

create view catalog_api.findings with (security_barrier) as
  select tenant, document, catalog, findings from catalog.findings
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.findings is 'what was wrong at a look, by digest';
