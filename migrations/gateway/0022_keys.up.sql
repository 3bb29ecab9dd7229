-- The id of the key that a row is encrypted to, or that a hook's secret is derived from; '' is one of before, which is
-- encrypted anew where the service has an identity for it.
alter table gateway.credentials add column key_id text not null default '';
alter table gateway.catalog_secrets add column key_id text not null default '';
alter table gateway.catalog_hooks add column key_id text not null default '';

create or replace view gateway_api.cluster_credentials with (security_barrier) as
  select tenant, cluster_key, name, commitment, ciphertext, key_id from gateway.credentials
   where current_setting('chandler.tenant', true) in ('*', tenant);

create or replace view gateway_api.catalog_secrets with (security_barrier) as
  select tenant, name, kind, commitment, ciphertext, key_id from gateway.catalog_secrets
   where current_setting('chandler.tenant', true) in ('*', tenant);

-- The only service that can decrypt a row encrypts it anew. It replaces what it has read and nothing else: another
-- credential that was stored meanwhile has another commitment, and another replica's work another key.
create function gateway_api.reseal_cluster_credential(
  p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_key_id !~ '^[0-9a-f]{16}$' then
    raise exception 'not the id of a key: %', p_key_id;
  end if;
  update gateway.credentials set ciphertext = p_ciphertext, key_id = p_key_id
   where tenant = p_tenant and name = p_name and commitment = p_commitment and key_id = p_was
     and current_setting('chandler.tenant', true) in ('*', tenant);
  return found;
end $$;
revoke all on function gateway_api.reseal_cluster_credential from public;
grant execute on function gateway_api.reseal_cluster_credential to chandler_installer;

create function gateway_api.reseal_catalog_secret(
  p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_key_id !~ '^[0-9a-f]{16}$' then
    raise exception 'not the id of a key: %', p_key_id;
  end if;
  update gateway.catalog_secrets set ciphertext = p_ciphertext, key_id = p_key_id
   where tenant = p_tenant and name = p_name and commitment = p_commitment and key_id = p_was
     and current_setting('chandler.tenant', true) in ('*', tenant);
  return found;
end $$;
revoke all on function gateway_api.reseal_catalog_secret from public;
grant execute on function gateway_api.reseal_catalog_secret to chandler_catalog_indexer;
