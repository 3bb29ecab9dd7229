-- Fleet subscriptions, and rollouts with their clusters. The tables have no row: read models are made of their shape
-- (ADR 0043).
-- compatible: 25
create table gateway.fleet_subscriptions (
  tenant  text        not null,
  name    text        not null,
  spec    jsonb       not null, -- events.FleetSubscriptionSpec
  created timestamptz not null,
  updated timestamptz not null,
  stream  text        not null,
  version bigint      not null,
  primary key (tenant, name)
);
comment on table gateway.fleet_subscriptions is 'read model: fleet subscriptions';
select eventlog.protect('gateway.fleet_subscriptions');

create table gateway.rollouts (
  tenant         text        not null,
  fleet          text        not null,
  number         integer     not null,
  stream_version bigint      not null,
  phase          text        not null,
  reason         text        not null default '',
  wave           integer     not null,
  passed         integer     not null,
  promoted       boolean     not null default false,
  started        jsonb       not null, -- events.RolloutStarted
  started_at     timestamptz not null,
  changed_at     timestamptz not null,
  primary key (tenant, fleet, number)
);
comment on table gateway.rollouts is 'read model: rollouts, what each began with and where it stands';
select eventlog.protect('gateway.rollouts');

create table gateway.rollout_clusters (
  tenant     text        not null,
  fleet      text        not null,
  number     integer     not null,
  cluster    text        not null,
  wave       integer     not null,
  attempt    integer     not null default 0,
  directive  text        not null default '',
  outcome    text        not null default '',
  reason     text        not null default '',
  since      timestamptz not null,
  forgiven   boolean     not null default false,
  words      text        not null default '', -- commitment to why a person skipped it
  skipped_by text        not null default '',
  primary key (tenant, fleet, number, cluster)
);
comment on table gateway.rollout_clusters is 'read model: where each cluster of a rollout stands';
select eventlog.protect('gateway.rollout_clusters');
