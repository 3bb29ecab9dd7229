-- compatible: 8
-- What one service could keep from all others: checkpoints by a prefix that names no service, the sequencing by leading
-- without a move, and new event types by the name of another's reader.

-- lock_checkpoints, as before; every checkpoint that it would lock is the caller's own, whatever the prefix is.
create or replace function eventlog.lock_checkpoints(p_consumer text, p_prefix text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.own(p_prefix);
  perform eventlog.own(c.consumer) from eventlog.checkpoints c where starts_with(c.consumer, p_prefix);
  insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
  perform from eventlog.checkpoints c where c.consumer = p_consumer or starts_with(c.consumer, p_prefix)
    order by c.consumer for update;
end $$;

-- The event that candidates have seen at the head of the inbox, and since when; null where none was seen waiting.
alter table eventlog.sequencer
  add column waiting       bigint,
  add column waiting_since timestamptz;

-- stalled says whether the same event has been at the head of the inbox for 5 seconds while somebody leads: a leader moves
-- it within milliseconds. Candidates note what they see at most once a second, and not while the row is locked, as it is
-- by a move that takes long.
create function eventlog.stalled(s eventlog.sequencer, p_now timestamptz) returns boolean
language plpgsql set enable_seqscan = off as $$
declare
  oldest bigint;
begin
  select a.id into oldest from eventlog.appended a where a.id > s.settled order by a.id limit 1;
  if oldest is null then
    return false;
  elsif s.waiting = oldest then
    return p_now - s.waiting_since not between interval '-1 s' and interval '5 s';
  elsif s.waiting_since is null or p_now - s.waiting_since not between interval '0' and interval '1 s' then
    perform from eventlog.sequencer q for update skip locked;
    if found then
      update eventlog.sequencer q set waiting = oldest, waiting_since = p_now where q.term = s.term;
    end if;
  end if;
  return false;
end $$;

-- lead, as before, but who leads prolongs the lease by sequence alone; and a role under which nothing moves is followed by
-- another one.
create or replace function eventlog.lead(p_id text, p_lease interval) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now   timestamptz := clock_timestamp();
  lease interval := eventlog.bounded_lease(p_lease);
  far   timestamptz := now + 10 * lease;
  s     eventlog.sequencer;
  t     bigint;
  taken boolean;
begin
  select * into s from eventlog.sequencer q order by q.revision desc limit 1;
  taken := s.until > now and s.until < far;
  if taken and (s.role = session_user or not eventlog.stalled(s, now)) then
    return null; -- the usual answer to a candidate takes no lock
  end if;
  if taken then
    perform from eventlog.sequencer q for update skip locked;
    if not found then
      return null; -- a move is under way
    end if;
  end if;
  update eventlog.sequencer q set term = q.term + 1, leader = p_id, role = session_user, until = now + lease, mono = null,
      waiting = null, waiting_since = null, revision = q.revision + 1
    where q.term = s.term and (q.until <= now or q.until >= far or taken)
    returning q.term into t;
  return t;
end $$;

-- A reader belongs to the role that said it is there.
alter table eventlog.readers add column role text not null default '';

-- attend, as before; the reader of another role keeps what it said, and a role has at most 256 of them: its replicas, and
-- those of a day of restarts, of which the ones that were silent longest go.
create or replace function eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 256;
  now timestamptz := clock_timestamp();
begin
  perform eventlog.release_types();
  insert into eventlog.readers as r (instance, service, version, types, started, seen, role)
    values (p_instance, p_service, p_version, p_types, now, now, session_user)
    on conflict (instance) do update set seen = excluded.seen, types = excluded.types, role = excluded.role
      where r.role in ('', session_user);
  if not found then
    raise exception 'the reader % belongs to another role than %', p_instance, session_user using errcode = 'CH003';
  end if;
  delete from eventlog.readers r where r.seen < now - interval '1 day' or r.role = session_user and r.instance in
    (select o.instance from eventlog.readers o where o.role = session_user order by o.seen desc, o.instance offset most);
  return array(select t.type from eventlog.event_types t where not t.type = any (p_types) order by 1);
end $$;

-- leave, as before; for a reader of the caller's role.
create or replace function eventlog.leave(p_instance text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from eventlog.readers r where r.instance = p_instance and r.role in ('', session_user);
  perform eventlog.release_types();
end $$;

revoke execute on function eventlog.stalled(eventlog.sequencer, timestamptz) from public;
