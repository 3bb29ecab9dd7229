-- Every condition of a subscription names the event that set it. The projection is made again from the log,
-- which fills the new columns.
alter table gateway.subscriptions
  add column plan_approval   text not null default '', -- Automatic, Manual
  add column plan_begun      boolean not null default false,
  add column plan_expires    timestamptz,                 -- of its approval
  add column plan_windows    jsonb not null default '[]', -- events.WindowGroup
  add column spec_event      text not null default '', -- of the intent as it is now
  add column spec_since      timestamptz,
  add column installed_event text not null default '', -- of the CSV that is installed
  add column installed_since timestamptz,
  add column missing_event   text not null default '', -- that ended the plan which the subscription waits for; '' where none did
  add column missing_since   timestamptz;

-- What a cluster sees of a templated catalog is the variant of its Kubernetes version.
alter table gateway.subscription_catalogs
  add column variant        text not null default '',
  add column revision_event text not null default '', -- of the revision in service
  add column revision_since timestamptz,
  drop constraint subscription_catalogs_pkey,
  add primary key (tenant, subject, variant);

create table gateway.subscription_deprecations (
  tenant   text        not null,
  subject  text        not null, -- of the catalog
  variant  text        not null,
  package  text        not null,
  element  text        not null, -- olm.package, olm.channel/<name> or olm.bundle/<name>
  event_id text        not null,
  since    timestamptz not null,
  primary key (tenant, subject, variant, package, element)
);
comment on table gateway.subscription_deprecations is 'read model: since which event something is deprecated, for the conditions of subscriptions';
select eventlog.protect('gateway.subscription_deprecations');
