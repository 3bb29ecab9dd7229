-- Read models of the API (DESIGN D9): each can be dropped and made again from the log. event_id says
-- which event set what stands beside it; stream and version where its stream stood.

create table gateway.clusters (
  tenant             text        not null,
  name               text        not null,
  labels             jsonb       not null,
  state              text        not null,
  reason             text        not null,
  kubernetes_version text        not null,
  holder_epoch       bigint      not null,
  registered         timestamptz not null,
  updated            timestamptz not null,
  stream             text        not null,
  version            bigint      not null,
  primary key (tenant, name)
);
comment on table gateway.clusters is 'read model: registered clusters';

create table gateway.catalogs (
  tenant               text        not null,
  subject              text        not null,
  name                 text        not null,
  cluster              text        not null,
  namespace            text        not null,
  source_type          text        not null,
  spec                 text        not null,
  priority             int         not null,
  visibility_cluster   text        not null,
  visibility_namespace text        not null,
  state                text        not null,
  reason               text        not null,
  rule                 text        not null,
  findings             int         not null,
  document             text        not null,
  revision             text        not null,
  packages             int         not null,
  bundles              int         not null,
  event_id             text        not null,
  added                timestamptz not null,
  updated              timestamptz not null,
  stream               text        not null,
  version              bigint      not null,
  primary key (tenant, subject)
);
comment on table gateway.catalogs is 'read model: catalogs and the revision in service';

create table gateway.operatorgroups (
  tenant    text        not null,
  cluster   text        not null,
  namespace text        not null,
  name      text        not null,
  spec      jsonb       not null,
  event_id  text        not null,
  created   timestamptz not null,
  updated   timestamptz not null,
  stream    text        not null,
  version   bigint      not null,
  primary key (tenant, cluster, namespace, name)
);
comment on table gateway.operatorgroups is 'read model: operator groups';

create table gateway.subscriptions (
  tenant            text        not null,
  cluster           text        not null,
  namespace         text        not null,
  name              text        not null,
  package           text        not null,
  channel           text        not null,
  catalog           text        not null,
  catalog_namespace text        not null,
  starting_csv      text        not null,
  approval          text        not null,
  config            text        not null,
  generated         boolean     not null,
  current_csv       text        not null,
  installed_csv     text        not null,
  plan_id           text        not null,
  plan_name         text        not null,
  plan_generation   bigint      not null,
  plan_phase        text        not null,
  plan_reason       text        not null,
  plan_event        text        not null,
  plan_since        timestamptz,
  failed_reason     text        not null,
  failed_document   text        not null,
  failed_event      text        not null,
  failed_since      timestamptz,
  created           timestamptz not null,
  updated           timestamptz not null,
  stream            text        not null,
  version           bigint      not null,
  primary key (tenant, cluster, namespace, name)
);
comment on table gateway.subscriptions is 'read model: subscriptions and what became of them';
create index subscriptions_package on gateway.subscriptions (tenant, package, cluster, namespace, name);
-- Few of a fleet are not where they shall be, and these are what people ask for.
create index subscriptions_moving on gateway.subscriptions (tenant, cluster, namespace, name) where current_csv <> installed_csv;

-- The CSVs and catalogs that the states of subscriptions are told from.
create table gateway.subscription_csvs (
  tenant    text not null,
  cluster   text not null,
  namespace text not null,
  name      text not null,
  phase     text not null,
  primary key (tenant, cluster, namespace, name)
);
comment on table gateway.subscription_csvs is 'read model: CSVs that exist, for the states of subscriptions';

create table gateway.subscription_catalogs (
  tenant   text        not null,
  subject  text        not null,
  state    text        not null,
  reason   text        not null,
  event_id text        not null,
  since    timestamptz not null,
  primary key (tenant, subject)
);
comment on table gateway.subscription_catalogs is 'read model: health of catalogs, for the conditions of subscriptions';

create table gateway.installplans (
  tenant           text        not null,
  id               text        not null,
  cluster          text        not null,
  namespace        text        not null,
  name             text        not null,
  generation       bigint      not null,
  component        text        not null,
  approval         text        not null,
  phase            text        not null,
  begun            boolean     not null,
  digest           text        not null,
  document         text        not null,
  steps            int         not null,
  base             jsonb       not null,
  bundles          jsonb       not null,
  blocked_class    text        not null,
  blocked_reason   text        not null,
  failed_step      int         not null,
  failed_reason    text        not null,
  superseded_by    text        not null,
  step_log         text        not null,
  approved_by      text        not null,
  approved         timestamptz,
  approval_expires timestamptz,
  epoch            bigint      not null,
  position         bigint      not null,
  proposed         timestamptz not null,
  started          timestamptz,
  ended            timestamptz,
  updated          timestamptz not null,
  stream           text        not null,
  version          bigint      not null,
  primary key (tenant, id)
);
comment on table gateway.installplans is 'read model: install plans';
create index installplans_newest on gateway.installplans (tenant, epoch desc, position desc);
create index installplans_scope on gateway.installplans (tenant, cluster, namespace, epoch desc, position desc);
create index installplans_phase on gateway.installplans (tenant, phase, epoch desc, position desc);
create index installplans_stream on gateway.installplans (tenant, stream);

create table gateway.operators (
  tenant    text        not null,
  cluster   text        not null,
  namespace text        not null,
  name      text        not null,
  package   text        not null,
  csv_version text      not null,
  phase     text        not null,
  reason    text        not null,
  content   text        not null,
  plan      text        not null,
  flapping  boolean     not null,
  history   jsonb       not null,
  installed timestamptz not null,
  updated   timestamptz not null,
  stream    text        not null,
  version   bigint      not null,
  primary key (tenant, cluster, namespace, name)
);
comment on table gateway.operators is 'read model: installed operators, one for each CSV';
create index operators_package on gateway.operators (tenant, package, cluster, namespace, name);
create index operators_phase on gateway.operators (tenant, phase, cluster, namespace, name);

select eventlog.protect(t) from unnest(array[
  'gateway.clusters', 'gateway.catalogs', 'gateway.operatorgroups', 'gateway.subscriptions', 'gateway.subscription_csvs',
  'gateway.subscription_catalogs', 'gateway.installplans', 'gateway.operators']::regclass[]) as t;

