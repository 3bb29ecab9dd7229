-- Catalogs of every kind of source: whether one is offered, its credentials, hooks that ask for a look at
-- its source, and how default catalogs are switched.

-- Catalogs that are known already were never disabled.
alter table gateway.catalogs add column disabled boolean not null default false;

-- Credentials for sources, encrypted to the catalog-indexer's public age key. The gateway cannot read
-- what it wrote. The event holds the commitment alone, so that a row may be erased.
create table gateway.catalog_secrets (
  tenant     text        not null,
  name       text        not null,
  kind       text        not null check (kind in ('dockerconfigjson', 'basic', 'token', 'ssh', 'ca', 'kubeconfig')),
  commitment text        not null,
  salt       bytea       not null,
  ciphertext bytea       not null,
  updated    timestamptz not null,
  primary key (tenant, name)
);
comment on table gateway.catalog_secrets is 'credentials of catalog sources, encrypted to the catalog-indexer';
select eventlog.protect('gateway.catalog_secrets');

create view gateway_api.catalog_secrets with (security_barrier) as
  select tenant, name, kind, commitment, ciphertext from gateway.catalog_secrets
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view gateway_api.catalog_secrets is 'encrypted credentials of catalog sources, for the catalog-indexer';
revoke select on gateway_api.catalog_secrets from chandler_resolver, chandler_installer, chandler_gateway;

-- One hook for each catalog that has one. Its secret is made of the gateway's hook key and the nonce, and
-- stands nowhere. due is when the look that a push asked for is appended to the log.
create table gateway.catalog_hooks (
  tenant  text        not null,
  subject text        not null,
  nonce   bytea       not null,
  created timestamptz not null,
  last    timestamptz, -- when a push last led to a look
  due     timestamptz,
  primary key (tenant, subject)
);
comment on table gateway.catalog_hooks is 'hooks by which registries and repositories ask for a look at a source';
create index catalog_hooks_subject on gateway.catalog_hooks (subject);
create index catalog_hooks_due on gateway.catalog_hooks (due) where due is not null;
select eventlog.protect('gateway.catalog_hooks');

-- What people said of default catalogs, in the words of OperatorHub (R-CFG-10). What follows from it for
-- each catalog is in the log.
create table gateway.operatorhub (
  tenant      text        not null,
  disable_all boolean     not null,
  sources     jsonb       not null, -- {name: disabled}
  updated     timestamptz not null,
  primary key (tenant)
);
comment on table gateway.operatorhub is 'which default catalogs are switched off';
select eventlog.protect('gateway.operatorhub');
