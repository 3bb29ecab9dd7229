-- compatible: 25
-- Bodies are sealed by keys that are not in the database (ADR 0038). key_id names the key of a row; '' is one in the clear,
-- of a release before, which the gateway seals in the background. Then salt is empty: it is sealed with the body.
alter table gateway.bodies add column key_id text not null default '';

-- What is sealed by which key: few rows are by another one than the active.
create index bodies_by_key on gateway.bodies (kind, key_id, tenant, commitment);

create or replace view gateway_api.bodies with (security_barrier) as
  select b.tenant, b.commitment, b.kind, b.body, b.key_id, b.salt from gateway.bodies b
  where current_setting('chandler.tenant', true) in ('*', b.tenant)
    and case b.kind
      when 'subscription-config' then pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
        or pg_has_role(session_user, 'chandler_resolver', 'MEMBER') or pg_has_role(session_user, 'chandler_installer', 'MEMBER')
      when 'catalog-source' then pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
        or pg_has_role(session_user, 'chandler_catalog_indexer', 'MEMBER')
        or pg_has_role(session_user, 'chandler_installer', 'MEMBER') -- names of catalogs in the mirrors of clusters
      when 'annotations' then pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
        or pg_has_role(session_user, 'chandler_installer', 'MEMBER')
      else pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
    end;

-- What a preview was asked about is sealed likewise.
alter table gateway.previews add column key_id text not null default '';

-- How many bodies, and questions of previews, are in the clear, over all tenants, for metrics and chandler doctor.
create function gateway_api.clear_bodies() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (select count(*) from gateway.bodies where key_id = '') + (select count(*) from gateway.previews where key_id = '')
$$;
comment on function gateway_api.clear_bodies() is 'how many bodies and questions of previews are not sealed';
revoke execute on function gateway_api.clear_bodies() from public;
grant execute on function gateway_api.clear_bodies() to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- begin_sealing says whether rows may be sealed: all live readers open them. From then on none that does not is let in.
create function gateway.begin_sealing() returns boolean
language sql security definer set search_path = pg_catalog, pg_temp as $$ select eventlog.need('sealed-bodies') $$;
comment on function gateway.begin_sealing() is 'whether every live process opens sealed bodies, which stays so';
revoke execute on function gateway.begin_sealing() from public;
grant execute on function gateway.begin_sealing() to chandler_gateway;
