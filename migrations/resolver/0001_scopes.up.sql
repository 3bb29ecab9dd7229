-- What the resolver knows of intents and facts, as the log tells them: the inputs of a resolution but
-- for catalog content. All of it can be dropped and made again from the log.

create table resolver.clusters (
  tenant  text    not null,
  name    text    not null,
  removed boolean not null default false,
  primary key (tenant, name)
);
comment on table resolver.clusters is 'clusters as the log tells them; nothing is decided for a removed one';

-- decisions counts what was decided for the namespace: two workers that both hold a scope for a while
-- cannot both decide.
create table resolver.scopes (
  tenant    text   not null,
  cluster   text   not null,
  namespace text   not null,
  decisions bigint not null default 0,
  primary key (tenant, cluster, namespace)
);
comment on table resolver.scopes is 'namespaces for which something was decided, and how often';

-- One row per tenant, changed with every change of a catalog: a decision made upon catalogs that moved
-- meanwhile is made again, so that no scope's read set comes too late to be found dirty.
create table resolver.catalog_clock (
  tenant  text   not null,
  changes bigint not null,
  primary key (tenant)
);
comment on table resolver.catalog_clock is 'how often the catalogs of a tenant changed';

create table resolver.catalogs (
  tenant               text    not null,
  subject              text    not null, -- name, or cluster/namespace/name
  priority             integer not null,
  visibility_cluster   text    not null default '',
  visibility_namespace text    not null default '',
  revision             text    not null default '',
  failed               boolean not null default false, -- the last load failed
  primary key (tenant, subject)
);
comment on table resolver.catalogs is 'live catalogs and the revision in service';

create table resolver.subscriptions (
  tenant        text    not null,
  cluster       text    not null,
  namespace     text    not null,
  name          text    not null,
  incarnation   integer not null,
  version       bigint  not null, -- of the stream: what a decision is made upon
  spec          jsonb   not null,
  generated     boolean not null default false,
  created       bigint  not null, -- position, so that the older of two wins an installed operator
  correlation   text    not null default '',
  installed_csv text    not null default '',
  outcome       jsonb   not null default '{}', -- the last resolution.* event
  primary key (tenant, cluster, namespace, name)
);
comment on table resolver.subscriptions is 'live subscriptions and what was last said of their resolution';

create table resolver.operator_groups (
  tenant    text   not null,
  cluster   text   not null,
  namespace text   not null,
  name      text   not null,
  version   bigint not null,
  spec      jsonb  not null,
  primary key (tenant, cluster, namespace, name)
);
comment on table resolver.operator_groups is 'live operator groups';

create table resolver.installed (
  tenant     text  not null,
  cluster    text  not null,
  namespace  text  not null,
  name       text  not null,
  package    text  not null,
  version    text  not null,
  content    text  not null,
  plan       text  not null,
  phase      text  not null,
  replaces   text  not null default '', -- the CSV that it took the place of, by its plan
  properties jsonb not null default '[]',
  primary key (tenant, cluster, namespace, name)
);
comment on table resolver.installed is 'ClusterServiceVersions that are in a cluster, or will be since their plan is finished';

create table resolver.plans (
  tenant     text    not null,
  plan       text    not null, -- id
  key        uuid    not null, -- of its stream
  cluster    text    not null,
  namespace  text    not null,
  generation bigint  not null,
  version    bigint  not null,
  live       boolean not null,
  phase      text    not null,
  settled    boolean not null default false, -- subscriptions for its dependencies were generated
  state      jsonb   not null,               -- installplan.State
  primary key (tenant, plan)
);
comment on table resolver.plans is 'install plans, folded from their streams';
create unique index plans_key on resolver.plans (tenant, key);
create unique index plans_generation on resolver.plans (tenant, cluster, namespace, generation);

-- Scopes to be resolved (libs/bus.Lanes).
create table resolver.dirty (
  tenant      text        not null,
  cluster     text        not null,
  namespace   text        not null,
  lane        smallint    not null,
  generation  bigint      not null default 1,
  owner       text,
  until       timestamptz,
  attempts    integer     not null default 0,
  not_before  timestamptz not null default now(),
  marked      timestamptz not null default now(),
  cause       text        not null default '',
  traceparent text        not null default '',
  reason      text        not null default '',
  primary key (tenant, cluster, namespace)
);
comment on table resolver.dirty is 'scopes to be resolved, with their claims';
create index dirty_turn on resolver.dirty (lane, tenant, cluster, marked);

-- The read set of each scope's last resolution, misses included: what makes it dirty.
create table resolver.reads (
  tenant    text not null,
  cluster   text not null,
  namespace text not null,
  kind      text not null, -- visible, catalog, package, api, names
  catalog   text not null, -- subject; '' for visible and catalog
  name      text not null, -- of the package, the API or, where catalog is '', the catalog
  primary key (tenant, cluster, namespace, kind, catalog, name)
);
comment on table resolver.reads is 'what each scope''s last resolution asked of the catalogs';
create index reads_by_answer on resolver.reads (tenant, kind, catalog, name);

select eventlog.protect(t) from unnest(array[
  'resolver.clusters', 'resolver.scopes', 'resolver.catalog_clock', 'resolver.catalogs', 'resolver.subscriptions', 'resolver.operator_groups',
  'resolver.installed', 'resolver.plans', 'resolver.dirty', 'resolver.reads']::regclass[]) as t;
