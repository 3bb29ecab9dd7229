drop view installer_api.operator_details, installer_api.leftovers, installer_api.drifts, installer_api.step_logs;
alter table installer.leftovers drop column more;
alter table installer.operator_details drop column cut;
alter table installer.reports drop column budget;
alter table installer.holders drop column budget, drop column back;

create view installer_api.operator_details with (security_barrier) as
  select d.tenant, c.name as cluster, d.namespace, d.name, d.requirements, d.condition, d.drift, d.components, d.updated
  from installer.operator_details d join installer.clusters c on c.tenant = d.tenant and c.cluster_id = d.cluster_id and not c.removed
  where current_setting('chandler.tenant', true) in ('*', d.tenant);
comment on view installer_api.operator_details is 'requirements, condition, drift and components of installed operators';

create view installer_api.leftovers with (security_barrier) as
  select l.tenant, c.name as cluster, l.namespace, l.csv, l.package, l.removal, l.objects, l.removed
  from installer.leftovers l join installer.clusters c on c.tenant = l.tenant and c.cluster_id = l.cluster_id and not c.removed
  where current_setting('chandler.tenant', true) in ('*', l.tenant);
comment on view installer_api.leftovers is 'objects that stayed when operators were uninstalled';

create view installer_api.drifts with (security_barrier) as
  select tenant, digest, convert_from(body, 'UTF8')::jsonb as document, created from installer.drifts
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.drifts is 'differences of managed objects, by digest';

create view installer_api.step_logs with (security_barrier) as
  select tenant, digest, convert_from(body, 'UTF8')::jsonb as document from installer.step_logs
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.step_logs is 'step logs of ended plans, by digest';
