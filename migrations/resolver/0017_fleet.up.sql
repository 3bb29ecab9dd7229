-- What a fleet asks of subscriptions, and rollouts as the log tells them.
-- compatible: 14
alter table resolver.subscriptions add column owner text not null default '', add column target jsonb not null default '{}';
comment on column resolver.subscriptions.owner is 'fleet subscription that asks for it; empty for one of a person';
comment on column resolver.subscriptions.target is 'how far a rollout lets it go; empty without one';

alter table resolver.clusters add column state text not null default '';
comment on column resolver.clusters.state is 'as the executor tells it, such as Connected; Registered before it has, empty while unknown';

create table resolver.fleet_subscriptions (
  tenant text not null,
  name text not null,
  incarnation integer not null,
  version bigint not null,
  spec jsonb not null,
  deleted boolean not null default false,
  due boolean not null default true,
  waits text not null default '',
  primary key (tenant, name)
);
comment on table resolver.fleet_subscriptions is 'fleet subscriptions, also those that have ended until their clusters are let go';
comment on column resolver.fleet_subscriptions.due is 'something changed that the fleet controller has not looked at';
comment on column resolver.fleet_subscriptions.waits is 'code of why no rollout can begin; empty where none has to';
select eventlog.protect('resolver.fleet_subscriptions');

create view resolver_api.fleet_waits with (security_barrier) as
  select f.tenant, f.name, f.waits from resolver.fleet_subscriptions f
  where waits <> '' and not deleted and current_setting('chandler.tenant', true) in ('*', f.tenant);

create table resolver.rollouts (
  tenant text not null,
  fleet text not null,
  number integer not null,
  stream_version bigint not null,
  phase text not null,
  reason text not null default '',
  wave integer not null,
  passed integer not null,
  promoted boolean not null default false,
  started jsonb not null,
  started_at timestamptz not null,
  changed_at timestamptz not null,
  primary key (tenant, fleet, number)
);
comment on table resolver.rollouts is 'rollouts: what each began with and where it stands';
select eventlog.protect('resolver.rollouts');

create table resolver.rollout_clusters (
  tenant text not null,
  fleet text not null,
  number integer not null,
  cluster text not null,
  wave integer not null,
  attempt integer not null default 0,
  directive text not null default '',
  outcome text not null default '',
  reason text not null default '',
  since timestamptz not null,
  forgiven boolean not null default false,
  primary key (tenant, fleet, number, cluster)
);
comment on table resolver.rollout_clusters is 'where each cluster of a rollout stands';
select eventlog.protect('resolver.rollout_clusters');

create table resolver.directives (
  tenant text not null,
  directive text not null,
  fleet text not null,
  number integer not null,
  cluster text not null,
  plan text not null default '',
  outcome text not null default '',
  reason text not null default '',
  content text not null default '',
  cause text not null default '',
  primary key (tenant, directive)
);
comment on table resolver.directives is 'what was asked of clusters, and what the facts that it caused say';
comment on column resolver.directives.plan is 'key of the stream of the newest plan that it led to';
create index directives_plan on resolver.directives (tenant, plan) where plan <> '';
create index directives_rollout on resolver.directives (tenant, fleet, number);
select eventlog.protect('resolver.directives');
create index subscriptions_owner on resolver.subscriptions (tenant, owner) where owner <> '';
