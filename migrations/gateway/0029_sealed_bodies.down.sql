do $$
begin
  if exists (select from gateway.bodies where key_id <> '') then
    raise exception 'bodies are sealed: a schema without their keys'' names would lose them';
  end if;
end $$;
drop function gateway.begin_sealing();
drop function gateway_api.clear_bodies();
delete from gateway.previews where key_id <> '';
alter table gateway.previews drop column key_id;
drop view gateway_api.bodies;
create view gateway_api.bodies with (security_barrier) as
  select b.tenant, b.commitment, b.kind, b.body from gateway.bodies b
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
comment on view gateway_api.bodies is 'bodies by commitment, for resolver, indexer and installer';
drop index gateway.bodies_by_key;
alter table gateway.bodies drop column key_id;
