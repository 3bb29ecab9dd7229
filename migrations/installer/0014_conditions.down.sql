drop view installer_api.operator_details;
alter table installer.operator_details drop column conditions;
create view installer_api.operator_details with (security_barrier) as
  select d.tenant, c.name as cluster, d.namespace, d.name, d.requirements, d.condition, d.drift, d.components, d.cut, d.updated, d.not_ready
  from installer.operator_details d join installer.clusters c on c.tenant = d.tenant and c.cluster_id = d.cluster_id and not c.removed
  where current_setting('chandler.tenant', true) in ('*', d.tenant);
comment on view installer_api.operator_details is 'requirements, condition, drift, components and readiness of installed operators';
