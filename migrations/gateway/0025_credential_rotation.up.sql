-- compatible: 23
-- The installer puts the next token of a cluster in the place of the one before. It replaces the credential that it has
-- read and nothing else: one that a person, or another replica, stored meanwhile has another commitment.
create function gateway_api.rotate_cluster_credential(
  p_tenant text, p_name text, p_was text, p_commitment text, p_salt bytea, p_ciphertext bytea, p_key_id text
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_key_id !~ '^[0-9a-f]{16}$' then
    raise exception 'not the id of a key: %', p_key_id;
  end if;
  if p_commitment !~ '^c1:[0-9a-f]{64}$' then
    raise exception 'not a commitment: %', p_commitment;
  end if;
  update gateway.credentials set commitment = p_commitment, salt = p_salt, ciphertext = p_ciphertext, key_id = p_key_id,
      updated = now()
   where tenant = p_tenant and name = p_name and commitment = p_was
     and current_setting('chandler.tenant', true) in ('*', tenant);
  return found;
end $$;
revoke all on function gateway_api.rotate_cluster_credential from public;
grant execute on function gateway_api.rotate_cluster_credential to chandler_installer;
