-- What the recorder keeps to turn reports into facts once, and the free text that stays out of events.

-- The last report taken of each scope ('' is the cluster itself). epoch is the holder's: a report of a
-- holder that was replaced is refused.
create table installer.reports (
  tenant     text        not null,
  cluster_id uuid        not null,
  namespace  text        not null,
  epoch      bigint      not null,
  reported   timestamptz not null,
  digest     text        not null, -- of the report without its time
  primary key (tenant, cluster_id, namespace)
);
comment on table installer.reports is 'the last report taken of each scope';

-- The highest holder epoch that any report of a cluster has named.
create table installer.holders (
  tenant     text   not null,
  cluster_id uuid   not null,
  epoch      bigint not null,
  primary key (tenant, cluster_id)
);
comment on table installer.holders is 'who holds each cluster, as far as reports tell';

-- Each life of a CSV object (its UID) and how much of its history is in the log.
create table installer.csv_lives (
  tenant     text    not null,
  cluster_id uuid    not null,
  namespace  text    not null,
  name       text    not null,
  uid        text    not null,
  state      jsonb   not null, -- record.CSV
  removed    boolean not null,
  primary key (tenant, cluster_id, namespace, name, uid)
);
comment on table installer.csv_lives is 'how much of each CSV history is recorded';

-- What was recorded last of each cluster.
create table installer.observations (
  tenant     text  not null,
  cluster_id uuid  not null,
  state      jsonb not null, -- record.Cluster
  primary key (tenant, cluster_id)
);
comment on table installer.observations is 'what was recorded last of each cluster';

create table installer.step_logs (
  tenant  text        not null,
  digest  text        not null,
  body    bytea       not null, -- canonical JSON: what the digest is over
  created timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table installer.step_logs is 'step logs of ended plans, by digest';

create table installer.messages (
  tenant  text        not null,
  subject text        not null,
  kind    text        not null,
  message text        not null,
  updated timestamptz not null default now(),
  primary key (tenant, kind, subject)
);
comment on table installer.messages is 'the latest message for people about a plan, CSV or cluster';

select eventlog.protect(t) from unnest(array[
  'installer.reports', 'installer.holders', 'installer.csv_lives', 'installer.observations', 'installer.step_logs',
  'installer.messages']::regclass[]) as t;

create view installer_api.step_logs with (security_barrier) as
  select tenant, digest, convert_from(body, 'UTF8')::jsonb as document from installer.step_logs
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.step_logs is 'step logs of ended plans, by digest';

create view installer_api.messages with (security_barrier) as
  select tenant, subject, kind, message, updated from installer.messages
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.messages is 'the latest message for people about a plan, CSV or cluster';
