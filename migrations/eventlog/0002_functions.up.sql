-- The only ways in which the record changes. All run with the owner's rights, so that the roles of
-- services need no right to write the tables themselves.

-- append compares and sets the head of a stream and puts events into the inbox, inside the caller's
-- transaction. p_expected is the version that the decision was made on, 0 for a stream that must not
-- exist. With p_once a command whose first event id is in the stream already is answered with the
-- version of its last event. Errors: CH001 conflict, CH002 exists, CH003 not allowed, CH004 ended,
-- CH006 type not registered for this kind of stream; detail of CH001 and CH002 is the actual version.
create function eventlog.append(
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

-- The functions below are parts of append: they run with its rights and its search_path, and nobody
-- else may call them. (A search_path of their own would cost each of them several microseconds.)

-- may_write refuses types that are unknown, stand in another kind of stream, or belong to a service
-- whose role the session does not have.
create function eventlog.may_write(p_kind text, p_types text[]) returns void
language plpgsql stable as $$
declare
  r record;
begin
  for r in
    select u.type, t.kind, t.writer, t.role
    from unnest(p_types) with ordinality as u (type, i) left join eventlog.event_types t on t.type = u.type
    order by u.i
  loop
    if r.kind is null then
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

-- may_begin refuses a later life of a name whose life before has not ended.
create function eventlog.may_begin(p_tenant text, p_kind text, p_key uuid, p_incarnation int, p_subject text) returns void
language plpgsql stable as $$
begin
  if not exists (select from eventlog.streams s
      where s.tenant = p_tenant and s.key = p_key and s.incarnation = p_incarnation - 1 and s.closed) then
    raise exception 'incarnation % of % % cannot begin: the one before has not ended', p_incarnation, p_kind, p_subject using errcode = 'CH004';
  end if;
end $$;

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

-- refuse says why the head could not be set.
create function eventlog.refuse(p_tenant text, p_kind text, p_key uuid, p_incarnation int, p_subject text, p_expected bigint) returns void
language plpgsql volatile as $$
declare
  s eventlog.streams;
begin
  select * into s from eventlog.streams h where h.tenant = p_tenant and h.key = p_key and h.incarnation = p_incarnation;
  if p_expected = 0 then
    raise exception '% % already exists', p_kind, p_subject using errcode = 'CH002', detail = coalesce(s.version, 0);
  elsif s.closed and s.version = p_expected then
    raise exception '% % has ended at version %', p_kind, p_subject, s.version using errcode = 'CH004';
  end if;
  raise exception '% % is at version %, not %', p_kind, p_subject, coalesce(s.version, 0), p_expected
    using errcode = 'CH001', detail = coalesce(s.version, 0);
end $$;

-- lead makes p_id the leader for p_lease from now if nobody else leads, and returns the term, or null.
-- A lease that ends far beyond any that is given was given before the clock went back, and binds nobody.
create function eventlog.lead(p_id text, p_lease interval) returns bigint
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

-- resign ends the term of a leader that stops in good order. The term passes to nobody, so that a move
-- of its own that is still under way cannot prolong the lease afterwards.
create function eventlog.resign(p_term bigint) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update eventlog.sequencer set until = clock_timestamp(), term = term + 1, leader = '' where term = p_term
$$;

-- sequence moves at most p_max committed events from the inbox to the log in the order of their ids,
-- with the next positions and a time that never goes back, and prolongs the lease. It is one statement
-- of one transaction: nothing is locked while the leader's process has the word. narrow says that less
-- than one whole partition lies ahead, so that extend should be called. CH005: the term has passed to another leader.
create function eventlog.sequence(p_term bigint, p_max int, p_lease interval,
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
create function eventlog.extend() returns bigint
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

-- check_epoch compares a position that somebody has seen with the head. A position beyond the head is
-- one that the record has lost: the epoch is raised, once, above both, and effects stop. It returns
-- the new epoch, or null where nothing is amiss.
create function eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) returns bigint
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

-- resume ends every stop up to the epoch that a person has seen and accepts. Only the gateway's role,
-- since only the gateway knows persons. CH001: the epoch has been raised again meanwhile.
create function eventlog.resume(p_epoch bigint, p_actor text) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current bigint;
  n       int;
begin
  if not pg_has_role(session_user, 'chandler_gateway', 'MEMBER') then
    raise exception 'role % may not resume effects: only the gateway may', session_user using errcode = 'CH003';
  end if;
  select s.epoch into current from eventlog.sequencer s for update;
  if current <> p_epoch then
    raise exception 'the epoch is %, not %: look at it again before you resume', current, p_epoch using errcode = 'CH001', detail = current;
  end if;
  update eventlog.stops set resumed = clock_timestamp(), resumed_by = p_actor where resumed is null;
  get diagnostics n = row_count;
  return n;
end $$;

select eventlog.extend();

-- Rights. Nobody but the owner may insert, update or delete in the record itself.
revoke execute on all functions in schema eventlog from public;
grant execute on function
  eventlog.append(text, text, uuid, int, text, bigint, boolean, text[], uuid[], bytea[]),
  eventlog.lead(text, interval), eventlog.resign(bigint), eventlog.sequence(bigint, int, interval), eventlog.extend(),
  eventlog.check_epoch(bigint, bigint, text), eventlog.resume(bigint, text)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
grant select on eventlog.schema_info, eventlog.event_types, eventlog.streams, eventlog.appended, eventlog.events,
  eventlog.epochs, eventlog.sequencer, eventlog.stops
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
grant select, insert, update, delete on eventlog.checkpoints, eventlog.parked
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
