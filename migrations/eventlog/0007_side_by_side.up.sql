-- compatible: 6
-- Nothing is decided or removed by tables that are behind the log; and releases run side by side.

-- A consumer that reads again what it had read: its tables do not hold yet what they held before. A new consumer of an
-- old log is as far behind.
alter table eventlog.checkpoints add column replay_to bigint;
comment on column eventlog.checkpoints.replay_to is 'the position up to which the consumer reads the log again; null where it does not';

-- note_replay keeps replay_to. Going back waits for those who decide or remove by the tables now (hold_work), and keeps
-- out those who come later: where tables are emptied in the same transaction, go back first.
create function eventlog.note_replay() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    select greatest(s.position, new.replay_to) into new.replay_to from eventlog.sequencer s;
  elsif new.position < old.position then
    perform pg_advisory_xact_lock(hashtext('replay/' || new.consumer));
    new.replay_to := greatest(old.position, old.replay_to);
  end if;
  if new.position >= new.replay_to then
    new.replay_to := null;
  end if;
  return new;
end $$;
revoke execute on function eventlog.note_replay() from public;
create trigger note_begin before insert on eventlog.checkpoints for each row execute function eventlog.note_replay();
create trigger note_replay before update on eventlog.checkpoints for each row
  when (new.position < old.position or old.replay_to is not null) execute function eventlog.note_replay();

-- at_work says whether the tables of a consumer hold what they held before: it has begun, and reads nothing again.
create function eventlog.at_work(p_consumer text) returns boolean
language sql stable as $$
  select exists (select from eventlog.checkpoints c
    where c.consumer = p_consumer and c.tenant = '*' and c.replay_to is null)
$$;

-- hold_work is at_work, and keeps the answer true until the transaction ends.
create function eventlog.hold_work(p_consumer text) returns boolean
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('replay/' || p_consumer));
  return eventlog.at_work(p_consumer); -- a statement of its own: it sees what was committed before the lock
end $$;

-- Until which releases a schema reaches back: binaries made for this version of it, and later ones, work with it.
alter table eventlog.schema_info add column compatible_from bigint;
comment on column eventlog.schema_info.compatible_from is 'the oldest version of the schema whose binaries work with this one';

-- What each process that reads the log knows. Not a tenant's data.
create table eventlog.readers (
  instance text        primary key,
  service  text        not null,
  version  text        not null,
  types    text[]      not null,
  started  timestamptz not null,
  seen     timestamptz not null
);
comment on table eventlog.readers is 'which event types each process that reads the log knows; it is alive for a minute after seen';

-- Event types that the code has and that a live reader does not know yet. Nobody may append them. Not a tenant's data.
create table eventlog.coming_types (
  type      text        primary key,
  kind      text        not null,
  writer    text        not null,
  closes    boolean     not null,
  announced timestamptz not null default now()
);
comment on table eventlog.coming_types is 'event types that nobody may write yet, because a live reader does not know them';

-- unaware names the live readers that do not know a type.
create function eventlog.unaware(p_type text) returns text
language sql stable as $$
  select string_agg(r.service || ' ' || r.version, ', ' order by r.service, r.version) from eventlog.readers r
  where r.seen > clock_timestamp() - interval '1 minute' and not p_type = any (r.types)
$$;

-- announce_type registers a type of the code: at once where all live readers know it. The migration command calls it.
create function eventlog.announce_type(p_type text, p_kind text, p_writer text, p_closes boolean) returns void
language plpgsql as $$
begin
  update eventlog.event_types t set kind = p_kind, writer = p_writer, closes = p_closes
    where t.type = p_type and (t.kind, t.writer, t.closes) is distinct from (p_kind, p_writer, p_closes);
  if exists (select from eventlog.event_types t where t.type = p_type) then
    return;
  end if;
  insert into eventlog.coming_types (type, kind, writer, closes) values (p_type, p_kind, p_writer, p_closes)
    on conflict (type) do update set kind = p_kind, writer = p_writer, closes = p_closes;
end $$;

-- release_types lets those types be written that all live readers know. A reader that begins in this moment is waited for.
create function eventlog.release_types() returns void
language plpgsql as $$
begin
  if not exists (select from eventlog.coming_types) then return; end if;
  lock table eventlog.readers in share row exclusive mode;
  with known as (delete from eventlog.coming_types c where eventlog.unaware(c.type) is null returning c.*)
  insert into eventlog.event_types (type, kind, writer, closes) select type, kind, writer, closes from known
    on conflict do nothing;
end $$;

-- attend says that a reader is alive and what it knows. It returns the types that may be in the log and that it does not
-- know: where it meets one, it stops.
create function eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := clock_timestamp();
begin
  perform eventlog.release_types();
  insert into eventlog.readers (instance, service, version, types, started, seen)
    values (p_instance, p_service, p_version, p_types, now, now)
    on conflict (instance) do update set seen = excluded.seen, types = excluded.types;
  delete from eventlog.readers r where r.seen < now - interval '1 day';
  return array(select t.type from eventlog.event_types t where not t.type = any (p_types) order by 1);
end $$;

-- leave says that a reader has ended in good order: nobody waits for it.
create function eventlog.leave(p_instance text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from eventlog.readers where instance = p_instance;
  perform eventlog.release_types();
end $$;

-- may_write, a part of append: as before, but a type that is to come is named with the readers that do not know it
-- (CH007: the same append succeeds later).
create or replace function eventlog.may_write(p_kind text, p_types text[]) returns void
language plpgsql stable as $$
declare
  r record;
begin
  for r in
    select u.type, t.kind, t.writer, t.role, c.type is not null as coming
    from unnest(p_types) with ordinality as u (type, i) left join eventlog.event_types t on t.type = u.type
      left join eventlog.coming_types c on c.type = u.type
    order by u.i
  loop
    if r.kind is null and r.coming then
      raise exception 'event type % is not written yet: a reader does not know it (%)', r.type, coalesce(eventlog.unaware(r.type), 'until a moment ago')
        using errcode = 'CH007', hint = 'it is written once all readers are of the new release';
    elsif r.kind is null then
      raise exception 'event type % is not registered in this database', r.type
        using errcode = 'CH006', hint = 'run the migration command of the version that writes it';
    elsif r.kind <> p_kind then
      raise exception 'event type % stands in streams of kind %, not %', r.type, r.kind, p_kind using errcode = 'CH006';
    elsif not pg_has_role(session_user, r.role, 'MEMBER') then
      raise exception 'role % may not write events of type %: their writer is the service %', session_user, r.type, r.writer
        using errcode = 'CH003';
    end if;
  end loop;
end $$;

revoke execute on function eventlog.unaware(text), eventlog.announce_type(text, text, text, boolean),
  eventlog.release_types(), eventlog.attend(text, text, text, text[]), eventlog.leave(text) from public;
grant execute on function eventlog.attend(text, text, text, text[]), eventlog.leave(text)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
grant select on eventlog.readers, eventlog.coming_types
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
