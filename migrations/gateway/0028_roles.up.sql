-- compatible: 26
-- Roles and bindings (ADR 0046). A token of before has role admin or viewer, and means what it meant: a gateway takes it for
-- a binding to the role of that name. A token of role none has what bindings give to its actor; a gateway of before
-- refuses it everything.
alter table gateway.tokens
  drop constraint tokens_role_check,
  add constraint tokens_role_check check (role in ('admin', 'viewer', 'none'));

create table gateway.roles (
  tenant  text        not null,
  name    text        not null,
  rules   jsonb       not null, -- events.AccessRule
  created timestamptz not null,
  updated timestamptz not null,
  primary key (tenant, name)
);
comment on table gateway.roles is 'read model: roles that people defined; those that are built in are in the code';
select eventlog.protect('gateway.roles');

create table gateway.role_bindings (
  tenant   text        not null,
  name     text        not null,
  role     text        not null,
  subjects jsonb       not null, -- events.AccessSubject
  scope    jsonb       not null, -- events.AccessScope
  created  timestamptz not null,
  updated  timestamptz not null,
  primary key (tenant, name)
);
comment on table gateway.role_bindings is 'read model: who has which role, and where';
select eventlog.protect('gateway.role_bindings');

create table gateway.access_clusters (
  tenant text  not null,
  name   text  not null,
  labels jsonb not null,
  primary key (tenant, name)
);
comment on table gateway.access_clusters is 'read model: labels of clusters, as scopes of bindings choose by them';
select eventlog.protect('gateway.access_clusters');

create table gateway.access_versions (
  tenant  text   not null,
  epoch   bigint not null,
  position bigint not null,
  primary key (tenant)
);
comment on table gateway.access_versions is 'read model: position of the last event that changed who may do what; gateways keep what they have read until it moves';
select eventlog.protect('gateway.access_versions');
