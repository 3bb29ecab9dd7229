-- Functions as they were, then what is new goes.
-- sequence moves at most p_max committed events from the inbox to the log in the order of their ids,
-- with the next positions and a time that never goes back, and prolongs the lease. It is one statement
-- of one transaction: nothing is locked while the leader's process has the word. narrow says that less
-- than one whole partition lies ahead, so that extend should be called. CH005: the term has passed to another leader.
create or replace function eventlog.sequence(p_term bigint, p_max int, p_lease interval,
  out moved int, out epoch bigint, out head bigint, out narrow boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s   eventlog.sequencer;
  now timestamptz;
begin
  select * into s from eventlog.sequencer;
  if s.term = p_term and s.until > clock_timestamp() + p_lease / 2
      and not exists (select from eventlog.appended order by id limit 1) then
    moved := 0; epoch := s.epoch; head := s.position; narrow := s.partitioned - head < s.partition_rows;
    return; -- nothing to do: no lock, no write
  end if;

  select * into s from eventlog.sequencer for update;
  if s.term <> p_term then
    raise exception 'term % has passed to % under term %', p_term, coalesce(nullif(s.leader, ''), 'nobody'), s.term using errcode = 'CH005';
  end if;
  now := greatest(s.recorded, clock_timestamp());
  with taken as (
    delete from eventlog.appended a
      where a.id in (select i.id from eventlog.appended i order by i.id limit least(p_max, s.partitioned - s.position))
      returning a.*)
  insert into eventlog.events (position, epoch, recorded, tenant, kind, stream_key, incarnation, version, type, subject, event_id, body, hash)
    select s.position + row_number() over (order by t.id), s.epoch, now,
           t.tenant, t.kind, t.stream_key, t.incarnation, t.version, t.type, t.subject, t.event_id, t.body, t.hash
    from taken t;
  get diagnostics moved = row_count;
  epoch := s.epoch;
  head := s.position + moved;
  narrow := s.partitioned - head < s.partition_rows;
  update eventlog.sequencer set position = sequence.head, until = clock_timestamp() + p_lease,
    recorded = case when moved > 0 then now else recorded end;
  if moved > 0 then
    perform pg_notify('eventlog_sequenced', epoch || '-' || head);
  end if;
end $$;

-- extend makes partitions until at least one whole partition lies ahead. A table is made by itself and
-- attached: that lets readers and the sequencer go on, which "create table … partition of" does not.
create or replace function eventlog.extend() returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s     eventlog.sequencer;
  first bigint;
  last  bigint;
  name  text;
begin
  perform pg_advisory_xact_lock(hashtext('eventlog.extend')); -- not the sequencer's row: it goes on
  select * into s from eventlog.sequencer;
  while s.partitioned < s.position + s.partition_rows loop
    first := s.partitioned + 1;
    last := s.partitioned + s.partition_rows;
    name := 'events_' || lpad(first::text, 12, '0');
    execute format('create table eventlog.%I (like eventlog.events including comments)', name);
    execute format('alter table eventlog.%I add constraint bounds check (position >= %s and position <= %s)', name, first, last);
    execute format('alter table eventlog.events attach partition eventlog.%I for values from (%s) to (%s)', name, first, last + 1);
    execute format('alter table eventlog.%I drop constraint bounds', name);
    update eventlog.sequencer set partitioned = last returning * into s;
  end loop;
  return s.partitioned;
end $$;

drop function eventlog.done(text, uuid, int, uuid[]);
-- done returns the version of the last event of a command that the stream holds already, or null.
create function eventlog.done(p_tenant text, p_key uuid, p_incarnation int, p_ids uuid[]) returns bigint
language sql stable as $$
  select max(version) from (
    select e.version from eventlog.events e
      where e.stream_key = p_key and e.incarnation = p_incarnation and e.tenant = p_tenant and e.event_id = any (p_ids)
    union all
    select a.version from eventlog.appended a
      where a.stream_key = p_key and a.incarnation = p_incarnation and a.tenant = p_tenant and a.event_id = any (p_ids)) found
$$;

drop function eventlog.settle(eventlog.sequencer);
drop function eventlog.position_of(text, uuid, int, bigint);
drop function eventlog.read_stream(text, uuid, int, bigint);
drop index eventlog.sequencer_newest;
alter table eventlog.sequencer alter partition_rows set default 1000000, drop column revision, drop column settled,
  drop column candidate, drop column holders, drop column settling;
drop table eventlog.stream_parts, eventlog.partitions;
