-- What stands beside the gateway's events: bodies that may be erased, encrypted credentials, tokens.

-- Bodies of what events carry commitments to. A commitment is "c1:" and the SHA-256 of salt and body,
-- so that it says nothing about a body that was erased.
create table gateway.bodies (
  tenant     text        not null,
  commitment text        not null,
  kind       text        not null check (kind in ('subscription-config', 'catalog-source')),
  salt       bytea       not null,
  body       bytea       not null,
  created    timestamptz not null default now(),
  primary key (tenant, commitment)
);
comment on table gateway.bodies is 'erasable bodies that events hold commitments to';
select eventlog.protect('gateway.bodies');

-- One kubeconfig per registered cluster, encrypted to the installer's public age key. The gateway
-- cannot read what it wrote.
create table gateway.credentials (
  tenant      text        not null,
  cluster_key uuid        not null,
  name        text        not null,
  commitment  text        not null,
  salt        bytea       not null,
  ciphertext  bytea       not null,
  updated     timestamptz not null default now(),
  primary key (tenant, cluster_key)
);
comment on table gateway.credentials is 'kubeconfigs, encrypted to the installer; erased with the cluster';
select eventlog.protect('gateway.credentials');

-- Tokens are kept as SHA-256 only: they are random, so that a slow hash would protect nothing more.
create table gateway.tokens (
  tenant  text        not null,
  id      text        not null,
  hash    bytea       not null unique,
  role    text        not null check (role in ('admin', 'viewer')),
  created timestamptz not null default now(),
  expires timestamptz,
  primary key (tenant, id)
);
comment on table gateway.tokens is 'who may call the API; the id is the actor in events';
select eventlog.protect('gateway.tokens');

create view gateway_api.bodies with (security_barrier) as
  select tenant, commitment, kind, body from gateway.bodies
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view gateway_api.bodies is 'bodies by commitment, for resolver, indexer and installer';

create view gateway_api.cluster_credentials with (security_barrier) as
  select tenant, cluster_key, name, commitment, ciphertext from gateway.credentials
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view gateway_api.cluster_credentials is 'encrypted kubeconfigs, for the installer';

revoke select on gateway_api.cluster_credentials from chandler_resolver, chandler_catalog_indexer, chandler_gateway;
