-- What executors tell of installed operators beside their phases: for people who look, not for the log. The columns are
-- json, not jsonb: what a cluster says may hold \u0000.
create table installer.operator_details (
  tenant       text        not null,
  cluster_id   uuid        not null,
  namespace    text        not null,
  name         text        not null, -- of the CSV
  requirements json,                 -- list of requirementStatus (R-CSV-5)
  condition    json,                 -- protocol.OperatorCondition; null while the operator says nothing
  drift        json        not null, -- list of protocol.Drift
  components   json        not null, -- list of protocol.Component
  updated      timestamptz not null,
  primary key (tenant, cluster_id, namespace, name)
);
comment on table installer.operator_details is 'requirements, condition, drift and components of installed operators';

-- Differences that csv.drifted events name. They hold configuration, which stays out of the log.
create table installer.drifts (
  tenant  text        not null,
  digest  text        not null,
  body    bytea       not null, -- canonical JSON: what the digest is over
  created timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table installer.drifts is 'differences of managed objects, by digest';
create index drifts_created on installer.drifts (created);

select eventlog.protect(t) from unnest(array['installer.operator_details', 'installer.drifts']::regclass[]) as t;

create view installer_api.operator_details with (security_barrier) as
  select d.tenant, c.name as cluster, d.namespace, d.name, d.requirements, d.condition, d.drift, d.components, d.updated
  from installer.operator_details d join installer.clusters c on c.tenant = d.tenant and c.cluster_id = d.cluster_id and not c.removed
  where current_setting('chandler.tenant', true) in ('*', d.tenant);
comment on view installer_api.operator_details is 'requirements, condition, drift and components of installed operators';

create view installer_api.drifts with (security_barrier) as
  select tenant, digest, convert_from(body, 'UTF8')::jsonb as document, created from installer.drifts
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.drifts is 'differences of managed objects, by digest';
