create or replace function eventlog.append(
  p_tenant text, p_kind text, p_key uuid, p_incarnation int, p_subject text, p_expected bigint,
  p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[],
  out version bigint, out repeated boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  n       int := cardinality(p_types);
  ends    boolean;
  allowed boolean;
begin
  repeated := false;
  if p_tenant in ('', '*') or p_incarnation < 1 or p_expected < 0 or n < 1 then
    raise exception 'an append needs a tenant, an incarnation from 1, a version from 0 and an event' using errcode = 'CH006';
  end if;
  if coalesce(current_setting('chandler.tenant', true), '') not in ('*', p_tenant) then
    raise exception 'tenant % is not that of this session', p_tenant using errcode = 'CH003';
  end if;
  select t.closes, t.kind = p_kind and pg_has_role(session_user, t.role, 'MEMBER') into ends, allowed
    from eventlog.event_types t where t.type = p_types[n];
  if allowed is not true or n > 1 then
    perform eventlog.may_write(p_kind, p_types); -- looks at each type, and says what is wrong
  end if;
  if p_once then
    version := eventlog.done(p_tenant, p_key, p_incarnation, p_ids);
    repeated := version is not null;
    if repeated then return; end if;
  end if;

  -- The head is set first: ids are drawn under its lock, so that those of one stream rise with its versions.
  if p_expected = 0 then
    if p_incarnation > 1 then
      perform eventlog.may_begin(p_tenant, p_kind, p_key, p_incarnation, p_subject);
    end if;
    insert into eventlog.streams as s (tenant, kind, key, incarnation, subject, version, closed)
      values (p_tenant, p_kind, p_key, p_incarnation, p_subject, n, ends)
      on conflict do nothing;
  else
    update eventlog.streams as s set version = s.version + n, closed = ends
      where s.tenant = p_tenant and s.key = p_key and s.incarnation = p_incarnation
        and s.kind = p_kind and s.version = p_expected and not s.closed;
  end if;
  if found then
    for i in 1..n loop
      insert into eventlog.appended (tenant, kind, stream_key, incarnation, version, type, subject, event_id, body, hash)
        values (p_tenant, p_kind, p_key, p_incarnation, p_expected + i, p_types[i], p_subject, p_ids[i], p_bodies[i], sha256(p_bodies[i]));
    end loop;
    version := p_expected + n;
    return;
  end if;
  if p_once then -- the same command may have run beside us
    version := eventlog.done(p_tenant, p_key, p_incarnation, p_ids);
    repeated := version is not null;
    if repeated then return; end if;
  end if;
  perform eventlog.refuse(p_tenant, p_kind, p_key, p_incarnation, p_subject, p_expected);
end $$;

create or replace function eventlog.for_persons(p_tenant text) returns void
language plpgsql stable as $$
begin
  if not pg_has_role(session_user, 'chandler_gateway', 'MEMBER') then
    raise exception 'role % may not decide about parked events: only the gateway may', session_user using errcode = 'CH003';
  end if;
  if coalesce(current_setting('chandler.tenant', true), '') not in ('*', p_tenant) then
    raise exception 'tenant % is not that of this session', p_tenant using errcode = 'CH003';
  end if;
end $$;

create or replace function eventlog.protect(target regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  execute format('alter table %s enable row level security, force row level security', target);
  execute format($policy$create policy tenant on %s
    using (current_setting('chandler.tenant', true) in ('*', tenant) or current_user = 'chandler_owner')$policy$, target);
end $$;
do $$
declare
  t regclass;
begin
  for t in select p.polrelid from pg_policy p where p.polname = 'tenant' loop
    execute format($policy$alter policy tenant on %s
      using (current_setting('chandler.tenant', true) in ('*', tenant) or current_user = 'chandler_owner')$policy$, t);
  end loop;
end $$;

drop function eventlog.session_tenant();
