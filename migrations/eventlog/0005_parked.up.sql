-- compatible: 4
-- What a consumer could not take is kept with its bytes, and a person can go on without it.

alter table eventlog.parked add column body bytea;
comment on column eventlog.parked.body is 'the bytes of an event that could not be taken; null for one that waits behind it';
comment on table eventlog.parked is 'events that a consumer could not take; retried, and skipped only by a person who gives a reason';

-- Events that a person has had a consumer go on without. A consumer that reads the log again goes on without them again.
create table eventlog.skipped (
  tenant     text        not null,
  consumer   text        not null,
  stream     text        not null,
  version    bigint      not null,
  epoch      bigint      not null,
  position   bigint      not null,
  type       text        not null,
  body       bytea,
  failure    text        not null,
  attempts   int         not null,
  parked     timestamptz not null,
  skipped    timestamptz not null,
  skipped_by text        not null,
  reason     text        not null check (reason <> ''),
  primary key (consumer, stream, version)
);
comment on table eventlog.skipped is 'events that a person has had a consumer go on without: who, when and why';
select eventlog.protect('eventlog.skipped');

-- retry_parked makes a consumer try the parked events of a stream, or of all streams, at its next poll, and returns how
-- many wait there. Only the gateway's role, since only the gateway knows persons.
create function eventlog.retry_parked(p_tenant text, p_consumer text, p_stream text) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  n int;
begin
  perform eventlog.for_persons(p_tenant);
  update eventlog.parked set next_retry = clock_timestamp()
    where tenant = p_tenant and consumer = p_consumer and (p_stream = '' or stream = p_stream);
  get diagnostics n = row_count;
  return n;
end $$;

-- skip_parked has a consumer go on without one event. It must be the first one parked of its stream: those behind it
-- have not been tried yet. They are tried at the next poll. It returns whether there was such an event.
create function eventlog.skip_parked(
  p_tenant text, p_consumer text, p_stream text, p_version bigint, p_actor text, p_reason text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.for_persons(p_tenant);
  -- A consumer that tries the stream now has locked its rows, and may take the event after all.
  perform from eventlog.parked p where p.tenant = p_tenant and p.consumer = p_consumer and p.stream = p_stream
    order by version for update;
  if p_version is distinct from (select min(p.version) from eventlog.parked p
      where p.tenant = p_tenant and p.consumer = p_consumer and p.stream = p_stream) then
    return false;
  end if;
  with gone as (delete from eventlog.parked p where p.tenant = p_tenant and p.consumer = p_consumer
    and p.stream = p_stream and p.version = p_version returning p.*)
  insert into eventlog.skipped (tenant, consumer, stream, version, epoch, position, type, body, failure, attempts, parked,
      skipped, skipped_by, reason)
    select tenant, consumer, stream, version, epoch, position, type, body, gone.reason, attempts, since,
      clock_timestamp(), p_actor, p_reason from gone
  on conflict (consumer, stream, version) do update set skipped = excluded.skipped, skipped_by = excluded.skipped_by,
    reason = excluded.reason, failure = excluded.failure;
  update eventlog.parked set next_retry = clock_timestamp()
    where tenant = p_tenant and consumer = p_consumer and stream = p_stream;
  return true;
end $$;

-- for_persons refuses everybody but the gateway, and a tenant that is not that of the session.
create function eventlog.for_persons(p_tenant text) returns void
language plpgsql stable as $$
begin
  if not pg_has_role(session_user, 'chandler_gateway', 'MEMBER') then
    raise exception 'role % may not decide about parked events: only the gateway may', session_user using errcode = 'CH003';
  end if;
  if coalesce(current_setting('chandler.tenant', true), '') not in ('*', p_tenant) then
    raise exception 'tenant % is not that of this session', p_tenant using errcode = 'CH003';
  end if;
end $$;

revoke execute on function eventlog.retry_parked(text, text, text),
  eventlog.skip_parked(text, text, text, bigint, text, text), eventlog.for_persons(text) from public;
grant execute on function eventlog.retry_parked(text, text, text),
  eventlog.skip_parked(text, text, text, bigint, text, text) to chandler_gateway;
grant select on eventlog.skipped
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
