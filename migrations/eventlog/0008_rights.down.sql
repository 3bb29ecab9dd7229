-- Functions as they were, then what is new goes.
drop function eventlog.sequence(bigint, int, interval, interval);
create or replace function eventlog.protect(target regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  execute format('alter table %s enable row level security', target);
  execute format($policy$create policy tenant on %s
    using (current_setting('chandler.tenant', true) in ('*', tenant))$policy$, target);
end $$;
create or replace function eventlog.lead(p_id text, p_lease interval) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := clock_timestamp();
  far timestamptz := now + 10 * p_lease;
  t   bigint;
begin
  if exists (select from eventlog.sequencer s where s.leader <> p_id and s.until > now and s.until < far) then
    return null; -- the usual answer to a candidate takes no lock
  end if;
  update eventlog.sequencer s set
      term = case when s.leader = p_id and s.until > now then s.term else s.term + 1 end,
      leader = p_id, until = now + p_lease
    where s.leader = p_id or s.until <= now or s.until >= far
    returning s.term into t;
  return t;
end $$;
create or replace function eventlog.resign(p_term bigint) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update eventlog.sequencer set until = clock_timestamp(), term = term + 1, leader = '' where term = p_term
$$;
create or replace function eventlog.sequence(p_term bigint, p_max int, p_lease interval,
  out moved int, out epoch bigint, out head bigint, out narrow boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off -- a plan made while the inbox was empty must not read all of it later
as $$
declare
  s    eventlog.sequencer;
  part eventlog.partitions;
  now  timestamptz;
begin
  select * into s from eventlog.sequencer q order by q.revision desc limit 1;
  if s.term = p_term and s.until > clock_timestamp() + p_lease / 2
      and not exists (select from eventlog.appended a where a.id > s.settled order by a.id limit 1) then
    moved := 0; epoch := s.epoch; head := s.position; narrow := s.partitioned - head < s.partition_rows;
    return; -- nothing to do: no lock, no write
  end if;

  select * into s from eventlog.sequencer q order by q.revision desc limit 1 for update;
  if s.term <> p_term then
    raise exception 'term % has passed to % under term %', p_term, coalesce(nullif(s.leader, ''), 'nobody'), s.term using errcode = 'CH005';
  end if;
  now := greatest(s.recorded, clock_timestamp());
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
  update eventlog.sequencer q set position = sequence.head, until = clock_timestamp() + p_lease,
      recorded = case when moved > 0 then now else s.recorded end, revision = s.revision + 1,
      settled = s.settled, candidate = s.candidate, holders = s.holders, settling = s.settling
    where q.revision = s.revision;
  if moved > 0 then
    perform pg_notify('eventlog_sequenced', epoch || '-' || head);
  end if;
end $$;
create or replace function eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s eventlog.sequencer;
  e bigint;
begin
  select * into s from eventlog.sequencer;
  if (p_epoch, p_position) <= (s.epoch, s.position) then
    return null;
  end if;
  select * into s from eventlog.sequencer for update;
  if (p_epoch, p_position) <= (s.epoch, s.position) then
    return null;
  end if;
  e := greatest(s.epoch, p_epoch) + 1;
  insert into eventlog.epochs values (e, s.position + 1, clock_timestamp(), p_source, p_epoch, p_position);
  insert into eventlog.stops (epoch, reason, source, since, seen_epoch, seen_position, head_epoch, head_position)
    values (e, 'RecordLostCommits', p_source, clock_timestamp(), p_epoch, p_position, s.epoch, s.position);
  update eventlog.sequencer set epoch = e;
  return e;
end $$;
create or replace function eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s eventlog.sequencer;
  e bigint;
begin
  if exists (select from eventlog.events v where v.position = p_position and v.epoch = p_epoch and v.hash = p_hash) then
    return null; -- the usual answer takes no lock
  end if;
  select * into s from eventlog.sequencer for update;
  if p_epoch < s.epoch
      or exists (select from eventlog.events v where v.position = p_position and v.epoch = p_epoch and v.hash = p_hash) then
    return null;
  end if;
  e := greatest(s.epoch, p_epoch) + 1;
  insert into eventlog.epochs values (e, s.position + 1, clock_timestamp(), p_source, p_epoch, p_position);
  insert into eventlog.stops (epoch, reason, source, since, seen_epoch, seen_position, head_epoch, head_position)
    values (e, 'RecordLostCommits', p_source, clock_timestamp(), p_epoch, p_position, s.epoch, s.position);
  update eventlog.sequencer set epoch = e;
  return e;
end $$;
alter function eventlog.position_of(text, uuid, int, bigint) security invoker;
alter function eventlog.position_of(text, uuid, int, bigint) reset search_path;
drop function eventlog.raise_epoch(eventlog.sequencer, bigint, bigint, text);
drop function eventlog.log_time(eventlog.sequencer, interval, interval);
drop function eventlog.clock_jump(eventlog.sequencer, timestamptz, interval);
drop function eventlog.bounded_lease(interval);
drop function eventlog.watch_server();
drop function eventlog.unpark(text, text, bigint);
drop function eventlog.hold_parked(text, text);
drop function eventlog.park_again(text, text, bigint, int, text, interval, bytea);
drop function eventlog.park(text, text, text, bigint, bigint, bigint, text, text, int, interval, bytea);
drop function eventlog.rebuilt(text, bigint, bigint);
drop function eventlog.lock_checkpoints(text, text);
drop function eventlog.move_checkpoint(text, bigint, bigint);
drop function eventlog.take_checkpoint(text);
drop function eventlog.within_log(bigint, bigint);
drop function eventlog.own(text);
drop table eventlog.incidents, eventlog.server;
alter table eventlog.epochs drop column role;
alter table eventlog.sequencer drop column role, drop column clock, drop column mono, drop column ahead;
grant execute on function eventlog.sequence(bigint, int, interval)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
grant insert, update, delete on eventlog.checkpoints, eventlog.parked
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
do $$
declare
  t regclass;
begin
  for t in select c.oid from pg_class c where c.relforcerowsecurity and c.relkind in ('r', 'p') loop
    execute format('alter table %s no force row level security', t);
    execute format($policy$alter policy tenant on %s
      using (current_setting('chandler.tenant', true) in ('*', tenant))$policy$, t);
  end loop;
end $$;
