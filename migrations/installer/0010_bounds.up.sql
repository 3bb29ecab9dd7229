-- What bounds the facts that reports begin, how a cluster is believed again that was restored from a backup, and what
-- was left out of a report.

-- budget is what was appended for the cluster a short while ago (record.Budget). back is a lower epoch that is heard
-- while the highest is silent, and from when on the present line of epochs counts (record.Back).
alter table installer.holders
  add column budget jsonb not null default '{}',
  add column back   jsonb not null default '{}';

alter table installer.reports add column budget jsonb not null default '{}'; -- of the scope

alter table installer.operator_details add column cut json; -- protocol.Cut; null where nothing was left out
alter table installer.leftovers add column more integer not null default 0; -- objects that the report left out

drop view installer_api.operator_details;
create view installer_api.operator_details with (security_barrier) as
  select d.tenant, c.name as cluster, d.namespace, d.name, d.requirements, d.condition, d.drift, d.components, d.cut, d.updated
  from installer.operator_details d join installer.clusters c on c.tenant = d.tenant and c.cluster_id = d.cluster_id and not c.removed
  where current_setting('chandler.tenant', true) in ('*', d.tenant);
comment on view installer_api.operator_details is 'requirements, condition, drift and components of installed operators';

drop view installer_api.leftovers;
create view installer_api.leftovers with (security_barrier) as
  select l.tenant, c.name as cluster, l.namespace, l.csv, l.package, l.removal, l.objects, l.more, l.removed
  from installer.leftovers l join installer.clusters c on c.tenant = l.tenant and c.cluster_id = l.cluster_id and not c.removed
  where current_setting('chandler.tenant', true) in ('*', l.tenant);
comment on view installer_api.leftovers is 'objects that stayed when operators were uninstalled';

-- The documents are json, not jsonb: rows from before these bounds may hold \u0000, and must not stop who reads the others.
drop view installer_api.drifts;
create view installer_api.drifts with (security_barrier) as
  select tenant, digest, convert_from(body, 'UTF8')::json as document, created from installer.drifts
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.drifts is 'differences of managed objects, by digest';

drop view installer_api.step_logs;
create view installer_api.step_logs with (security_barrier) as
  select tenant, digest, convert_from(body, 'UTF8')::json as document from installer.step_logs
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.step_logs is 'step logs of ended plans, by digest';
