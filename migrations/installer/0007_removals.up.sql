-- What was asked to be uninstalled and has not ended.
create table installer.removals (
  tenant    text   not null,
  cluster   text   not null,
  namespace text   not null,
  csv       text   not null,
  removal   text   not null,
  crds      text[] not null, -- definitions to be deleted with it
  plan      text   not null, -- digest of the removal plan that was shown, or ''
  epoch     bigint not null, -- position at which it was asked for
  position  bigint not null,
  primary key (tenant, cluster, namespace, csv)
);
comment on table installer.removals is 'operators to be uninstalled, as the log tells them';

-- What each removed operator left, until its package is installed again. A row without objects left nothing.
create table installer.leftovers (
  tenant     text        not null,
  cluster_id uuid        not null,
  namespace  text        not null,
  csv        text        not null,
  package    text        not null,
  removal    text        not null,
  objects    jsonb       not null, -- list of protocol.Leftover
  removed    timestamptz not null,
  primary key (tenant, cluster_id, namespace, csv)
);
comment on table installer.leftovers is 'objects that stayed when operators were uninstalled';

select eventlog.protect(t) from unnest(array['installer.removals', 'installer.leftovers']::regclass[]) as t;

create view installer_api.leftovers with (security_barrier) as
  select l.tenant, c.name as cluster, l.namespace, l.csv, l.package, l.removal, l.objects, l.removed
  from installer.leftovers l join installer.clusters c on c.tenant = l.tenant and c.cluster_id = l.cluster_id and not c.removed
  where current_setting('chandler.tenant', true) in ('*', l.tenant);
comment on view installer_api.leftovers is 'objects that stayed when operators were uninstalled';
