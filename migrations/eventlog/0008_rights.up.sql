-- compatible: 8
-- Rights by function. A role of a service moves its own checkpoints, forward; gives positions only under a term of its
-- own; raises the epoch only within bounds. And the record notes when it stands on another server, or its clock jumps.

-- Row-level security holds for the owner of a table, too, with whose rights views run: a view that forgets its condition
-- shows nothing of another tenant. Functions with the owner's rights and migrations act as the owner; they name the tenant.
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
    execute format('alter table %s force row level security', t);
    execute format($policy$alter policy tenant on %s
      using (current_setting('chandler.tenant', true) in ('*', tenant) or current_user = 'chandler_owner')$policy$, t);
  end loop;
end $$;

-- Checkpoints and parked events.

revoke insert, update, delete on eventlog.checkpoints, eventlog.parked
  from chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- own refuses a consumer that another service's name stands before, such as "resolver.scopes" or
-- "projection/gateway.clusters/v3", and raises CH003.
create function eventlog.own(p_consumer text) returns void
language plpgsql stable as $$
declare
  service text := substring(p_consumer from '^(?:projection/)?(gateway|resolver|installer|catalog-indexer)\.');
begin
  if service is not null and not pg_has_role(session_user, 'chandler_' || replace(service, '-', '_'), 'MEMBER') then
    raise exception 'role % may not touch the consumer %: it belongs to the service %', session_user, p_consumer, service
      using errcode = 'CH003';
  end if;
end $$;

-- take_checkpoint locks the checkpoint of a consumer until the end of the transaction, and makes it where it is missing.
-- held: another replica has it. skips: a person has had it go on without events that are ahead.
create function eventlog.take_checkpoint(p_consumer text, out epoch bigint, out "position" bigint,
  out held boolean, out skips boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  held := false;
  skips := false;
  for i in 1..2 loop
    select c.epoch, c.position, exists (select from eventlog.skipped s where s.consumer = p_consumer and s.position > c.position)
      into take_checkpoint.epoch, take_checkpoint.position, skips from eventlog.checkpoints c
      where c.consumer = p_consumer and c.tenant = '*' for update skip locked;
    if found then return; end if;
    insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
    exit when not found;
  end loop;
  held := true;
end $$;

-- move_checkpoint moves a checkpoint forward, at most to the head of the log.
create function eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.within_log(p_epoch, p_position);
  update eventlog.checkpoints c set epoch = p_epoch, position = p_position, updated = now()
    where c.consumer = p_consumer and c.tenant = '*' and (c.epoch, c.position) <= (p_epoch, p_position);
  if not found then
    raise exception 'the checkpoint of % moves forward only, not to %-%', p_consumer, p_epoch, p_position using errcode = 'CH003';
  end if;
end $$;

-- within_log refuses a position that the log has not come to.
create function eventlog.within_log(p_epoch bigint, p_position bigint) returns void
language plpgsql stable as $$
begin
  if exists (select from (select q.epoch, q.position from eventlog.sequencer q order by q.revision desc limit 1) s
      where (p_epoch, p_position) > (s.epoch, s.position)) or p_position < 0 then
    raise exception 'the log has not come to %-%', p_epoch, p_position using errcode = 'CH003';
  end if;
end $$;

-- lock_checkpoints waits for all checkpoints whose names begin with p_prefix, of one service, and makes that of
-- p_consumer where it is missing: what a rebuild does before it puts its result in place.
create function eventlog.lock_checkpoints(p_consumer text, p_prefix text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.own(p_prefix);
  insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
  perform from eventlog.checkpoints c where c.consumer = p_consumer or starts_with(c.consumer, p_prefix)
    order by c.consumer for update;
end $$;

-- rebuilt puts the checkpoint of a consumer that was made anew where that has come to, which may be back, and forgets
-- what was parked before.
create function eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.within_log(p_epoch, p_position);
  delete from eventlog.parked p where p.consumer = p_consumer;
  update eventlog.checkpoints c set epoch = p_epoch, position = p_position, updated = now()
    where c.consumer = p_consumer and c.tenant = '*';
end $$;

create function eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint,
  p_position bigint, p_type text, p_reason text, p_attempts int, p_wait interval, p_body bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  insert into eventlog.parked (tenant, consumer, stream, version, epoch, position, type, reason, attempts, next_retry, body)
    values (p_tenant, p_consumer, p_stream, p_version, p_epoch, p_position, p_type, p_reason, p_attempts, now() + p_wait, p_body)
    on conflict do nothing;
end $$;

-- park_again notes that an event failed once more: its stream waits.
create function eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts int, p_reason text,
  p_wait interval, p_body bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  update eventlog.parked p set
      attempts = case when p.version = p_version then p_attempts else p.attempts end,
      reason = case when p.version = p_version then p_reason else p.reason end,
      body = case when p.version = p_version then p_body else p.body end,
      next_retry = now() + p_wait
    where p.consumer = p_consumer and p.stream = p_stream;
end $$;

-- hold_parked locks the parked events of a stream, so that nobody skips one that is being taken, and returns their versions.
create function eventlog.hold_parked(p_consumer text, p_stream text) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  return query select p.version from eventlog.parked p where p.consumer = p_consumer and p.stream = p_stream
    order by p.version for update;
end $$;

-- unpark takes away an event that was taken at last.
create function eventlog.unpark(p_consumer text, p_stream text, p_version bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  delete from eventlog.parked p where p.consumer = p_consumer and p.stream = p_stream and p.version = p_version;
end $$;

-- Terms belong to the role that was given them, and last 10 seconds at most without a sign of life.

alter table eventlog.sequencer
  add column role  text        not null default '', -- of the leader
  -- The clock of the database and the leader's monotone clock at the last change of this row, null in a new term.
  add column clock timestamptz not null default '-infinity',
  add column mono  interval,
  -- By how much the clock is not believed: it has jumped ahead, and the time of the log follows at twice the speed.
  add column ahead interval    not null default '0';

-- What happened to the server that the record stands on. Not a tenant's data.
create table eventlog.incidents (
  id     bigint generated always as identity primary key,
  at     timestamptz not null default clock_timestamp(),
  role   text        not null default session_user,
  kind   text        not null check (kind in ('ClockJumped', 'TimelineChanged', 'SystemChanged')),
  detail text        not null
);
comment on table eventlog.incidents is 'jumps of the clock, fail-overs and restores that the record has noticed';

-- The server that the record stood on when a leader last looked. Not a tenant's data.
create table eventlog.server (
  one      boolean primary key default true check (one),
  system   bigint not null, -- differs after initdb: a restore into a new instance
  timeline int    not null  -- rises at each promotion and point-in-time recovery
);
comment on table eventlog.server is 'system identifier and timeline of the server that the record stood on';
grant select on eventlog.incidents, eventlog.server to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- watch_server compares the server with the one that was seen last, and reports what has changed, or null. The leader
-- calls it on every new connection: another server or timeline cannot be reached on an old one.
create function eventlog.watch_server() returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now_system   bigint := (select c.system_identifier from pg_control_system() c);
  now_timeline int    := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int;
  was          eventlog.server;
  what         text;
  said         text;
begin
  select * into was from eventlog.server;
  if not found then
    insert into eventlog.server (system, timeline) values (now_system, now_timeline) on conflict do nothing;
    return null;
  end if;
  if (was.system, was.timeline) is not distinct from (now_system, now_timeline) then
    return null;
  end if;
  select * into was from eventlog.server for update;
  if was.system <> now_system then
    what := 'SystemChanged';
    said := format('the system identifier was %s and is %s: the record was restored into another instance', was.system, now_system);
  elsif was.timeline <> now_timeline then
    what := 'TimelineChanged';
    said := format('the timeline was %s and is %s: a standby was promoted, or the record recovered to a point in time', was.timeline, now_timeline);
  else
    return null; -- somebody else noticed in this moment
  end if;
  insert into eventlog.incidents (kind, detail) values (what, said);
  update eventlog.server set system = now_system, timeline = now_timeline;
  return what || ': ' || said;
end $$;

-- lead, as before; the term belongs to the role of the session, and a lease is bounded.
create or replace function eventlog.lead(p_id text, p_lease interval) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now   timestamptz := clock_timestamp();
  lease interval := eventlog.bounded_lease(p_lease);
  far   timestamptz := now + 10 * lease;
  s     eventlog.sequencer;
  t     bigint;
begin
  select * into s from eventlog.sequencer q order by q.revision desc limit 1;
  if (s.leader, s.role) <> (p_id, session_user::text) and s.until > now and s.until < far then
    return null; -- the usual answer to a candidate takes no lock
  end if;
  update eventlog.sequencer q set
      term = case when q.leader = p_id and q.role = session_user and q.until > now then q.term else q.term + 1 end,
      leader = p_id, role = session_user, until = now + lease, mono = null, revision = q.revision + 1
    where q.leader = p_id and q.role = session_user or q.until <= now or q.until >= far
    returning q.term into t;
  return t;
end $$;

-- bounded_lease is the lease that a candidate gets: at most 10 seconds, so that nobody can keep all others out by asking.
create function eventlog.bounded_lease(p_lease interval) returns interval
language sql immutable as $$ select least(greatest(p_lease, interval '0'), interval '10 s') $$;

create or replace function eventlog.resign(p_term bigint) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update eventlog.sequencer set until = clock_timestamp(), term = term + 1, leader = '', role = '', revision = revision + 1
    where term = p_term and role = session_user
$$;

-- clock_jump is by how much the clock of the database jumped since the last change of the row, by the leader's monotone
-- clock; null where that is less than a minute, which is far above what time services correct at once and what a busy
-- host is late. A part of sequence, as log_time.
create function eventlog.clock_jump(s eventlog.sequencer, p_now timestamptz, p_mono interval) returns interval
language sql immutable as $$
  select j from (select p_now - (s.clock + greatest(p_mono - s.mono, interval '0')) as j) x
    where s.mono is not null and (j > interval '1 minute' or j < interval '-1 minute')
$$;

-- log_time is by how much the clock is not believed now. What it jumped ahead is not believed: the time of the log goes on
-- and catches up at twice the speed, so that a clock that was wrong for ten minutes takes it ahead by ten minutes, not by a year.
create function eventlog.log_time(s eventlog.sequencer, p_mono interval, p_jumped interval) returns interval
language plpgsql as $$
begin
  if p_jumped is not null then
    insert into eventlog.incidents (kind, detail) values ('ClockJumped',
      format('the clock of the database jumped by %s at position %s', p_jumped, s.position));
  end if;
  return greatest(s.ahead - greatest(p_mono - s.mono, interval '0') + coalesce(p_jumped, interval '0'), interval '0');
end $$;

-- sequence, as before; under a term of the caller's role, with a bounded lease, and with the time of log_time. p_mono is
-- how long the leader leads by its monotone clock, null where it has none; jumped is by how much the clock just jumped.
drop function eventlog.sequence(bigint, int, interval);
create function eventlog.sequence(p_term bigint, p_max int, p_lease interval, p_mono interval,
  out moved int, out epoch bigint, out head bigint, out narrow boolean, out jumped interval)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off -- a plan made while the inbox was empty must not read all of it later
as $$
declare
  s     eventlog.sequencer;
  part  eventlog.partitions;
  now   timestamptz;
  lease interval := eventlog.bounded_lease(p_lease);
  t     timestamptz;
begin
  select * into s from eventlog.sequencer q order by q.revision desc limit 1;
  if s.term = p_term and s.role = session_user and s.until > clock_timestamp() + lease / 2
      and not exists (select from eventlog.appended a where a.id > s.settled order by a.id limit 1) then
    moved := 0; epoch := s.epoch; head := s.position; narrow := s.partitioned - head < s.partition_rows;
    return; -- nothing to do: no lock, no write
  end if;

  select * into s from eventlog.sequencer q order by q.revision desc limit 1 for update;
  if s.term <> p_term then
    raise exception 'term % has passed to % under term %', p_term, coalesce(nullif(s.leader, ''), 'nobody'), s.term using errcode = 'CH005';
  elsif s.role <> session_user then
    raise exception 'term % was given to role %, not to %', p_term, s.role, session_user using errcode = 'CH003';
  end if;
  t := clock_timestamp();
  jumped := eventlog.clock_jump(s, t, p_mono);
  s.ahead := eventlog.log_time(s, p_mono, jumped);
  s.clock := t;
  s.mono := p_mono;
  now := greatest(s.recorded, t - s.ahead);
  select * into part from eventlog.partitions p where p.first_position <= s.position + 1 order by p.first_position desc limit 1;
  with taken as (
    delete from eventlog.appended a
      where a.id > s.settled and a.id in (select i.id from eventlog.appended i where i.id > s.settled
        order by i.id limit least(p_max, part.last_position - s.position))
      returning a.*),
  part_of as (
    insert into eventlog.stream_parts (tenant, stream_key, incarnation, first_position, last_position, first_version)
      select t.tenant, t.stream_key, t.incarnation, part.first_position, part.last_position, min(t.version)
      from taken t group by t.tenant, t.stream_key, t.incarnation
      on conflict do nothing)
  insert into eventlog.events (position, epoch, recorded, tenant, kind, stream_key, incarnation, version, type, subject, event_id, body, hash)
    select s.position + row_number() over (order by t.id), s.epoch, now,
           t.tenant, t.kind, t.stream_key, t.incarnation, t.version, t.type, t.subject, t.event_id, t.body, t.hash
    from taken t;
  get diagnostics moved = row_count;
  epoch := s.epoch;
  head := s.position + moved;
  narrow := s.partitioned - head < s.partition_rows;
  s := eventlog.settle(s);
  update eventlog.sequencer q set position = sequence.head, until = clock_timestamp() + lease,
      recorded = case when moved > 0 then now else s.recorded end, revision = s.revision + 1,
      settled = s.settled, candidate = s.candidate, holders = s.holders, settling = s.settling,
      clock = s.clock, mono = s.mono, ahead = s.ahead
    where q.revision = s.revision;
  if moved > 0 then
    perform pg_notify('eventlog_sequenced', epoch || '-' || head);
  end if;
end $$;

-- Epochs.

alter table eventlog.epochs add column role text not null default session_user;

-- raise_epoch raises the epoch above the record's and the one that was seen, and stops effects; a part of the checks. It
-- refuses what nobody can have seen, and roles that have no business to compare: the installer hears from clusters and the
-- gateway from people, and whoever leads compares the bus. Nobody raises it more than ten times in an hour.
create function eventlog.raise_epoch(s eventlog.sequencer, p_epoch bigint, p_position bigint, p_source text) returns bigint
language plpgsql as $$
declare
  most_epochs    constant bigint := 1000;          -- a person resumes after each: nobody has lost as many
  most_positions constant bigint := 1000000000000; -- a million times what is lost in a day
  most_raises    constant int := 10;
  e bigint := greatest(s.epoch, p_epoch) + 1;
begin
  if p_epoch > s.epoch + most_epochs or p_position > s.position + most_positions or p_epoch < 0 or p_position < 0 then
    raise exception 'nobody can have seen %-%: the log is at %-%', p_epoch, p_position, s.epoch, s.position using errcode = 'CH003';
  elsif not pg_has_role(session_user, 'chandler_gateway', 'MEMBER') and not pg_has_role(session_user, 'chandler_installer', 'MEMBER')
      and (s.role <> session_user or s.until < clock_timestamp()) then
    raise exception 'role % does not lead the sequencing, and may not raise the epoch', session_user using errcode = 'CH003';
  elsif (select count(*) from eventlog.epochs o where o.role = session_user and o.raised > clock_timestamp() - interval '1 hour') >= most_raises then
    raise exception 'role % has raised the epoch % times within an hour', session_user, most_raises using errcode = 'CH003';
  end if;
  insert into eventlog.epochs values (e, s.position + 1, clock_timestamp(), p_source, p_epoch, p_position);
  insert into eventlog.stops (epoch, reason, source, since, seen_epoch, seen_position, head_epoch, head_position)
    values (e, 'RecordLostCommits', p_source, clock_timestamp(), p_epoch, p_position, s.epoch, s.position);
  update eventlog.sequencer set epoch = e, revision = revision + 1;
  return e;
end $$;

create or replace function eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s eventlog.sequencer;
begin
  select * into s from eventlog.sequencer q order by q.revision desc limit 1;
  if (p_epoch, p_position) <= (s.epoch, s.position) then
    return null;
  end if;
  select * into s from eventlog.sequencer q order by q.revision desc limit 1 for update;
  if (p_epoch, p_position) <= (s.epoch, s.position) then
    return null;
  end if;
  return eventlog.raise_epoch(s, p_epoch, p_position, p_source);
end $$;

create or replace function eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s eventlog.sequencer;
begin
  if exists (select from eventlog.events v where v.position = p_position and v.epoch = p_epoch and v.hash = p_hash) then
    return null; -- the usual answer takes no lock
  end if;
  select * into s from eventlog.sequencer q order by q.revision desc limit 1 for update;
  if p_epoch < s.epoch
      or exists (select from eventlog.events v where v.position = p_position and v.epoch = p_epoch and v.hash = p_hash) then
    return null;
  end if;
  return eventlog.raise_epoch(s, p_epoch, p_position, p_source);
end $$;

-- A write waits for its position outside of the transaction of its tenant: the answer is a position, nothing of a tenant.
alter function eventlog.position_of(text, uuid, int, bigint) security definer;
alter function eventlog.position_of(text, uuid, int, bigint) set search_path = pg_catalog, pg_temp;

revoke execute on all functions in schema eventlog from public;
grant execute on function
  eventlog.take_checkpoint(text), eventlog.move_checkpoint(text, bigint, bigint), eventlog.lock_checkpoints(text, text),
  eventlog.rebuilt(text, bigint, bigint),
  eventlog.park(text, text, text, bigint, bigint, bigint, text, text, int, interval, bytea),
  eventlog.park_again(text, text, bigint, int, text, interval, bytea), eventlog.hold_parked(text, text),
  eventlog.unpark(text, text, bigint), eventlog.sequence(bigint, int, interval, interval), eventlog.watch_server()
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
