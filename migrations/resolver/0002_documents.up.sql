-- What the resolver's events name by digest, and what it keeps of catalog content to find scopes fast.

create table resolver.plan_documents (
  tenant     text        not null,
  plan       text        not null,
  digest     text        not null,
  document   bytea       not null, -- canonical JSON of installplan.Document
  effect     text        not null, -- digest of what the plan would do: equal effects are not proposed twice
  properties jsonb       not null, -- of the bundles, by CSV
  created    timestamptz not null default now(),
  primary key (tenant, plan)
);
comment on table resolver.plan_documents is 'what install plans do and why';

create table resolver.explanations (
  tenant   text        not null,
  digest   text        not null,
  document jsonb       not null,
  created  timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table resolver.explanations is 'why something cannot be planned, by digest';

create table resolver.inputs (
  tenant   text        not null,
  digest   text        not null,
  document bytea       not null, -- zstd of canonical JSON of resolve.Record
  created  timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table resolver.inputs is 'everything that a decision consulted, to decide again and compare';

create table resolver.package_apis (
  tenant text   not null,
  digest text   not null, -- of the package document
  apis   text[] not null, -- group/version/kind that some bundle of it provides
  primary key (tenant, digest)
);
comment on table resolver.package_apis is 'which APIs a package document provides';

select eventlog.protect(t) from unnest(array[
  'resolver.plan_documents', 'resolver.explanations', 'resolver.inputs', 'resolver.package_apis']::regclass[]) as t;

create view resolver_api.plan_documents with (security_barrier) as
  select tenant, plan, digest, document from resolver.plan_documents
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view resolver_api.plan_documents is 'canonical JSON of install plans';

create view resolver_api.explanations with (security_barrier) as
  select tenant, digest, document from resolver.explanations
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view resolver_api.explanations is 'why something cannot be planned, by digest';
