-- What clusters are shown of the catalogs that they follow: the settings, which hold the name and the publisher that people
-- see, and the revision that each cluster is served.
create or replace view catalog_api.catalogs with (security_barrier) as
  select c.tenant, c.subject as name, c.stream, c.priority, c.visibility_cluster, c.visibility_namespace,
         coalesce(v.revision, c.revision) as revision, coalesce(v.state, c.state) as state, coalesce(v.reason, c.reason) as reason,
         coalesce(v.message, c.message) as message, coalesce(v.document, c.document) as document, coalesce(v.updated, c.updated) as updated,
         c.disabled, c.templated, c.spec
  from catalog.catalogs c
  left join lateral (select * from catalog.variants x where c.templated and x.tenant = c.tenant and x.stream = c.stream
    order by x.revision <> '' desc, string_to_array(x.variant, '.')::int[] desc limit 1) v on true
  where not c.removed and current_setting('chandler.tenant', true) in ('*', c.tenant);

create view catalog_api.served with (security_barrier) as
  select c.tenant, c.subject as name, k.name as cluster, coalesce(nullif(v.revision, ''), c.revision) as revision
  from catalog.catalogs c join catalog.clusters k on k.tenant = c.tenant
  left join catalog.variants v on c.templated and v.tenant = c.tenant and v.stream = c.stream and v.variant = k.minor and k.minor <> ''
  where not c.removed and current_setting('chandler.tenant', true) in ('*', c.tenant);
comment on view catalog_api.served is 'the revision of each live catalog that a cluster is served: that of its Kubernetes minor version, else the fallback';
