-- What installed operators say of an upgrade of the platform under them (R-CSV-60).
create view resolver_api.platform_limits with (security_barrier) as
  select i.tenant, i.cluster, i.namespace, i.name as csv, p -> 'value' as value
  from resolver.installed i, jsonb_array_elements(i.properties) p
  where p ->> 'type' = 'olm.maxOpenShiftVersion' and current_setting('chandler.tenant', true) in ('*', i.tenant);
comment on view resolver_api.platform_limits is 'property olm.maxOpenShiftVersion of installed operators';
