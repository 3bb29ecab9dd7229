-- The API groups that clusters serve, with their versions. Events have their digest.
-- compatible: 25
create view installer_api.cluster_apis with (security_barrier) as
  select o.tenant, c.name as cluster, o.state -> 'apis' as apis
  from installer.observations o join installer.clusters c on c.tenant = o.tenant and c.cluster_id = o.cluster_id and not c.removed
  where o.state ? 'apis' and current_setting('chandler.tenant', true) in ('*', o.tenant);
comment on view installer_api.cluster_apis is 'API groups that clusters serve, as group/version';
