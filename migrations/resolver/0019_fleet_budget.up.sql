-- How many clusters fleet subscriptions may change, and let go of, within an hour; and what was changed.
-- compatible: 14
create table resolver.fleet_budgets (
  tenant text not null,
  changed integer not null,
  leaving integer not null,
  primary key (tenant)
);
comment on table resolver.fleet_budgets is 'bounds of mass changes of tenants that have set some; 0 is none';
select eventlog.protect('resolver.fleet_budgets');

create table resolver.fleet_allowances (
  tenant text not null,
  event uuid not null,
  changed integer not null,
  leaving integer not null,
  at timestamptz not null,
  primary key (tenant, event)
);
comment on table resolver.fleet_allowances is 'what persons allowed beyond the bounds, for an hour each';
select eventlog.protect('resolver.fleet_allowances');

create table resolver.fleet_changes (
  tenant text not null,
  event uuid not null,
  kind text not null,
  cluster text not null,
  at timestamptz not null,
  primary key (tenant, event)
);
comment on table resolver.fleet_changes is 'clusters that fleet subscriptions changed or let go of, which the bounds count';
create index fleet_changes_at on resolver.fleet_changes (tenant, at);
select eventlog.protect('resolver.fleet_changes');

alter table resolver.fleet_subscriptions add column held jsonb;
comment on column resolver.fleet_subscriptions.held is 'why and how many clusters are held back; null where none is';

create view resolver_api.fleet_held with (security_barrier) as
  select f.tenant, f.name, f.held from resolver.fleet_subscriptions f
  where held is not null and current_setting('chandler.tenant', true) in ('*', f.tenant);

create view resolver_api.fleet_changes with (security_barrier) as
  select c.tenant, c.kind, c.cluster, c.at from resolver.fleet_changes c
  where current_setting('chandler.tenant', true) in ('*', c.tenant);
