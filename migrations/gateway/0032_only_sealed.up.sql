-- compatible: 25
-- Once all bodies of a kind are sealed, one in the clear is believed no more: it could come from somebody who can write to the
-- database and has no key. Releases of before that seal go on as they are: they store nothing in the clear any more, and
-- would believe such a body. Not a tenant's data.
create table gateway.sealed_kinds (
  kind  text        primary key,
  since timestamptz not null default now()
);
comment on table gateway.sealed_kinds is 'kinds of bodies of which none is in the clear any more';
revoke insert, update, delete, truncate on gateway.sealed_kinds from chandler_gateway;

create function gateway_api.sealed_kinds() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(k.kind order by k.kind), '{}') from gateway.sealed_kinds k
$$;
comment on function gateway_api.sealed_kinds() is 'kinds of bodies of which none in the clear is believed';
revoke execute on function gateway_api.sealed_kinds() from public;
grant execute on function gateway_api.sealed_kinds() to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- end_sealing notes the kinds of which no body is in the clear, and returns those that are new. It waits for an hour after
-- sealing has begun: a gateway asks every ten seconds whether it has, and stores in the clear until it knows.
create function gateway.end_sealing() returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  least_after constant interval := interval '1 hour';
  ended text[];
begin
  if not exists (select from eventlog.needs n where n.what = 'sealed-bodies' and n.since < clock_timestamp() - least_after) then
    return '{}';
  end if;
  with new as (
    insert into gateway.sealed_kinds (kind)
      select k from unnest(array['subscription-config', 'catalog-source', 'annotations', 'plan-reason']) k
        where not exists (select from gateway.bodies b where b.kind = k and b.key_id = '')
      union all
      select 'preview-question' where not exists (select from gateway.previews p where p.key_id = '')
    on conflict do nothing returning kind)
  select coalesce(array_agg(kind order by kind), '{}') into ended from new;
  return ended;
end $$;
comment on function gateway.end_sealing() is 'notes the kinds of which all bodies are sealed, and returns the new ones';
revoke execute on function gateway.end_sealing() from public;
grant execute on function gateway.end_sealing() to chandler_gateway;
