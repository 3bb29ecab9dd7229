-- compatible: 8
-- Questions and answers between services are signed. Each process has a key that never leaves it; who it is the database
-- says, since its role is that of its service: nobody else can register a key in the name of a service.
create table eventlog.service_keys (
  public_key bytea       primary key check (length(public_key) = 32),
  service    text        not null,
  registered timestamptz not null,
  seen       timestamptz not null
);
comment on table eventlog.service_keys is 'public keys of the processes of each service; one is believed for an hour after seen';

-- exchange_keys registers the key of a process of a service, again and again while it lives, and returns the keys that are
-- believed. A service has at most 256: those of its replicas and of an hour of restarts; the ones that were silent longest go.
create function eventlog.exchange_keys(p_service text, p_key bytea) returns table (service text, public_key bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := clock_timestamp();
begin
  if p_service not in ('gateway', 'resolver', 'installer', 'catalog-indexer') then
    raise exception 'there is no service %', p_service using errcode = 'CH003';
  elsif not pg_has_role(session_user, 'chandler_' || replace(p_service, '-', '_'), 'MEMBER') then
    raise exception 'role % may not register a key of the service %', session_user, p_service using errcode = 'CH003';
  end if;
  insert into eventlog.service_keys as k (public_key, service, registered, seen) values (p_key, p_service, now, now)
    on conflict on constraint service_keys_pkey do update set seen = excluded.seen where k.service = p_service;
  if not found then
    raise exception 'this key is that of another service' using errcode = 'CH003';
  end if;
  delete from eventlog.service_keys k where k.seen < now - interval '1 hour'
    or k.public_key in (select o.public_key from eventlog.service_keys o where o.service = p_service
      order by o.seen desc, o.public_key offset 256);
  return query select k.service, k.public_key from eventlog.service_keys k;
end $$;
grant select on eventlog.service_keys to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
revoke execute on function eventlog.exchange_keys(text, bytea) from public;
grant execute on function eventlog.exchange_keys(text, bytea)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
