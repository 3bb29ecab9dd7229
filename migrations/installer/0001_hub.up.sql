-- What the hub keeps to tell executors what is wanted: a fold over the log that can be made again.

create table installer.clusters (
  tenant     text        not null,
  name       text        not null,
  cluster_id uuid        not null, -- of the registration (stream UUID): a cluster added again is another one
  stream     text        not null,
  credential text        not null, -- commitment; another one means another kubeconfig
  removed    boolean     not null default false,
  primary key (tenant, cluster_id)
);
comment on table installer.clusters is 'registered clusters, and those removed whose subjects are still to be cleared';
create unique index clusters_name on installer.clusters (tenant, name) where not removed;

create table installer.operatorgroups (
  tenant    text  not null,
  cluster   text  not null,
  namespace text  not null,
  name      text  not null,
  spec      jsonb not null,
  primary key (tenant, cluster, namespace, name)
);
comment on table installer.operatorgroups is 'operator groups as the log tells them';

create table installer.subscriptions (
  tenant    text not null,
  cluster   text not null,
  namespace text not null,
  name      text not null,
  config    text not null, -- commitment of spec.config, or ''
  primary key (tenant, cluster, namespace, name)
);
comment on table installer.subscriptions is 'which configuration each subscription carries';

create table installer.plans (
  tenant      text   not null,
  plan        uuid   not null,
  stream      text   not null,
  cluster     text   not null,
  namespace   text   not null,
  name        text   not null,
  phase       text   not null,
  state       jsonb  not null, -- installplan.State
  configs     jsonb  not null, -- commitment by CSV, as they stood when the plan was proposed
  epoch       bigint not null, -- position at which it was proposed
  position    bigint not null,
  traceparent text   not null default '',
  primary key (tenant, plan)
);
comment on table installer.plans is 'install plans as the log tells them';
create index plans_stream on installer.plans (tenant, stream);
create index plans_live on installer.plans (tenant, cluster, namespace, epoch, position) where phase in ('RequiresApproval', 'Installing');

create table installer.csvs (
  tenant    text not null,
  cluster   text not null,
  namespace text not null,
  name      text not null,
  stream    text not null,
  phase     text not null,
  reason    text not null,
  package   text not null,
  version   text not null,
  content   text not null,
  plan      text not null,
  primary key (tenant, cluster, namespace, name)
);
comment on table installer.csvs is 'ClusterServiceVersions that are installed according to the log';

-- Stops by a person, from access.* events. subject is 'fleet' or 'cluster/<name>'.
create table installer.stops (
  tenant  text not null,
  subject text not null,
  reason  text not null,
  primary key (tenant, subject)
);
comment on table installer.stops is 'where a person has stopped effects';

-- Scopes whose PLANS message is to be written again (libs/bus.Lanes).
create table installer.dirty (
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
comment on table installer.dirty is 'scopes to be published, with their claims';
create index dirty_turn on installer.dirty (lane, tenant, cluster, marked);

-- What PLANS was last given for each scope. renew is when grants in it must be signed again.
create table installer.published (
  tenant     text        not null,
  cluster_id uuid        not null,
  namespace  text        not null,
  cluster    text        not null,
  digest     text        not null, -- of the message without grants and position
  stopped    boolean     not null,
  published  timestamptz not null,
  renew      timestamptz,
  primary key (tenant, cluster_id, namespace)
);
comment on table installer.published is 'the last message of each scope in PLANS';
create index published_renew on installer.published (renew) where renew is not null;

-- When each JetStream stream was made that this schema last filled: another time means it is to be
-- filled again. Not a tenant's data; tenant is '*'.
create table installer.streams (
  tenant  text        not null default '*',
  name    text        not null,
  created timestamptz not null,
  primary key (tenant, name)
);
comment on table installer.streams is 'incarnations of JetStream streams that were filled';

select eventlog.protect(t) from unnest(array[
  'installer.clusters', 'installer.operatorgroups', 'installer.subscriptions', 'installer.plans', 'installer.csvs',
  'installer.stops', 'installer.dirty', 'installer.published', 'installer.streams']::regclass[]) as t;
