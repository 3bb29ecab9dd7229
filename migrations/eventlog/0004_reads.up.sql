-- What a read of a stream and a poll of the inbox cost does not depend on the age of the log, nor on a snapshot that
-- somebody else holds open.

-- Which positions each partition holds. Not a tenant's data.
create table eventlog.partitions (
  first_position bigint primary key,
  last_position  bigint not null
);
comment on table eventlog.partitions is 'the positions of each partition of the log';
insert into eventlog.partitions
  select b[1]::bigint, b[2]::bigint - 1
  from pg_inherits i join pg_class c on c.oid = i.inhrelid,
    regexp_match(pg_get_expr(c.relpartbound, c.oid), $$FROM \('(\d+)'\) TO \('(\d+)'\)$$) b
  where i.inhparent = 'eventlog.events'::regclass;
grant select on eventlog.partitions to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- The partitions that hold events of a stream. The log is partitioned by position, so that a read by stream would look
-- into every partition; most streams lie in one or two. The sequencer writes a row when a stream comes into a partition.
create table eventlog.stream_parts (
  tenant         text   not null,
  stream_key     uuid   not null,
  incarnation    int    not null,
  first_position bigint not null, -- of the partition
  last_position  bigint not null, -- of the partition
  first_version  bigint not null, -- the stream's first in this partition
  primary key (stream_key, incarnation, first_position)
);
comment on table eventlog.stream_parts is 'the partitions of the log that hold events of a stream';
select eventlog.protect('eventlog.stream_parts');
insert into eventlog.stream_parts
  select e.tenant, e.stream_key, e.incarnation, p.first_position, p.last_position, min(e.version)
  from eventlog.events e join eventlog.partitions p on e.position between p.first_position and p.last_position
  group by 1, 2, 3, 4, 5;
grant select on eventlog.stream_parts to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- read_stream returns the events of a stream behind a version, those without a position last, with position 0. It runs
-- with the rights of its caller and in one snapshot. The bounds of the partitions are parameters of plans that are made
-- for their values, so that only one partition is looked at in each turn. In the inbox only versions behind those of the
-- log are looked for: the rows of others are dead, and may be many while a snapshot is open.
create function eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation int, p_after bigint)
returns table (at bigint, in_epoch bigint, recorded timestamptz, tenant text, kind text, stream_key uuid, incarnation int,
  version bigint, type text, body bytea, hash bytea)
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  part  eventlog.stream_parts;
  known bigint := p_after;
  n     bigint;
begin
  for part in
    select * from eventlog.stream_parts p
    where p.stream_key = p_key and p.incarnation = p_incarnation and p.tenant = p_tenant
      and p.first_version >= coalesce((select max(q.first_version) from eventlog.stream_parts q
        where q.stream_key = p_key and q.incarnation = p_incarnation and q.first_version <= p_after + 1), 0)
    order by p.first_position
  loop
    return query
      select e.position, e.epoch, e.recorded, e.tenant, e.kind, e.stream_key, e.incarnation, e.version, e.type, e.body, e.hash
      from eventlog.events e
      where e.position >= part.first_position and e.position <= part.last_position
        and e.stream_key = p_key and e.incarnation = p_incarnation and e.version > p_after and e.tenant = p_tenant
      order by e.version;
    get diagnostics n = row_count;
    known := greatest(p_after, part.first_version - 1) + n; -- versions are dense
  end loop;
  return query
    select 0::bigint, 0::bigint, null::timestamptz, a.tenant, a.kind, a.stream_key, a.incarnation, a.version, a.type, a.body, a.hash
    from eventlog.appended a
    where a.stream_key = p_key and a.incarnation = p_incarnation and a.version > known and a.tenant = p_tenant
    order by a.version;
end $$;

-- position_of returns where an event of a stream stands, or nulls while it has no position.
create function eventlog.position_of(p_tenant text, p_key uuid, p_incarnation int, p_version bigint,
  out epoch bigint, out "position" bigint)
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
  part eventlog.stream_parts;
begin
  select * into part from eventlog.stream_parts p
    where p.stream_key = p_key and p.incarnation = p_incarnation and p.tenant = p_tenant and p.first_version <= p_version
    order by p.first_position desc limit 1;
  if found then
    select e.epoch, e.position into position_of.epoch, position_of.position from eventlog.events e
      where e.position >= part.first_position and e.position <= part.last_position
        and e.stream_key = p_key and e.incarnation = p_incarnation and e.version = p_version and e.tenant = p_tenant;
  end if;
end $$;

-- done, a part of append: as before, but it looks only into the partitions that hold the stream.
create or replace function eventlog.done(p_tenant text, p_key uuid, p_incarnation int, p_ids uuid[]) returns bigint
language plpgsql stable as $$
declare
  part  eventlog.stream_parts;
  last  bigint;
  found bigint;
begin
  for part in
    select * from eventlog.stream_parts p where p.stream_key = p_key and p.incarnation = p_incarnation and p.tenant = p_tenant
  loop
    select max(e.version) into found from eventlog.events e
      where e.position >= part.first_position and e.position <= part.last_position
        and e.stream_key = p_key and e.incarnation = p_incarnation and e.tenant = p_tenant and e.event_id = any (p_ids);
    last := greatest(last, found);
  end loop;
  select max(a.version) into found from eventlog.appended a
    where a.stream_key = p_key and a.incarnation = p_incarnation and a.tenant = p_tenant and a.event_id = any (p_ids);
  return greatest(last, found);
end $$;

-- A partition of 20 million events is about 20 GB with its indexes: it can be archived in an hour, and a log of two
-- billion events has 100, so that the statements that must look at all of them stay at about a millisecond.
alter table eventlog.sequencer
  alter partition_rows set default 20000000,
  -- The newest version of the row is found first by this number, however many dead ones a snapshot keeps.
  add column revision bigint not null default 0,
  -- No event with an id up to settled is in the inbox or can still come into it: moves begin behind it, so that they do
  -- not step over dead rows. It moves in two steps: candidate is the last id that was drawn at some moment, holders the
  -- transactions that were writing the inbox then. When these have ended, nothing up to candidate can come any more.
  add column settled   bigint not null default 0,
  add column candidate bigint not null default 0,
  add column holders   text[] not null default '{}',
  add column settling  timestamptz not null default '-infinity';
update eventlog.sequencer set partition_rows = 20000000 where partition_rows = 1000000;
create index sequencer_newest on eventlog.sequencer (revision desc);

-- settle moves settled, a part of sequence. It looks at locks, not at the snapshot's xmin: that is held back by a write
-- in any database of the instance. Whoever draws an id holds a lock on the inbox from before that until the end of its
-- transaction; so the id is read first, the locks after it. Looking costs a fraction of a millisecond: every 200 ms.
create function eventlog.settle(s eventlog.sequencer) returns eventlog.sequencer
language plpgsql as $$
declare
  writing text[];
  drawn   bigint;
begin
  if clock_timestamp() < s.settling and s.settling < clock_timestamp() + interval '1 minute' then
    return s;
  end if;
  -- Before the first id is drawn, last_value is the one that will be.
  select case when i.is_called then i.last_value else i.last_value - 1 end into drawn from eventlog.appended_id_seq i;
  select coalesce(array_agg(l.virtualtransaction), '{}') into writing from pg_locks l
    where l.locktype = 'relation' and l.relation = 'eventlog.appended'::regclass and l.mode = 'RowExclusiveLock'
      and l.granted and l.pid is distinct from pg_backend_pid()
      and l.database = (select d.oid from pg_database d where d.datname = current_database());
  if s.candidate > s.settled and not s.holders && writing
      and not exists (select from eventlog.appended a where a.id > s.settled and a.id <= s.candidate) then
    s.settled := s.candidate;
  end if;
  if s.candidate <= s.settled then
    s.candidate := drawn;
    s.holders := writing;
  end if;
  s.settling := clock_timestamp() + interval '200 ms';
  return s;
end $$;

-- sequence, as before; a move stays within one partition, notes which streams have come into it, and begins behind what
-- is settled.
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

-- extend, as before; it notes the positions of each partition.
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
    insert into eventlog.partitions values (first, last);
    update eventlog.sequencer set partitioned = last, revision = revision + 1 returning * into s;
  end loop;
  return s.partitioned;
end $$;

select eventlog.extend();

revoke execute on function eventlog.read_stream(text, uuid, int, bigint), eventlog.position_of(text, uuid, int, bigint),
  eventlog.settle(eventlog.sequencer) from public;
grant execute on function eventlog.read_stream(text, uuid, int, bigint), eventlog.position_of(text, uuid, int, bigint)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
