create or replace view gateway_api.bodies with (security_barrier) as
  select b.tenant, b.commitment, b.kind, b.body from gateway.bodies b
  where current_setting('chandler.tenant', true) in ('*', b.tenant)
    and case b.kind
      when 'subscription-config' then pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
        or pg_has_role(session_user, 'chandler_resolver', 'MEMBER') or pg_has_role(session_user, 'chandler_installer', 'MEMBER')
      when 'catalog-source' then pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
        or pg_has_role(session_user, 'chandler_catalog_indexer', 'MEMBER')
      when 'annotations' then pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
        or pg_has_role(session_user, 'chandler_installer', 'MEMBER')
      else pg_has_role(session_user, 'chandler_gateway', 'MEMBER')
    end;
