drop view catalog_api.served;
drop view catalog_api.catalogs;
create view catalog_api.catalogs with (security_barrier) as
  select c.tenant, c.subject as name, c.stream, c.priority, c.visibility_cluster, c.visibility_namespace,
         coalesce(v.revision, c.revision) as revision, coalesce(v.state, c.state) as state, coalesce(v.reason, c.reason) as reason,
         coalesce(v.message, c.message) as message, coalesce(v.document, c.document) as document, coalesce(v.updated, c.updated) as updated,
         c.disabled, c.templated
  from catalog.catalogs c
  left join lateral (select * from catalog.variants x where c.templated and x.tenant = c.tenant and x.stream = c.stream
    order by x.revision <> '' desc, string_to_array(x.variant, '.')::int[] desc limit 1) v on true
  where not c.removed and current_setting('chandler.tenant', true) in ('*', c.tenant);
comment on view catalog_api.catalogs is 'live catalogs: what is served and the state of the last look';
