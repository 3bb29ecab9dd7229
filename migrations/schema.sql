-- What all migrations make together. Made by libs/migrate/cmd/dumpschema with PostgreSQL 15; do not edit.

CREATE SCHEMA catalog;

ALTER SCHEMA catalog OWNER TO chandler_owner;

CREATE SCHEMA catalog_api;

ALTER SCHEMA catalog_api OWNER TO chandler_owner;

CREATE SCHEMA eventlog;

ALTER SCHEMA eventlog OWNER TO chandler_owner;

CREATE SCHEMA eventlog_api;

ALTER SCHEMA eventlog_api OWNER TO chandler_owner;

CREATE SCHEMA gateway;

ALTER SCHEMA gateway OWNER TO chandler_owner;

CREATE SCHEMA gateway_api;

ALTER SCHEMA gateway_api OWNER TO chandler_owner;

CREATE SCHEMA installer;

ALTER SCHEMA installer OWNER TO chandler_owner;

CREATE SCHEMA installer_api;

ALTER SCHEMA installer_api OWNER TO chandler_owner;

CREATE SCHEMA resolver;

ALTER SCHEMA resolver OWNER TO chandler_owner;

CREATE SCHEMA resolver_api;

ALTER SCHEMA resolver_api OWNER TO chandler_owner;

CREATE FUNCTION catalog.search_query(wanted text[]) RETURNS tsquery
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  word  text;
  stem  tsquery;
  found tsquery;
begin
  foreach word in array wanted loop
    word := replace(word, '\', ' '); -- quote_literal would write it in a form that queries do not have
    continue when btrim(word) = '';
    stem := to_tsquery('english', quote_literal(word) || ':*');
    continue when numnode(stem) = 0;
    stem := stem || to_tsquery('simple', quote_literal(word) || ':*');
    found := case when found is null then stem else found && stem end;
  end loop;
  return found;
end $$;

ALTER FUNCTION catalog.search_query(wanted text[]) OWNER TO chandler_owner;

COMMENT ON FUNCTION catalog.search_query(wanted text[]) IS 'words that a person typed as a query';

CREATE FUNCTION catalog_api.search_packages(of_tenant text, of_revisions text[], wanted text[]) RETURNS TABLE(digest text, rank real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  query constant tsquery := catalog.search_query(wanted);
begin
  if coalesce(eventlog.session_tenant(), '') not in ('*', of_tenant) then
    raise exception 'this session does not belong to tenant %', of_tenant using errcode = 'CH003';
  end if;
  if query is null then
    return query
      select p.digest, 0::real from catalog.revision_packages p where p.tenant = of_tenant and p.revision = any (of_revisions);
    return;
  end if;
  -- A word of the description alone finds a package, behind all that have it in a name.
  return query
    select s.digest, (ts_rank('{0.05, 0.2, 0.4, 1.0}', s.names, query) + 0.001)::real
    from catalog.search s
    join (select distinct p.digest from catalog.revision_packages p where p.tenant = of_tenant and p.revision = any (of_revisions)) live
      on live.digest = s.digest
    where s.tenant = of_tenant and s.words @@ query;
end $$;

ALTER FUNCTION catalog_api.search_packages(of_tenant text, of_revisions text[], wanted text[]) OWNER TO chandler_owner;

COMMENT ON FUNCTION catalog_api.search_packages(of_tenant text, of_revisions text[], wanted text[]) IS 'packages of some revisions that hold all words, with a rank';

CREATE FUNCTION eventlog.adopt_model(p_consumer text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  m   record;
  was text;
begin
  select * into m from eventlog.model_of(p_consumer);
  select c.consumer into was from eventlog.checkpoints c
    where starts_with(c.consumer, m.model || 'v') and substring(c.consumer from '/v([0-9]{1,6})$') is not null
    order by substring(c.consumer from '/v([0-9]{1,6})$')::int desc limit 1;
  if was is distinct from m.model || 'v' || m.version then
    return false;
  end if;
  insert into eventlog.checkpoints (consumer, tenant, epoch, position)
    select p_consumer, c.tenant, c.epoch, c.position from eventlog.checkpoints c where c.consumer = was;
  insert into eventlog.parked (tenant, consumer, stream, version, epoch, position, type, reason, attempts, since, next_retry, body)
    select p.tenant, p_consumer, p.stream, p.version, p.epoch, p.position, p.type, p.reason, p.attempts, p.since, p.next_retry, p.body
    from eventlog.parked p where p.consumer = was;
  insert into eventlog.skipped
    select (jsonb_populate_record(s, jsonb_build_object('consumer', p_consumer))).* from eventlog.skipped s where s.consumer = was
    on conflict do nothing;
  return true;
end $_$;

ALTER FUNCTION eventlog.adopt_model(p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.announce_type(p_type text, p_kind text, p_writer text, p_closes boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  update eventlog.event_types t set kind = p_kind, writer = p_writer, closes = p_closes
    where t.type = p_type and (t.kind, t.writer, t.closes) is distinct from (p_kind, p_writer, p_closes);
  if exists (select from eventlog.event_types t where t.type = p_type) then
    return;
  end if;
  insert into eventlog.coming_types (type, kind, writer, closes) values (p_type, p_kind, p_writer, p_closes)
    on conflict (type) do update set kind = p_kind, writer = p_writer, closes = p_closes;
end $$;

ALTER FUNCTION eventlog.announce_type(p_type text, p_kind text, p_writer text, p_closes boolean) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.append(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint, p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[], OUT version bigint, OUT repeated boolean) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  n       int := cardinality(p_types);
  ends    boolean;
  allowed boolean;
begin
  repeated := false;
  if p_tenant in ('', '*') or p_incarnation < 1 or p_expected < 0 or n < 1 then
    raise exception 'an append needs a tenant, an incarnation from 1, a version from 0 and an event' using errcode = 'CH006';
  end if;
  if coalesce(eventlog.session_tenant(), '') not in ('*', p_tenant) then
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

ALTER FUNCTION eventlog.append(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint, p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[], OUT version bigint, OUT repeated boolean) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.ask_rebuild(p_consumer text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  insert into eventlog.rebuilds (consumer) select c.consumer from eventlog.checkpoints c where c.consumer = p_consumer
    on conflict do nothing;
  return exists (select from eventlog.checkpoints c where c.consumer = p_consumer);
end $$;

ALTER FUNCTION eventlog.ask_rebuild(p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.at_work(p_consumer text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
  select exists (select from eventlog.checkpoint(p_consumer) c where c.replay_to is null)
$$;

ALTER FUNCTION eventlog.at_work(p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
  -- Not each time: whoever looks asks for hours. A row that is locked is being noted by another process.
  update eventlog.models m set used = now where m.consumer in (select u.consumer from eventlog.models u
    where u.consumer = any (p_types) and eventlog.is_of(session_user, u.consumer) and u.used < now - interval '1 minute' for update skip locked);
  delete from eventlog.readers r where r.seen < now - interval '1 day' or r.role = session_user and r.instance in
    (select o.instance from eventlog.readers o where o.role = session_user order by o.seen desc, o.instance offset most);
  return array(select t.type from eventlog.event_types t where not t.type = any (p_types) order by 1);
end $$;

ALTER FUNCTION eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.bounded_lease(p_lease interval) RETURNS interval
    LANGUAGE sql IMMUTABLE
    AS $$ select least(greatest(p_lease, interval '0'), interval '10 s') $$;

ALTER FUNCTION eventlog.bounded_lease(p_lease interval) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) OWNER TO chandler_owner;

CREATE TABLE eventlog.checkpoints (
    consumer text NOT NULL,
    tenant text DEFAULT '*'::text NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    updated timestamp with time zone DEFAULT now() NOT NULL,
    replay_to bigint,
    revision bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY eventlog.checkpoints FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.checkpoints OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.checkpoints IS 'the last position whose effects a consumer has committed';

COMMENT ON COLUMN eventlog.checkpoints.replay_to IS 'the position up to which the consumer reads the log again; null where it does not';

COMMENT ON COLUMN eventlog.checkpoints.revision IS 'rises with each move; the newest version of the row is found by it';

CREATE FUNCTION eventlog.checkpoint(p_consumer text) RETURNS SETOF eventlog.checkpoints
    LANGUAGE sql STABLE
    AS $$
  select c.* from eventlog.checkpoints c where c.consumer = p_consumer and c.tenant = '*' order by c.revision desc limit 1
$$;

ALTER FUNCTION eventlog.checkpoint(p_consumer text) OWNER TO chandler_owner;

CREATE TABLE eventlog.sequencer (
    one boolean DEFAULT true NOT NULL,
    term bigint DEFAULT 0 NOT NULL,
    leader text DEFAULT ''::text NOT NULL,
    until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    epoch bigint DEFAULT 1 NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    recorded timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    partitioned bigint DEFAULT 0 NOT NULL,
    partition_rows bigint DEFAULT 20000000 NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    candidate bigint DEFAULT 0 NOT NULL,
    holders text[] DEFAULT '{}'::text[] NOT NULL,
    settling timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    role text DEFAULT ''::text NOT NULL,
    clock timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    mono interval,
    ahead interval DEFAULT '00:00:00'::interval NOT NULL,
    waiting bigint,
    waiting_since timestamp with time zone,
    CONSTRAINT sequencer_one_check CHECK (one),
    CONSTRAINT sequencer_partition_rows_check CHECK ((partition_rows > 0))
)
WITH (fillfactor='10');

ALTER TABLE eventlog.sequencer OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.sequencer IS 'who gives positions, and the last one given';

CREATE FUNCTION eventlog.clock_jump(s eventlog.sequencer, p_now timestamp with time zone, p_mono interval) RETURNS interval
    LANGUAGE sql IMMUTABLE
    AS $$
  select j from (select p_now - (s.clock + greatest(p_mono - s.mono, interval '0')) as j) x
    where s.mono is not null and (j > interval '1 minute' or j < interval '-1 minute')
$$;

ALTER FUNCTION eventlog.clock_jump(s eventlog.sequencer, p_now timestamp with time zone, p_mono interval) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.done(p_tenant text, p_key uuid, p_incarnation integer, p_ids uuid[]) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
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

ALTER FUNCTION eventlog.done(p_tenant text, p_key uuid, p_incarnation integer, p_ids uuid[]) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.drop_checkpoints(p_consumer text, p_prefix text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.own(p_prefix);
  perform eventlog.own(c.consumer) from eventlog.checkpoints c where starts_with(c.consumer, p_prefix);
  delete from eventlog.checkpoints c where starts_with(c.consumer, p_prefix) and c.consumer <> p_consumer;
end $$;

ALTER FUNCTION eventlog.drop_checkpoints(p_consumer text, p_prefix text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.drop_models(p_models text, p_after interval) RETURNS SETOF text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '3s'
    AS $_$
declare
  least_after constant interval := interval '1 hour'; -- a release that is taken back at once finds its tables
  now timestamptz := clock_timestamp();
  m   record;
  was text[];
  t   text;
  waits text;
begin
  if p_models !~ '^projection/(gateway|resolver|installer|catalog-indexer)\.$' then
    raise exception '% does not name the read models of a service, such as projection/gateway.', p_models using errcode = 'CH003';
  end if;
  perform eventlog.own(p_models);
  if p_after is null or p_after < least_after then
    raise exception 'tables that nobody uses are kept for % at least, not %', least_after, p_after using errcode = 'CH003';
  end if;
  for m in
    select e.* from eventlog.models e
    where starts_with(e.model, p_models) and e.used < now - p_after and not eventlog.lives(e.consumer)
    order by e.consumer for update skip locked
  loop
    begin
      perform eventlog.remove_model(m.consumer, m.place);
      return next m.consumer;
      return;
    exception when lock_not_available then -- somebody reads in it: the next one meanwhile
      waits := sqlerrm;
    end;
  end loop;
  for m in
    select distinct on (e.model) e.model, e.place, o.shape from eventlog.models e cross join eventlog.model_of(e.consumer) o
    where starts_with(e.model, p_models) and e.made < now - p_after order by e.model, e.made
  loop
    was := array(select c.consumer from eventlog.checkpoints c
      where starts_with(c.consumer, m.model || 'v') and c.consumer <> m.model || 'v999999' order by 1 for update);
    continue when cardinality(was) = 0 or exists (select from eventlog.checkpoints c join unnest(was) w on w = c.consumer
      where c.updated > now - p_after or eventlog.lives(c.consumer));
    for t in
      select c.relname from pg_class c join pg_class s on s.relname = c.relname and s.relnamespace = m.shape::regnamespace
      where c.relnamespace = m.place::regnamespace and c.relkind = 'r' and has_table_privilege(session_user, s.oid, 'truncate')
      order by 1
    loop
      execute format('truncate %I.%I', m.shape, t);
    end loop;
    delete from eventlog.checkpoints c where c.consumer = any (was);
    delete from eventlog.parked p where p.consumer = any (was);
    insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (m.model || 'v999999', '*', 1, 0)
      on conflict do nothing;
    return query select unnest(was);
    return;
  end loop;
  if waits is not null then
    raise exception '%', waits using errcode = 'lock_not_available';
  end if;
end $_$;

ALTER FUNCTION eventlog.drop_models(p_models text, p_after interval) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.drop_rebuild(p_consumer text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  delete from eventlog.rebuilds r where r.consumer = p_consumer;
  return found;
end $$;

ALTER FUNCTION eventlog.drop_rebuild(p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.exchange_keys(p_service text, p_key bytea) RETURNS TABLE(service text, public_key bytea)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.exchange_keys(p_service text, p_key bytea) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.extend() RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.extend() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.for_persons(p_tenant text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
  if not pg_has_role(session_user, 'chandler_gateway', 'MEMBER') then
    raise exception 'role % may not decide about parked events: only the gateway may', session_user using errcode = 'CH003';
  end if;
  if coalesce(eventlog.session_tenant(), '') not in ('*', p_tenant) then
    raise exception 'tenant % is not that of this session', p_tenant using errcode = 'CH003';
  end if;
end $$;

ALTER FUNCTION eventlog.for_persons(p_tenant text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.hold_parked(p_consumer text, p_stream text) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  return query select p.version from eventlog.parked p where p.consumer = p_consumer and p.stream = p_stream
    order by p.version for update;
end $$;

ALTER FUNCTION eventlog.hold_parked(p_consumer text, p_stream text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.hold_work(p_consumer text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('replay/' || p_consumer));
  return eventlog.at_work(p_consumer); -- a statement of its own: it sees what was committed before the lock
end $$;

ALTER FUNCTION eventlog.hold_work(p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.is_of(p_role name, p_consumer text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select exists (select from pg_roles o where o.rolname = p_role and pg_has_role(o.oid, 'chandler_' || replace(
    substring(p_consumer from '^projection/(gateway|resolver|installer|catalog-indexer)\.'), '-', '_'), 'MEMBER'))
$$;

ALTER FUNCTION eventlog.is_of(p_role name, p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.kept(p_prefix text) RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
  select coalesce(max(substring(k.name from '/v([0-9]{1,6})$')::int), 0)
  from eventlog.readers r cross join unnest(r.types) k(name)
  where r.seen > clock_timestamp() - interval '1 minute' and starts_with(k.name, p_prefix) and eventlog.is_of(r.role, p_prefix)
$_$;

ALTER FUNCTION eventlog.kept(p_prefix text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.knows_needs() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  n eventlog.needs;
begin
  select * into n from eventlog.needs x where not x.what = any (new.types) order by x.what limit 1;
  if found then
    raise exception 'the release % of % does not know "%", which this installation rests on since %', new.version, new.service, n.what, n.since
      using errcode = 'CH008', hint = 'start this release or a later one of those that run';
  end if;
  return new;
end $$;

ALTER FUNCTION eventlog.knows_needs() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.lead(p_id text, p_lease interval) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.lead(p_id text, p_lease interval) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.leave(p_instance text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  delete from eventlog.readers r where r.instance = p_instance and r.role in ('', session_user);
  perform eventlog.release_types();
end $$;

ALTER FUNCTION eventlog.leave(p_instance text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.lives(p_consumer text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select exists (select from eventlog.readers r where r.seen > clock_timestamp() - interval '1 minute' and p_consumer = any (r.types)
    and eventlog.is_of(r.role, p_consumer))
$$;

ALTER FUNCTION eventlog.lives(p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.lock_checkpoints(p_consumer text, p_prefix text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.own(p_prefix);
  perform eventlog.own(c.consumer) from eventlog.checkpoints c where starts_with(c.consumer, p_prefix);
  insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
  perform from eventlog.checkpoints c where c.consumer = p_consumer or starts_with(c.consumer, p_prefix)
    order by c.consumer for update;
end $$;

ALTER FUNCTION eventlog.lock_checkpoints(p_consumer text, p_prefix text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.log_time(s eventlog.sequencer, p_mono interval, p_jumped interval) RETURNS interval
    LANGUAGE plpgsql
    AS $$
begin
  if p_jumped is not null then
    insert into eventlog.incidents (kind, detail) values ('ClockJumped',
      format('the clock of the database jumped by %s at position %s', p_jumped, s.position));
  end if;
  return greatest(s.ahead - greatest(p_mono - s.mono, interval '0') + coalesce(p_jumped, interval '0'), interval '0');
end $$;

ALTER FUNCTION eventlog.log_time(s eventlog.sequencer, p_mono interval, p_jumped interval) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.make_model(p_consumer text, p_tables text[]) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  versions constant int := 3;
  tables   constant int := 8;
  most     constant int := 32; -- versions of all models of a service: three of each of ten, and room
  m     record;
  old   eventlog.models;
  name  text;
begin
  select * into m from eventlog.model_of(p_consumer);
  if coalesce(cardinality(p_tables), 0) not between 1 and tables then
    raise exception 'the read model % has % tables, and may have 1 to %', p_consumer, coalesce(cardinality(p_tables), 0), tables
      using errcode = 'CH003';
  end if;
  if not has_database_privilege(current_database(), 'create') then
    raise exception 'role % may not make schemas in this database: run chandler migrate', current_user using errcode = 'CH003';
  end if;
  perform pg_advisory_xact_lock(hashtext('eventlog.models/' || m.model));
  if exists (select from eventlog.models e where e.consumer = p_consumer) then
    raise exception 'the tables of % are there', p_consumer using errcode = 'CH002';
  end if;
  if (select count(*) from eventlog.models e where e.model = m.model) >= versions then
    select * into old from eventlog.models e where e.model = m.model and not eventlog.lives(e.consumer)
      order by e.used limit 1 for update;
    if not found then
      raise exception 'the read model % has % versions in use: one of them has to end before % can be made', m.model, versions,
        p_consumer using errcode = 'CH001';
    end if;
    perform eventlog.remove_model(old.consumer, old.place);
  end if;
  if (select count(*) from eventlog.models e where starts_with(e.model, 'projection/' || m.service || '.')) >= most then
    raise exception 'the read models of the service % have % versions, and may have no more: one of them has to be dropped before % can be made',
      m.service, most, p_consumer using errcode = 'CH001', hint = 'versions that no process uses are dropped after a day (keep-unused-models)';
  end if;
  execute format('create schema %I', m.place);
  execute format('grant usage on schema %I to %I', m.place, 'chandler_' || replace(m.service, '-', '_'));
  foreach name in array p_tables loop
    if not exists (select from pg_class c where c.relnamespace = m.shape::regnamespace and c.relname = name and c.relkind = 'r') then
      raise exception 'the read model % has no table %.%', p_consumer, m.shape, name using errcode = 'CH003';
    end if;
    execute format('create table %I.%I (like %I.%I including all)', m.place, name, m.shape, name);
    perform eventlog.protect(format('%I.%I', m.place, name)::regclass);
    execute format('grant select, insert, update, delete on %I.%I to %I', m.place, name,
      'chandler_' || replace(m.service, '-', '_'));
  end loop;
  insert into eventlog.models (consumer, model, place) values (p_consumer, m.model, m.place);
  return m.place;
end $$;

ALTER FUNCTION eventlog.make_model(p_consumer text, p_tables text[]) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.may_begin(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
  if not exists (select from eventlog.streams s
      where s.tenant = p_tenant and s.key = p_key and s.incarnation = p_incarnation - 1 and s.closed) then
    raise exception 'incarnation % of % % cannot begin: the one before has not ended', p_incarnation, p_kind, p_subject using errcode = 'CH004';
  end if;
end $$;

ALTER FUNCTION eventlog.may_begin(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.may_write(p_kind text, p_types text[]) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
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

ALTER FUNCTION eventlog.may_write(p_kind text, p_types text[]) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.model_of(p_consumer text, OUT service text, OUT shape text, OUT model text, OUT place text, OUT version text) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $_$
declare
  parts text[] := regexp_match(p_consumer, '^projection/(gateway|resolver|installer|catalog-indexer)\.([a-z]{1,32})/([1-9][0-9]{0,5})$');
begin
  if parts is null then
    raise exception '% is not a version of a read model, such as projection/gateway.clusters/7', p_consumer using errcode = 'CH003';
  end if;
  perform eventlog.own(p_consumer);
  service := parts[1];
  shape := case service when 'catalog-indexer' then 'catalog' else service end;
  model := 'projection/' || service || '.' || parts[2] || '/';
  place := shape || '_' || parts[2] || '_v' || parts[3];
  version := parts[3];
end $_$;

ALTER FUNCTION eventlog.model_of(p_consumer text, OUT service text, OUT shape text, OUT model text, OUT place text, OUT version text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
declare
  newest bigint;
begin
  perform eventlog.own(p_consumer);
  perform eventlog.within_log(p_epoch, p_position);
  select c.revision into newest from eventlog.checkpoints c
    where c.consumer = p_consumer and c.tenant = '*' order by c.revision desc limit 1 for update;
  update eventlog.checkpoints c set epoch = p_epoch, position = p_position, updated = now(), revision = newest + 1
    where c.consumer = p_consumer and c.tenant = '*' and c.revision = newest and (c.epoch, c.position) <= (p_epoch, p_position);
  if not found then
    raise exception 'the checkpoint of % moves forward only, not to %-%', p_consumer, p_epoch, p_position using errcode = 'CH003';
  end if;
end $$;

ALTER FUNCTION eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.need(p_what text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
  if exists (select from eventlog.needs n where n.what = p_what) then
    return true;
  end if;
  lock table eventlog.readers in share row exclusive mode;
  if eventlog.unaware(p_what) is not null then
    return false;
  end if;
  insert into eventlog.needs (what) values (p_what) on conflict do nothing;
  return true;
end $$;

ALTER FUNCTION eventlog.need(p_what text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  update eventlog.rebuilds r set position = p_position, failed = coalesce(p_failed, r.failed),
      began = case when p_position = 0 then now() else r.began end
    where r.consumer = p_consumer;
  return found;
end $$;

ALTER FUNCTION eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.note_replay() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if tg_op = 'INSERT' then
    select greatest(s.position, new.replay_to) into new.replay_to from eventlog.sequencer s order by s.revision desc limit 1;
  elsif new.position < old.position then
    perform pg_advisory_xact_lock(hashtext('replay/' || new.consumer));
    new.replay_to := greatest(old.position, old.replay_to);
  end if;
  if new.position >= new.replay_to then
    new.replay_to := null;
  end if;
  return new;
end $$;

ALTER FUNCTION eventlog.note_replay() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.one_checkpoint() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if tg_op = 'DELETE' then
    delete from eventlog.consumers c where c.consumer = old.consumer and c.tenant = old.tenant;
    return old;
  end if;
  insert into eventlog.consumers (consumer, tenant) values (new.consumer, new.tenant) on conflict do nothing;
  return case when found then new end;
end $$;

ALTER FUNCTION eventlog.one_checkpoint() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.one_sequencer() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  raise exception 'eventlog.sequencer has one row, which the migrations made' using errcode = 'unique_violation';
end $$;

ALTER FUNCTION eventlog.one_sequencer() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.own(p_consumer text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
declare
  service text := substring(p_consumer from '^(?:projection/)?(gateway|resolver|installer|catalog-indexer)\.');
begin
  if service is not null and not pg_has_role(session_user, 'chandler_' || replace(service, '-', '_'), 'MEMBER') then
    raise exception 'role % may not touch the consumer %: it belongs to the service %', session_user, p_consumer, service
      using errcode = 'CH003';
  end if;
end $$;

ALTER FUNCTION eventlog.own(p_consumer text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint, p_position bigint, p_type text, p_reason text, p_attempts integer, p_wait interval, p_body bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  insert into eventlog.parked (tenant, consumer, stream, version, epoch, position, type, reason, attempts, next_retry, body)
    values (p_tenant, p_consumer, p_stream, p_version, p_epoch, p_position, p_type, p_reason, p_attempts, now() + p_wait, p_body)
    on conflict do nothing;
end $$;

ALTER FUNCTION eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint, p_position bigint, p_type text, p_reason text, p_attempts integer, p_wait interval, p_body bytea) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts integer, p_reason text, p_wait interval, p_body bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  update eventlog.parked p set
      attempts = case when p.version = p_version then p_attempts else p.attempts end,
      reason = case when p.version = p_version then p_reason else p.reason end,
      body = case when p.version = p_version then p_body else p.body end,
      next_retry = now() + p_wait
    where p.consumer = p_consumer and p.stream = p_stream;
end $$;

ALTER FUNCTION eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts integer, p_reason text, p_wait interval, p_body bytea) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.position_of(p_tenant text, p_key uuid, p_incarnation integer, p_version bigint, OUT epoch bigint, OUT "position" bigint) RETURNS record
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET plan_cache_mode TO 'force_custom_plan'
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.position_of(p_tenant text, p_key uuid, p_incarnation integer, p_version bigint, OUT epoch bigint, OUT "position" bigint) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.protect(target regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
  execute format('alter table %s enable row level security, force row level security', target);
  execute format($policy$create policy tenant on %s
    using (tenant = (select case when session_user <> 'chandler_gateway_api' then current_setting('chandler.tenant', true)
        else nullif(current_setting('chandler.tenant', true), '*') end)
      or (select session_user <> 'chandler_gateway_api' and current_setting('chandler.tenant', true) = '*'
        or current_user = 'chandler_owner'))$policy$, target);
end $_$;

ALTER FUNCTION eventlog.protect(target regclass) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.raise_epoch(s eventlog.sequencer, p_epoch bigint, p_position bigint, p_source text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION eventlog.raise_epoch(s eventlog.sequencer, p_epoch bigint, p_position bigint, p_source text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation integer, p_after bigint) RETURNS TABLE(at bigint, in_epoch bigint, recorded timestamp with time zone, tenant text, kind text, stream_key uuid, incarnation integer, version bigint, type text, body bytea, hash bytea)
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

ALTER FUNCTION eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation integer, p_after bigint) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.within_log(p_epoch, p_position);
  delete from eventlog.parked p where p.consumer = p_consumer;
  update eventlog.checkpoints c set epoch = p_epoch, position = p_position, updated = now()
    where c.consumer = p_consumer and c.tenant = '*';
end $$;

ALTER FUNCTION eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.refuse(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION eventlog.refuse(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.release_types() RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  if not exists (select from eventlog.coming_types) then return; end if;
  lock table eventlog.readers in share row exclusive mode;
  with known as (delete from eventlog.coming_types c where eventlog.unaware(c.type) is null returning c.*)
  insert into eventlog.event_types (type, kind, writer, closes) select type, kind, writer, closes from known
    on conflict do nothing;
end $$;

ALTER FUNCTION eventlog.release_types() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.remove_model(p_consumer text, p_place text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform from eventlog.checkpoints c where c.consumer = p_consumer for update; -- who folds just then ends first
  execute format('drop schema if exists %I cascade', p_place);
  delete from eventlog.checkpoints c where c.consumer = p_consumer;
  delete from eventlog.parked p where p.consumer = p_consumer;
  delete from eventlog.rebuilds r where r.consumer = p_consumer;
  delete from eventlog.models m where m.consumer = p_consumer;
end $$;

ALTER FUNCTION eventlog.remove_model(p_consumer text, p_place text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.resign(p_term bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  update eventlog.sequencer set until = clock_timestamp(), term = term + 1, leader = '', role = '', revision = revision + 1
    where term = p_term and role = session_user
$$;

ALTER FUNCTION eventlog.resign(p_term bigint) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.resume(p_epoch bigint, p_actor text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.resume(p_epoch bigint, p_actor text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.retry_parked(p_tenant text, p_consumer text, p_stream text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  n int;
begin
  perform eventlog.for_persons(p_tenant);
  update eventlog.parked set next_retry = clock_timestamp()
    where tenant = p_tenant and consumer = p_consumer and (p_stream = '' or stream = p_stream);
  get diagnostics n = row_count;
  return n;
end $$;

ALTER FUNCTION eventlog.retry_parked(p_tenant text, p_consumer text, p_stream text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.sequence(p_term bigint, p_max integer, p_lease interval, p_mono interval, OUT moved integer, OUT epoch bigint, OUT head bigint, OUT narrow boolean, OUT jumped interval) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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

ALTER FUNCTION eventlog.sequence(p_term bigint, p_max integer, p_lease interval, p_mono interval, OUT moved integer, OUT epoch bigint, OUT head bigint, OUT narrow boolean, OUT jumped interval) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.session_tenant() RETURNS text
    LANGUAGE sql STABLE
    AS $$
  select case when session_user <> 'chandler_gateway_api' then current_setting('chandler.tenant', true)
    else nullif(current_setting('chandler.tenant', true), '*') end
$$;

ALTER FUNCTION eventlog.session_tenant() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.settle(s eventlog.sequencer) RETURNS eventlog.sequencer
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION eventlog.settle(s eventlog.sequencer) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.skip_parked(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_actor text, p_reason text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.skip_parked(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_actor text, p_reason text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.stalled(s eventlog.sequencer, p_now timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
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

ALTER FUNCTION eventlog.stalled(s eventlog.sequencer, p_now timestamp with time zone) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.take_checkpoint(p_consumer text, OUT epoch bigint, OUT "position" bigint, OUT held boolean, OUT skips boolean) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
begin
  perform eventlog.own(p_consumer);
  held := false;
  skips := false;
  for i in 1..2 loop
    select c.epoch, c.position, exists (select from eventlog.skipped s where s.consumer = p_consumer and s.position > c.position)
      into take_checkpoint.epoch, take_checkpoint.position, skips from eventlog.checkpoints c
      where c.consumer = p_consumer and c.tenant = '*' order by c.revision desc limit 1 for update skip locked;
    if found then return; end if;
    insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
    exit when not found;
  end loop;
  held := true;
end $$;

ALTER FUNCTION eventlog.take_checkpoint(p_consumer text, OUT epoch bigint, OUT "position" bigint, OUT held boolean, OUT skips boolean) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.unaware(p_type text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
  select string_agg(r.service || ' ' || r.version, ', ' order by r.service, r.version) from eventlog.readers r
  where r.seen > clock_timestamp() - interval '1 minute' and not p_type = any (r.types)
$$;

ALTER FUNCTION eventlog.unaware(p_type text) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.unpark(p_consumer text, p_stream text, p_version bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform eventlog.own(p_consumer);
  delete from eventlog.parked p where p.consumer = p_consumer and p.stream = p_stream and p.version = p_version;
end $$;

ALTER FUNCTION eventlog.unpark(p_consumer text, p_stream text, p_version bigint) OWNER TO chandler_owner;

CREATE FUNCTION eventlog.watch_server() RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION eventlog.watch_server() OWNER TO chandler_owner;

CREATE FUNCTION eventlog.within_log(p_epoch bigint, p_position bigint) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
  if exists (select from (select q.epoch, q.position from eventlog.sequencer q order by q.revision desc limit 1) s
      where (p_epoch, p_position) > (s.epoch, s.position)) or p_position < 0 then
    raise exception 'the log has not come to %-%', p_epoch, p_position using errcode = 'CH003';
  end if;
end $$;

ALTER FUNCTION eventlog.within_log(p_epoch bigint, p_position bigint) OWNER TO chandler_owner;

CREATE FUNCTION gateway.begin_sealing() RETURNS boolean
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select eventlog.need('sealed-bodies') $$;

ALTER FUNCTION gateway.begin_sealing() OWNER TO chandler_owner;

COMMENT ON FUNCTION gateway.begin_sealing() IS 'whether every live process opens sealed bodies, which stays so';

CREATE FUNCTION gateway.end_sealing() RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  least_after constant interval := interval '1 hour';
  ended text[];
begin
  if not exists (select from eventlog.needs n where n.what = 'sealed-bodies' and n.since < clock_timestamp() - least_after) then
    return '{}';
  end if;
  with new as (
    insert into gateway.sealed_kinds (kind)
      select k from unnest(array['subscription-config', 'catalog-source', 'annotations', 'plan-reason']) k
        where not exists (select from gateway.bodies b where b.kind = k and b.key_id = '')
      union all
      select 'preview-question' where not exists (select from gateway.previews p where p.key_id = '')
    on conflict do nothing returning kind)
  select coalesce(array_agg(kind order by kind), '{}') into ended from new;
  return ended;
end $$;

ALTER FUNCTION gateway.end_sealing() OWNER TO chandler_owner;

COMMENT ON FUNCTION gateway.end_sealing() IS 'notes the kinds of which all bodies are sealed, and returns the new ones';

CREATE FUNCTION gateway.keep_access_log(p_days integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  today date := (clock_timestamp() at time zone 'UTC')::date;
  day date;
  name text;
  dropped int := 0;
begin
  if p_days < 30 then
    raise exception 'the access log is kept for 30 days at least, not %', p_days;
  end if;
  perform pg_advisory_xact_lock(hashtext('gateway.access_log'));
  for day in select d::date from generate_series(today - 1, today + 2, interval '1 day') d loop
    name := 'access_log_' || to_char(day, 'YYYYMMDD');
    if to_regclass('gateway.' || name) is not null then continue; end if;
    -- Made by itself and attached, which lets writers go on. It is reached through the table alone.
    execute format('create table gateway.%I (like gateway.access_log including all)', name);
    execute format('revoke all on gateway.%I from chandler_gateway', name);
    execute format('alter table gateway.access_log attach partition gateway.%I for values from (%L) to (%L)', name,
      day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
  end loop;
  for name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'gateway.access_log'::regclass and to_date(right(c.relname, 8), 'YYYYMMDD') < today - p_days
  loop
    execute format('drop table gateway.%I', name);
    dropped := dropped + 1;
  end loop;
  return dropped;
end $$;

ALTER FUNCTION gateway.keep_access_log(p_days integer) OWNER TO chandler_owner;

CREATE FUNCTION gateway_api.clear_bodies() RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select (select count(*) from gateway.bodies where key_id = '') + (select count(*) from gateway.previews where key_id = '')
$$;

ALTER FUNCTION gateway_api.clear_bodies() OWNER TO chandler_owner;

COMMENT ON FUNCTION gateway_api.clear_bodies() IS 'how many bodies and questions of previews are not sealed';

CREATE FUNCTION gateway_api.reseal_catalog_secret(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
  if p_key_id !~ '^[0-9a-f]{16}$' then
    raise exception 'not the id of a key: %', p_key_id;
  end if;
  update gateway.catalog_secrets set ciphertext = p_ciphertext, key_id = p_key_id
   where tenant = p_tenant and name = p_name and commitment = p_commitment and key_id = p_was
     and current_setting('chandler.tenant', true) in ('*', tenant);
  return found;
end $_$;

ALTER FUNCTION gateway_api.reseal_catalog_secret(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) OWNER TO chandler_owner;

CREATE FUNCTION gateway_api.reseal_cluster_credential(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
  if p_key_id !~ '^[0-9a-f]{16}$' then
    raise exception 'not the id of a key: %', p_key_id;
  end if;
  update gateway.credentials set ciphertext = p_ciphertext, key_id = p_key_id
   where tenant = p_tenant and name = p_name and commitment = p_commitment and key_id = p_was
     and current_setting('chandler.tenant', true) in ('*', tenant);
  return found;
end $_$;

ALTER FUNCTION gateway_api.reseal_cluster_credential(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) OWNER TO chandler_owner;

CREATE FUNCTION gateway_api.rotate_cluster_credential(p_tenant text, p_name text, p_was text, p_commitment text, p_salt bytea, p_ciphertext bytea, p_key_id text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
  if p_key_id !~ '^[0-9a-f]{16}$' then
    raise exception 'not the id of a key: %', p_key_id;
  end if;
  if p_commitment !~ '^c1:[0-9a-f]{64}$' then
    raise exception 'not a commitment: %', p_commitment;
  end if;
  update gateway.credentials set commitment = p_commitment, salt = p_salt, ciphertext = p_ciphertext, key_id = p_key_id,
      updated = now()
   where tenant = p_tenant and name = p_name and commitment = p_was
     and current_setting('chandler.tenant', true) in ('*', tenant);
  return found;
end $_$;

ALTER FUNCTION gateway_api.rotate_cluster_credential(p_tenant text, p_name text, p_was text, p_commitment text, p_salt bytea, p_ciphertext bytea, p_key_id text) OWNER TO chandler_owner;

CREATE FUNCTION gateway_api.sealed_kinds() RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select coalesce(array_agg(k.kind order by k.kind), '{}') from gateway.sealed_kinds k
$$;

ALTER FUNCTION gateway_api.sealed_kinds() OWNER TO chandler_owner;

COMMENT ON FUNCTION gateway_api.sealed_kinds() IS 'kinds of bodies of which none in the clear is believed';

CREATE FUNCTION installer_api.drain_replica(p_name text, p_draining boolean, p_actor text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  update installer.replicas set draining = p_draining, draining_by = case when p_draining then p_actor else '' end
   where name = p_name;
  return found;
end $$;

ALTER FUNCTION installer_api.drain_replica(p_name text, p_draining boolean, p_actor text) OWNER TO chandler_owner;

COMMENT ON FUNCTION installer_api.drain_replica(p_name text, p_draining boolean, p_actor text) IS 'has a replica take clusters no more, or again; false: there is none';

CREATE FUNCTION installer_api.replicas() RETURNS TABLE(name text, live boolean, draining boolean, draining_by text, capacity integer, clusters integer, load integer, unplaced integer, recorded integer, moves bigint, heard timestamp with time zone)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select r.name, r.heard > now() - interval '8 seconds', r.draining, r.draining_by, r.capacity, r.clusters, r.load,
    r.unplaced, r.recorded, r.moves, nullif(r.heard, '-infinity')
    from installer.replicas r order by r.name
$$;

ALTER FUNCTION installer_api.replicas() OWNER TO chandler_owner;

COMMENT ON FUNCTION installer_api.replicas() IS 'replicas of the installer, live ones and those that are gone for less than an hour';

CREATE TABLE catalog.bundle_images (
    tenant text NOT NULL,
    catalog text NOT NULL,
    image text NOT NULL,
    package text NOT NULL,
    bundle text NOT NULL,
    needed boolean DEFAULT false NOT NULL,
    content text DEFAULT ''::text NOT NULL,
    resolved text DEFAULT ''::text NOT NULL,
    mutable boolean DEFAULT false NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_try timestamp with time zone DEFAULT now(),
    fetched timestamp with time zone
);

ALTER TABLE ONLY catalog.bundle_images FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.bundle_images OWNER TO chandler_owner;

COMMENT ON TABLE catalog.bundle_images IS 'bundle images by catalog: wanted, fetched, or why not';

CREATE TABLE catalog.catalogs (
    tenant text NOT NULL,
    stream text NOT NULL,
    subject text NOT NULL,
    source_type text NOT NULL,
    spec text NOT NULL,
    priority integer NOT NULL,
    visibility_cluster text DEFAULT ''::text NOT NULL,
    visibility_namespace text DEFAULT ''::text NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    wanted bigint DEFAULT 1 NOT NULL,
    looked bigint DEFAULT 0 NOT NULL,
    fingerprint text DEFAULT ''::text NOT NULL,
    revision text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'Loading'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    document text DEFAULT ''::text NOT NULL,
    failed_input text DEFAULT ''::text NOT NULL,
    updated timestamp with time zone DEFAULT now() NOT NULL,
    variant text DEFAULT ''::text NOT NULL,
    templated boolean DEFAULT false NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    reference text DEFAULT ''::text NOT NULL,
    resolved text DEFAULT ''::text NOT NULL,
    connection text DEFAULT 'IDLE'::text NOT NULL,
    observed timestamp with time zone DEFAULT now() NOT NULL,
    connected timestamp with time zone,
    polled timestamp with time zone,
    next_look timestamp with time zone DEFAULT now(),
    error text DEFAULT ''::text NOT NULL,
    error_reason text DEFAULT ''::text NOT NULL,
    quarantined text[] DEFAULT '{}'::text[] NOT NULL,
    errors integer DEFAULT 0 NOT NULL,
    warnings integer DEFAULT 0 NOT NULL,
    infos integer DEFAULT 0 NOT NULL,
    template text DEFAULT ''::text NOT NULL,
    template_message text DEFAULT ''::text NOT NULL,
    signatures text DEFAULT ''::text NOT NULL,
    CONSTRAINT catalogs_connection_check CHECK ((connection = ANY (ARRAY['IDLE'::text, 'CONNECTING'::text, 'READY'::text, 'TRANSIENT_FAILURE'::text]))),
    CONSTRAINT catalogs_state_check CHECK ((state = ANY (ARRAY['Loading'::text, 'Ready'::text, 'Failed'::text]))),
    CONSTRAINT catalogs_template_check CHECK ((template = ANY (ARRAY[''::text, 'AllTemplatesResolved'::text, 'UnableToResolve'::text]))),
    CONSTRAINT catalogs_variant_check CHECK ((variant = ''::text))
);

ALTER TABLE ONLY catalog.catalogs FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.catalogs OWNER TO chandler_owner;

COMMENT ON TABLE catalog.catalogs IS 'catalogs, where they come from, what is served and the state of the last look';

CREATE TABLE catalog.clusters (
    tenant text NOT NULL,
    name text NOT NULL,
    version text DEFAULT ''::text NOT NULL,
    minor text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY catalog.clusters FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.clusters OWNER TO chandler_owner;

COMMENT ON TABLE catalog.clusters IS 'registered clusters and their Kubernetes versions';

CREATE TABLE catalog.compared (
    tenant text NOT NULL,
    digest text NOT NULL,
    package text NOT NULL,
    semantics text NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY catalog.compared FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.compared OWNER TO chandler_owner;

COMMENT ON TABLE catalog.compared IS 'package documents whose upgrades are compared';

CREATE TABLE catalog.contents (
    tenant text NOT NULL,
    digest text NOT NULL,
    size bigint NOT NULL,
    pack bytea,
    created timestamp with time zone DEFAULT now() NOT NULL,
    recipe bytea,
    packs bigint[],
    touched timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT contents_form CHECK ((((pack IS NULL) = (recipe IS NOT NULL)) AND ((recipe IS NULL) = (packs IS NULL))))
);
ALTER TABLE ONLY catalog.contents ALTER COLUMN pack SET STORAGE EXTERNAL;

ALTER TABLE ONLY catalog.contents FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.contents OWNER TO chandler_owner;

COMMENT ON TABLE catalog.contents IS 'canonical bundles by digest';

CREATE TABLE catalog.decoded (
    tenant text NOT NULL,
    key text NOT NULL,
    content text NOT NULL,
    value bytea,
    created timestamp with time zone DEFAULT now() NOT NULL,
    recipe bytea,
    packs bigint[],
    touched timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT decoded_form CHECK ((((value IS NULL) = (recipe IS NOT NULL)) AND ((recipe IS NULL) = (packs IS NULL))))
);
ALTER TABLE ONLY catalog.decoded ALTER COLUMN value SET STORAGE EXTERNAL;

ALTER TABLE ONLY catalog.decoded FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.decoded OWNER TO chandler_owner;

COMMENT ON TABLE catalog.decoded IS 'what bundles were decoded to, by digest of their text; a cache';

CREATE TABLE catalog.dirty (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    lane smallint NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    owner text,
    until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    not_before timestamp with time zone DEFAULT now() NOT NULL,
    marked timestamp with time zone DEFAULT now() NOT NULL,
    cause text DEFAULT ''::text NOT NULL,
    traceparent text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY catalog.dirty FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.dirty OWNER TO chandler_owner;

COMMENT ON TABLE catalog.dirty IS 'catalogs to be looked at, with their claims';

CREATE TABLE catalog.documents (
    tenant text NOT NULL,
    digest text NOT NULL,
    body bytea NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL,
    touched timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY catalog.documents FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.documents OWNER TO chandler_owner;

COMMENT ON TABLE catalog.documents IS 'blobs of schemas that Chandler does not know, by digest of their bytes';

CREATE TABLE catalog.fetches (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    lane smallint NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    owner text,
    until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    not_before timestamp with time zone DEFAULT now() NOT NULL,
    marked timestamp with time zone DEFAULT now() NOT NULL,
    cause text DEFAULT ''::text NOT NULL,
    traceparent text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY catalog.fetches FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.fetches OWNER TO chandler_owner;

COMMENT ON TABLE catalog.fetches IS 'catalogs with bundle images to be fetched, with their claims';

CREATE TABLE catalog.findings (
    tenant text NOT NULL,
    document text NOT NULL,
    catalog text NOT NULL,
    findings jsonb NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY catalog.findings FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.findings OWNER TO chandler_owner;

COMMENT ON TABLE catalog.findings IS 'what was wrong with a catalog at a look, by digest';

CREATE TABLE catalog.migrations_applied (
    version bigint NOT NULL,
    file text NOT NULL,
    digest text NOT NULL,
    applied timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE catalog.migrations_applied OWNER TO chandler_owner;

CREATE TABLE catalog.packages (
    tenant text NOT NULL,
    digest text NOT NULL,
    package text NOT NULL,
    document bytea,
    created timestamp with time zone DEFAULT now() NOT NULL,
    recipe bytea,
    packs bigint[],
    contents bigint[],
    touched timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT packages_form CHECK ((((document IS NULL) = (recipe IS NOT NULL)) AND ((recipe IS NULL) = (packs IS NULL))))
);
ALTER TABLE ONLY catalog.packages ALTER COLUMN document SET STORAGE EXTERNAL;

ALTER TABLE ONLY catalog.packages FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.packages OWNER TO chandler_owner;

COMMENT ON TABLE catalog.packages IS 'package documents by digest';

CREATE TABLE catalog.packs (
    tenant text NOT NULL,
    digest text NOT NULL,
    id bigint NOT NULL,
    shelf text NOT NULL,
    size integer NOT NULL,
    data bytea NOT NULL,
    touched timestamp with time zone DEFAULT now() NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY catalog.packs ALTER COLUMN data SET STORAGE EXTERNAL;

ALTER TABLE ONLY catalog.packs FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.packs OWNER TO chandler_owner;

COMMENT ON TABLE catalog.packs IS 'chunks of bundles, packed together; never changed';

ALTER TABLE catalog.packs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME catalog.packs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE catalog.revision_blobs (
    tenant text NOT NULL,
    revision text NOT NULL,
    package text NOT NULL,
    schema text NOT NULL,
    name text NOT NULL,
    digest text NOT NULL
);

ALTER TABLE ONLY catalog.revision_blobs FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.revision_blobs OWNER TO chandler_owner;

COMMENT ON TABLE catalog.revision_blobs IS 'blobs of unknown schemas of a revision, by schema, package and name';

CREATE TABLE catalog.revision_packages (
    tenant text NOT NULL,
    revision text NOT NULL,
    package text NOT NULL,
    digest text NOT NULL
);

ALTER TABLE ONLY catalog.revision_packages FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.revision_packages OWNER TO chandler_owner;

COMMENT ON TABLE catalog.revision_packages IS 'which package documents a revision is made of';

CREATE TABLE catalog.revisions (
    tenant text NOT NULL,
    catalog text NOT NULL,
    version bigint NOT NULL,
    revision text NOT NULL,
    previous text NOT NULL,
    packages integer NOT NULL,
    bundles integer NOT NULL,
    created timestamp with time zone NOT NULL,
    variant text DEFAULT ''::text NOT NULL,
    ended timestamp with time zone
);

ALTER TABLE ONLY catalog.revisions FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.revisions OWNER TO chandler_owner;

COMMENT ON TABLE catalog.revisions IS 'the revisions that each catalog has served';

COMMENT ON COLUMN catalog.revisions.ended IS 'when the variant went that was served so; null while it is there, and where a follower says it';

CREATE TABLE catalog.schema_migrations (
    version bigint NOT NULL,
    dirty boolean NOT NULL
);

ALTER TABLE catalog.schema_migrations OWNER TO chandler_owner;

CREATE TABLE catalog.search (
    tenant text NOT NULL,
    digest text NOT NULL,
    package text NOT NULL,
    card jsonb NOT NULL,
    names tsvector NOT NULL,
    words tsvector NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY catalog.search FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.search OWNER TO chandler_owner;

COMMENT ON TABLE catalog.search IS 'search rows and tiles of packages, by digest of the package document';

CREATE TABLE catalog.signed_images (
    tenant text NOT NULL,
    catalog text NOT NULL,
    image text NOT NULL,
    content text NOT NULL,
    evidence bytea NOT NULL
);
ALTER TABLE ONLY catalog.signed_images ALTER COLUMN evidence SET STORAGE EXTERNAL;

ALTER TABLE ONLY catalog.signed_images FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.signed_images OWNER TO chandler_owner;

COMMENT ON TABLE catalog.signed_images IS 'images of catalogs with a signature policy, as they were fetched';

CREATE TABLE catalog.upgrades (
    tenant text NOT NULL,
    from_content text NOT NULL,
    to_content text NOT NULL,
    semantics text NOT NULL,
    breaking boolean NOT NULL,
    gained integer NOT NULL,
    difference bytea NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY catalog.upgrades ALTER COLUMN difference SET STORAGE EXTERNAL;

ALTER TABLE ONLY catalog.upgrades FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.upgrades OWNER TO chandler_owner;

COMMENT ON TABLE catalog.upgrades IS 'what differs between two bundles: custom resource definitions and rights';

COMMENT ON COLUMN catalog.upgrades.gained IS 'rights and demands that the old bundle did not have';

CREATE TABLE catalog.variants (
    tenant text NOT NULL,
    stream text NOT NULL,
    variant text NOT NULL,
    wanted bigint DEFAULT 1 NOT NULL,
    looked bigint DEFAULT 0 NOT NULL,
    fingerprint text DEFAULT ''::text NOT NULL,
    revision text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'Loading'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    document text DEFAULT ''::text NOT NULL,
    failed_input text DEFAULT ''::text NOT NULL,
    reference text DEFAULT ''::text NOT NULL,
    resolved text DEFAULT ''::text NOT NULL,
    connection text DEFAULT 'IDLE'::text NOT NULL,
    observed timestamp with time zone DEFAULT now() NOT NULL,
    connected timestamp with time zone,
    polled timestamp with time zone,
    next_look timestamp with time zone DEFAULT now(),
    error text DEFAULT ''::text NOT NULL,
    error_reason text DEFAULT ''::text NOT NULL,
    quarantined text[] DEFAULT '{}'::text[] NOT NULL,
    errors integer DEFAULT 0 NOT NULL,
    warnings integer DEFAULT 0 NOT NULL,
    infos integer DEFAULT 0 NOT NULL,
    template text DEFAULT ''::text NOT NULL,
    template_message text DEFAULT ''::text NOT NULL,
    updated timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT variants_connection_check CHECK ((connection = ANY (ARRAY['IDLE'::text, 'CONNECTING'::text, 'READY'::text, 'TRANSIENT_FAILURE'::text]))),
    CONSTRAINT variants_state_check CHECK ((state = ANY (ARRAY['Loading'::text, 'Ready'::text, 'Failed'::text]))),
    CONSTRAINT variants_template_check CHECK ((template = ANY (ARRAY[''::text, 'AllTemplatesResolved'::text, 'UnableToResolve'::text]))),
    CONSTRAINT variants_variant_check CHECK ((variant <> ''::text))
);

ALTER TABLE ONLY catalog.variants FORCE ROW LEVEL SECURITY;

ALTER TABLE catalog.variants OWNER TO chandler_owner;

COMMENT ON TABLE catalog.variants IS 'what a templated catalog serves to clusters of one Kubernetes minor version';

CREATE VIEW catalog_api.bundle_images WITH (security_barrier='true') AS
 SELECT bundle_images.tenant,
    bundle_images.catalog,
    bundle_images.image,
    bundle_images.package,
    bundle_images.bundle,
    bundle_images.content,
    bundle_images.resolved,
    bundle_images.mutable,
    bundle_images.reason,
    bundle_images.message,
    bundle_images.attempts,
    bundle_images.next_try,
    bundle_images.fetched
   FROM catalog.bundle_images
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = bundle_images.tenant));

ALTER TABLE catalog_api.bundle_images OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.bundle_images IS 'bundle images of catalogs (their streams): fetched, or why not';

CREATE VIEW catalog_api.catalog_status WITH (security_barrier='true') AS
 SELECT s.tenant,
    s.stream AS catalog,
    c.subject AS name,
    s.variant,
    s.reference,
    s.resolved,
    s.revision,
    s.state,
    s.reason,
    s.message,
    s.document,
    s.connection,
    s.observed,
    s.connected,
    s.polled,
    s.next_look,
    s.error,
    s.error_reason,
    s.quarantined,
    s.errors,
    s.warnings,
    s.infos,
    s.template,
    s.template_message,
    s.updated
   FROM (catalog.catalogs c
     JOIN LATERAL ( SELECT b.tenant,
            b.stream,
            b.variant,
            b.reference,
            b.resolved,
            b.revision,
            b.state,
            b.reason,
            b.message,
            b.document,
            b.connection,
            b.observed,
            b.connected,
            b.polled,
            b.next_look,
            b.error,
            b.error_reason,
            b.quarantined,
            b.errors,
            b.warnings,
            b.infos,
            b.template,
            b.template_message,
            b.updated
           FROM catalog.catalogs b
          WHERE ((b.tenant = c.tenant) AND (b.stream = c.stream))
        UNION ALL
         SELECT v.tenant,
            v.stream,
            v.variant,
            v.reference,
            v.resolved,
            v.revision,
            v.state,
            v.reason,
            v.message,
            v.document,
            v.connection,
            v.observed,
            v.connected,
            v.polled,
            v.next_look,
            v.error,
            v.error_reason,
            v.quarantined,
            v.errors,
            v.warnings,
            v.infos,
            v.template,
            v.template_message,
            v.updated
           FROM catalog.variants v
          WHERE ((v.tenant = c.tenant) AND (v.stream = c.stream))) s ON (true))
  WHERE ((NOT c.removed) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = c.tenant)));

ALTER TABLE catalog_api.catalog_status OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.catalog_status IS 'state of each live catalog''s source, one row per variant';

CREATE VIEW catalog_api.catalogs WITH (security_barrier='true') AS
 SELECT c.tenant,
    c.subject AS name,
    c.stream,
    c.priority,
    c.visibility_cluster,
    c.visibility_namespace,
    COALESCE(v.revision, c.revision) AS revision,
    COALESCE(v.state, c.state) AS state,
    COALESCE(v.reason, c.reason) AS reason,
    COALESCE(v.message, c.message) AS message,
    COALESCE(v.document, c.document) AS document,
    COALESCE(v.updated, c.updated) AS updated,
    c.disabled,
    c.templated,
    c.spec
   FROM (catalog.catalogs c
     LEFT JOIN LATERAL ( SELECT x.tenant,
            x.stream,
            x.variant,
            x.wanted,
            x.looked,
            x.fingerprint,
            x.revision,
            x.state,
            x.reason,
            x.message,
            x.document,
            x.failed_input,
            x.reference,
            x.resolved,
            x.connection,
            x.observed,
            x.connected,
            x.polled,
            x.next_look,
            x.error,
            x.error_reason,
            x.quarantined,
            x.errors,
            x.warnings,
            x.infos,
            x.template,
            x.template_message,
            x.updated
           FROM catalog.variants x
          WHERE (c.templated AND (x.tenant = c.tenant) AND (x.stream = c.stream))
          ORDER BY (x.revision <> ''::text) DESC, (string_to_array(x.variant, '.'::text))::integer[] DESC
         LIMIT 1) v ON (true))
  WHERE ((NOT c.removed) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = c.tenant)));

ALTER TABLE catalog_api.catalogs OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.catalogs IS 'live catalogs: what is served and the state of the last look';

CREATE VIEW catalog_api.contents WITH (security_barrier='true') AS
 SELECT c.tenant,
    c.digest,
    c.size,
    c.pack,
    c.recipe,
    ARRAY( SELECT p.data
           FROM (unnest(c.packs) WITH ORDINALITY u(id, n)
             JOIN catalog.packs p ON (((p.tenant = c.tenant) AND (p.id = u.id))))
          ORDER BY u.n) AS packs
   FROM catalog.contents c
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = c.tenant));

ALTER TABLE catalog_api.contents OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.contents IS 'canonical bundles: a recipe with its packs, or zstd (libs/content.Stored)';

CREATE VIEW catalog_api.documents WITH (security_barrier='true') AS
 SELECT documents.tenant,
    documents.digest,
    documents.body
   FROM catalog.documents
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = documents.tenant));

ALTER TABLE catalog_api.documents OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.documents IS 'blobs of unknown schemas by digest';

CREATE VIEW catalog_api.findings WITH (security_barrier='true') AS
 SELECT findings.tenant,
    findings.document,
    findings.catalog,
    findings.findings
   FROM catalog.findings
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = findings.tenant));

ALTER TABLE catalog_api.findings OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.findings IS 'what was wrong at a look, by digest';

CREATE VIEW catalog_api.package_cards WITH (security_barrier='true') AS
 SELECT search.tenant,
    search.digest,
    search.package,
    search.card
   FROM catalog.search
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = search.tenant));

ALTER TABLE catalog_api.package_cards OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.package_cards IS 'tiles and facets of packages, by digest of the package document';

CREATE VIEW catalog_api.packages WITH (security_barrier='true') AS
 SELECT c.tenant,
    c.digest,
    c.package,
    c.document,
    c.recipe,
    ARRAY( SELECT p.data
           FROM (unnest(c.packs) WITH ORDINALITY u(id, n)
             JOIN catalog.packs p ON (((p.tenant = c.tenant) AND (p.id = u.id))))
          ORDER BY u.n) AS packs
   FROM catalog.packages c
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = c.tenant));

ALTER TABLE catalog_api.packages OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.packages IS 'canonical JSON of packages: a recipe with its packs, or zstd (libs/content.Stored)';

CREATE VIEW catalog_api.revision_blobs WITH (security_barrier='true') AS
 SELECT revision_blobs.tenant,
    revision_blobs.revision,
    revision_blobs.package,
    revision_blobs.schema,
    revision_blobs.name,
    revision_blobs.digest
   FROM catalog.revision_blobs
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = revision_blobs.tenant));

ALTER TABLE catalog_api.revision_blobs OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.revision_blobs IS 'blobs of unknown schemas of a revision';

CREATE VIEW catalog_api.revision_packages WITH (security_barrier='true') AS
 SELECT revision_packages.tenant,
    revision_packages.revision,
    revision_packages.package,
    revision_packages.digest
   FROM catalog.revision_packages
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = revision_packages.tenant));

ALTER TABLE catalog_api.revision_packages OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.revision_packages IS 'package documents of a revision';

CREATE VIEW catalog_api.revisions WITH (security_barrier='true') AS
 SELECT revisions.tenant,
    revisions.catalog,
    revisions.version,
    revisions.revision,
    revisions.previous,
    revisions.packages,
    revisions.bundles,
    revisions.created,
    revisions.variant
   FROM catalog.revisions
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = revisions.tenant));

ALTER TABLE catalog_api.revisions OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.revisions IS 'revisions that a catalog (its stream) has served; version is that of the event';

CREATE VIEW catalog_api.served WITH (security_barrier='true') AS
 SELECT c.tenant,
    c.subject AS name,
    k.name AS cluster,
    COALESCE(NULLIF(v.revision, ''::text), c.revision) AS revision
   FROM ((catalog.catalogs c
     JOIN catalog.clusters k ON ((k.tenant = c.tenant)))
     LEFT JOIN catalog.variants v ON ((c.templated AND (v.tenant = c.tenant) AND (v.stream = c.stream) AND (v.variant = k.minor) AND (k.minor <> ''::text))))
  WHERE ((NOT c.removed) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = c.tenant)));

ALTER TABLE catalog_api.served OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.served IS 'the revision of each live catalog that a cluster is served: that of its Kubernetes minor version, else the fallback';

CREATE VIEW catalog_api.signed_images WITH (security_barrier='true') AS
 SELECT signed_images.tenant,
    signed_images.catalog,
    signed_images.image,
    signed_images.content,
    signed_images.evidence
   FROM catalog.signed_images
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = signed_images.tenant));

ALTER TABLE catalog_api.signed_images OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.signed_images IS 'what signatures of bundle images are checked again by; it proves itself';

CREATE VIEW catalog_api.upgrades WITH (security_barrier='true') AS
 SELECT upgrades.tenant,
    upgrades.from_content,
    upgrades.to_content,
    upgrades.semantics,
    upgrades.breaking,
    upgrades.gained,
    upgrades.difference
   FROM catalog.upgrades
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = upgrades.tenant));

ALTER TABLE catalog_api.upgrades OWNER TO chandler_owner;

COMMENT ON VIEW catalog_api.upgrades IS 'what differs between two bundles: zstd of JSON';

CREATE TABLE eventlog.appended (
    id bigint NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    stream_key uuid NOT NULL,
    incarnation integer NOT NULL,
    version bigint NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    event_id uuid NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', vacuum_truncate='false');

ALTER TABLE ONLY eventlog.appended FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.appended OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.appended IS 'committed events that have no position yet';

ALTER TABLE eventlog.appended ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME eventlog.appended_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE eventlog.coming_types (
    type text NOT NULL,
    kind text NOT NULL,
    writer text NOT NULL,
    closes boolean NOT NULL,
    announced timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE eventlog.coming_types OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.coming_types IS 'event types that nobody may write yet, because a live reader does not know them';

CREATE TABLE eventlog.consumers (
    consumer text NOT NULL,
    tenant text NOT NULL
);

ALTER TABLE ONLY eventlog.consumers FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.consumers OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.consumers IS 'which consumers have a checkpoint';

CREATE TABLE eventlog.epochs (
    epoch bigint NOT NULL,
    first_position bigint NOT NULL,
    raised timestamp with time zone NOT NULL,
    source text NOT NULL,
    seen_epoch bigint,
    seen_position bigint,
    role text DEFAULT SESSION_USER NOT NULL
);

ALTER TABLE eventlog.epochs OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.epochs IS 'each epoch, the first position in it and who had seen more than the record held';

CREATE TABLE eventlog.event_types (
    type text NOT NULL,
    kind text NOT NULL,
    writer text NOT NULL,
    closes boolean NOT NULL,
    role text GENERATED ALWAYS AS (('chandler_'::text || replace(writer, '-'::text, '_'::text))) STORED NOT NULL
);

ALTER TABLE eventlog.event_types OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.event_types IS 'every event type, the kind of stream it stands in, the one service that may write it, whether it ends its stream';

CREATE TABLE eventlog.events (
    "position" bigint NOT NULL,
    epoch bigint NOT NULL,
    recorded timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    stream_key uuid NOT NULL,
    incarnation integer NOT NULL,
    version bigint NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    event_id uuid NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL
)
PARTITION BY RANGE ("position");

ALTER TABLE ONLY eventlog.events FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.events OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.events IS 'the record: dense positions, never changed, never deleted';

CREATE TABLE eventlog.events_000000000001 (
    "position" bigint NOT NULL,
    epoch bigint NOT NULL,
    recorded timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    stream_key uuid NOT NULL,
    incarnation integer NOT NULL,
    version bigint NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    event_id uuid NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL
);

ALTER TABLE eventlog.events_000000000001 OWNER TO chandler_owner;

CREATE TABLE eventlog.events_000001000001 (
    "position" bigint NOT NULL,
    epoch bigint NOT NULL,
    recorded timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    stream_key uuid NOT NULL,
    incarnation integer NOT NULL,
    version bigint NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    event_id uuid NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL
);

ALTER TABLE eventlog.events_000001000001 OWNER TO chandler_owner;

CREATE TABLE eventlog.incidents (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text DEFAULT SESSION_USER NOT NULL,
    kind text NOT NULL,
    detail text NOT NULL,
    CONSTRAINT incidents_kind_check CHECK ((kind = ANY (ARRAY['ClockJumped'::text, 'TimelineChanged'::text, 'SystemChanged'::text])))
);

ALTER TABLE eventlog.incidents OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.incidents IS 'jumps of the clock, fail-overs and restores that the record has noticed';

ALTER TABLE eventlog.incidents ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME eventlog.incidents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE eventlog.installation (
    one boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    hint_key bytea DEFAULT sha256(((uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) || uuid_send(gen_random_uuid()))) NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT installation_one_check CHECK (one)
);

ALTER TABLE eventlog.installation OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.installation IS 'who this installation is; hint_key authenticates hints';

CREATE TABLE eventlog.migrations_applied (
    version bigint NOT NULL,
    file text NOT NULL,
    digest text NOT NULL,
    applied timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE eventlog.migrations_applied OWNER TO chandler_owner;

CREATE TABLE eventlog.models (
    consumer text NOT NULL,
    model text NOT NULL,
    place text NOT NULL,
    made timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    used timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE eventlog.models OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.models IS 'versions of read models that have tables; used is when a process that keeps one was last seen';

CREATE TABLE eventlog.needs (
    what text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE eventlog.needs OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.needs IS 'what every process that reads the log has to know, and since when';

CREATE TABLE eventlog.parked (
    tenant text NOT NULL,
    consumer text NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    type text NOT NULL,
    reason text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    next_retry timestamp with time zone DEFAULT now() NOT NULL,
    body bytea
);

ALTER TABLE ONLY eventlog.parked FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.parked OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.parked IS 'events that a consumer could not take; retried, and skipped only by a person who gives a reason';

COMMENT ON COLUMN eventlog.parked.body IS 'the bytes of an event that could not be taken; null for one that waits behind it';

CREATE TABLE eventlog.partitions (
    first_position bigint NOT NULL,
    last_position bigint NOT NULL
);

ALTER TABLE eventlog.partitions OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.partitions IS 'the positions of each partition of the log';

CREATE TABLE eventlog.readers (
    instance text NOT NULL,
    service text NOT NULL,
    version text NOT NULL,
    types text[] NOT NULL,
    started timestamp with time zone NOT NULL,
    seen timestamp with time zone NOT NULL,
    role text DEFAULT ''::text NOT NULL
);

ALTER TABLE eventlog.readers OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.readers IS 'which event types each process that reads the log knows; it is alive for a minute after seen';

CREATE TABLE eventlog.rebuilds (
    consumer text NOT NULL,
    asked timestamp with time zone DEFAULT now() NOT NULL,
    role text DEFAULT SESSION_USER NOT NULL,
    began timestamp with time zone,
    "position" bigint,
    failed text
);

ALTER TABLE eventlog.rebuilds OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.rebuilds IS 'rebuilds that are asked for and not done yet';

CREATE TABLE eventlog.schema_info (
    schema text NOT NULL,
    version bigint NOT NULL,
    oldest_binary text NOT NULL,
    migrated timestamp with time zone NOT NULL,
    compatible_from bigint
);

ALTER TABLE eventlog.schema_info OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.schema_info IS 'version of each schema, and the oldest binary that it serves';

COMMENT ON COLUMN eventlog.schema_info.compatible_from IS 'the oldest version of the schema whose binaries work with this one';

CREATE TABLE eventlog.schema_migrations (
    version bigint NOT NULL,
    dirty boolean NOT NULL
);

ALTER TABLE eventlog.schema_migrations OWNER TO chandler_owner;

CREATE TABLE eventlog.server (
    one boolean DEFAULT true NOT NULL,
    system bigint NOT NULL,
    timeline integer NOT NULL,
    CONSTRAINT server_one_check CHECK (one)
);

ALTER TABLE eventlog.server OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.server IS 'system identifier and timeline of the server that the record stood on';

CREATE TABLE eventlog.service_keys (
    public_key bytea NOT NULL,
    service text NOT NULL,
    registered timestamp with time zone NOT NULL,
    seen timestamp with time zone NOT NULL,
    CONSTRAINT service_keys_public_key_check CHECK ((length(public_key) = 32))
);

ALTER TABLE eventlog.service_keys OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.service_keys IS 'public keys of the processes of each service; one is believed for an hour after seen';

CREATE TABLE eventlog.skipped (
    tenant text NOT NULL,
    consumer text NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    type text NOT NULL,
    body bytea,
    failure text NOT NULL,
    attempts integer NOT NULL,
    parked timestamp with time zone NOT NULL,
    skipped timestamp with time zone NOT NULL,
    skipped_by text NOT NULL,
    reason text NOT NULL,
    CONSTRAINT skipped_reason_check CHECK ((reason <> ''::text))
);

ALTER TABLE ONLY eventlog.skipped FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.skipped OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.skipped IS 'events that a person has had a consumer go on without: who, when and why';

CREATE TABLE eventlog.stops (
    epoch bigint NOT NULL,
    tenant text DEFAULT '*'::text NOT NULL,
    reason text NOT NULL,
    source text NOT NULL,
    since timestamp with time zone NOT NULL,
    seen_epoch bigint NOT NULL,
    seen_position bigint NOT NULL,
    head_epoch bigint NOT NULL,
    head_position bigint NOT NULL,
    resumed timestamp with time zone,
    resumed_by text
);

ALTER TABLE eventlog.stops OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.stops IS 'lost commits were noticed: no effect in any cluster until a person resumes';

CREATE TABLE eventlog.stream_parts (
    tenant text NOT NULL,
    stream_key uuid NOT NULL,
    incarnation integer NOT NULL,
    first_position bigint NOT NULL,
    last_position bigint NOT NULL,
    first_version bigint NOT NULL
);

ALTER TABLE ONLY eventlog.stream_parts FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.stream_parts OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.stream_parts IS 'the partitions of the log that hold events of a stream';

CREATE TABLE eventlog.streams (
    tenant text NOT NULL,
    kind text NOT NULL,
    key uuid NOT NULL,
    incarnation integer NOT NULL,
    subject text NOT NULL,
    version bigint NOT NULL,
    closed boolean NOT NULL
)
WITH (fillfactor='70');

ALTER TABLE ONLY eventlog.streams FORCE ROW LEVEL SECURITY;

ALTER TABLE eventlog.streams OWNER TO chandler_owner;

COMMENT ON TABLE eventlog.streams IS 'where each stream stands; append compares and sets version';

CREATE TABLE gateway.access_clusters (
    tenant text NOT NULL,
    name text NOT NULL,
    labels jsonb NOT NULL
);

ALTER TABLE ONLY gateway.access_clusters FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.access_clusters OWNER TO chandler_owner;

COMMENT ON TABLE gateway.access_clusters IS 'read model: labels of clusters, as scopes of bindings choose by them';

CREATE TABLE gateway.access_log (
    tenant text NOT NULL,
    at timestamp with time zone NOT NULL,
    id uuid NOT NULL,
    actor text NOT NULL,
    token text NOT NULL,
    role text NOT NULL,
    address text NOT NULL,
    method text NOT NULL,
    route text NOT NULL,
    path text NOT NULL,
    status integer NOT NULL,
    took_us bigint NOT NULL,
    request text NOT NULL,
    count bigint NOT NULL,
    via text DEFAULT ''::text NOT NULL,
    CONSTRAINT access_log_count_check CHECK ((count > 0))
)
PARTITION BY RANGE (at);

ALTER TABLE ONLY gateway.access_log FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.access_log OWNER TO chandler_owner;

COMMENT ON TABLE gateway.access_log IS 'requests to the API; refused ones from one address are counted together; a row of status 0 counts those that were not kept';

CREATE TABLE gateway.access_versions (
    tenant text NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL
);

ALTER TABLE ONLY gateway.access_versions FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.access_versions OWNER TO chandler_owner;

COMMENT ON TABLE gateway.access_versions IS 'read model: position of the last event that changed who may do what; gateways keep what they have read until it moves';

CREATE TABLE gateway.approval_policies (
    tenant text NOT NULL,
    name text NOT NULL,
    spec jsonb NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    annotations text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.approval_policies FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.approval_policies OWNER TO chandler_owner;

COMMENT ON TABLE gateway.approval_policies IS 'read model: approval policies';

CREATE TABLE gateway.bodies (
    tenant text NOT NULL,
    commitment text NOT NULL,
    kind text NOT NULL,
    salt bytea NOT NULL,
    body bytea NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL,
    key_id text DEFAULT ''::text NOT NULL,
    CONSTRAINT bodies_kind_check CHECK ((kind = ANY (ARRAY['subscription-config'::text, 'catalog-source'::text, 'plan-reason'::text, 'annotations'::text])))
);

ALTER TABLE ONLY gateway.bodies FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.bodies OWNER TO chandler_owner;

COMMENT ON TABLE gateway.bodies IS 'erasable bodies that events hold commitments to';

CREATE TABLE gateway.break_glass (
    tenant text NOT NULL,
    id text NOT NULL,
    hash bytea,
    created timestamp with time zone NOT NULL,
    opened timestamp with time zone,
    reason text,
    ends timestamp with time zone,
    CONSTRAINT break_glass_check CHECK (((ends IS NULL) = (opened IS NULL))),
    CONSTRAINT break_glass_hash_check CHECK ((length(hash) = 32))
);

ALTER TABLE ONLY gateway.break_glass FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.break_glass OWNER TO chandler_owner;

COMMENT ON TABLE gateway.break_glass IS 'tokens that work while nobody can sign in, one a tenant, and when each was used last';

CREATE TABLE gateway.catalog_hooks (
    tenant text NOT NULL,
    subject text NOT NULL,
    nonce bytea NOT NULL,
    created timestamp with time zone NOT NULL,
    last timestamp with time zone,
    due timestamp with time zone,
    key_id text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.catalog_hooks FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.catalog_hooks OWNER TO chandler_owner;

COMMENT ON TABLE gateway.catalog_hooks IS 'hooks by which registries and repositories ask for a look at a source';

CREATE TABLE gateway.catalog_secrets (
    tenant text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    commitment text NOT NULL,
    salt bytea NOT NULL,
    ciphertext bytea NOT NULL,
    updated timestamp with time zone NOT NULL,
    key_id text DEFAULT ''::text NOT NULL,
    CONSTRAINT catalog_secrets_kind_check CHECK ((kind = ANY (ARRAY['dockerconfigjson'::text, 'basic'::text, 'token'::text, 'ssh'::text, 'ca'::text, 'kubeconfig'::text])))
);

ALTER TABLE ONLY gateway.catalog_secrets FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.catalog_secrets OWNER TO chandler_owner;

COMMENT ON TABLE gateway.catalog_secrets IS 'credentials of catalog sources, encrypted to the catalog-indexer';

CREATE TABLE gateway.catalogs (
    tenant text NOT NULL,
    subject text NOT NULL,
    name text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    source_type text NOT NULL,
    spec text NOT NULL,
    priority integer NOT NULL,
    visibility_cluster text NOT NULL,
    visibility_namespace text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    rule text NOT NULL,
    findings integer NOT NULL,
    document text NOT NULL,
    revision text NOT NULL,
    packages integer NOT NULL,
    bundles integer NOT NULL,
    event_id text NOT NULL,
    added timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    configured boolean DEFAULT false NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    annotations text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.catalogs FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.catalogs OWNER TO chandler_owner;

COMMENT ON TABLE gateway.catalogs IS 'read model: catalogs and the revision in service';

COMMENT ON COLUMN gateway.catalogs.configured IS 'added by the configuration of the installation, not by a person';

CREATE TABLE gateway.clusters (
    tenant text NOT NULL,
    name text NOT NULL,
    labels jsonb NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    kubernetes_version text NOT NULL,
    holder_epoch bigint NOT NULL,
    registered timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    token_auth text DEFAULT ''::text NOT NULL,
    waived text[] DEFAULT '{}'::text[] NOT NULL,
    credential_ends timestamp with time zone,
    cordoned timestamp with time zone,
    taints jsonb DEFAULT '{}'::jsonb NOT NULL,
    access text DEFAULT 'Hosted'::text NOT NULL,
    connection text DEFAULT ''::text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    facts jsonb
);

ALTER TABLE ONLY gateway.clusters FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.clusters OWNER TO chandler_owner;

COMMENT ON TABLE gateway.clusters IS 'read model: registered clusters';

CREATE TABLE gateway.credentials (
    tenant text NOT NULL,
    cluster_key uuid NOT NULL,
    name text NOT NULL,
    commitment text NOT NULL,
    salt bytea NOT NULL,
    ciphertext bytea NOT NULL,
    updated timestamp with time zone DEFAULT now() NOT NULL,
    key_id text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.credentials FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.credentials OWNER TO chandler_owner;

COMMENT ON TABLE gateway.credentials IS 'kubeconfigs, encrypted to the installer; erased with the cluster';

CREATE TABLE gateway.erased_bodies (
    tenant text NOT NULL,
    commitment text NOT NULL,
    kind text NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL
);

ALTER TABLE ONLY gateway.erased_bodies FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.erased_bodies OWNER TO chandler_owner;

COMMENT ON TABLE gateway.erased_bodies IS 'bodies that a person erased; events keep the commitments';

CREATE TABLE gateway.fleet_subscriptions (
    tenant text NOT NULL,
    name text NOT NULL,
    spec jsonb NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL
);

ALTER TABLE ONLY gateway.fleet_subscriptions FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.fleet_subscriptions OWNER TO chandler_owner;

COMMENT ON TABLE gateway.fleet_subscriptions IS 'read model: fleet subscriptions';

CREATE TABLE gateway.idempotency_keys (
    tenant text NOT NULL,
    actor text NOT NULL,
    key text NOT NULL,
    request bytea NOT NULL,
    answer bytea NOT NULL,
    expires timestamp with time zone NOT NULL,
    CONSTRAINT idempotency_keys_key_check CHECK ((length(key) <= 255)),
    CONSTRAINT idempotency_keys_request_check CHECK ((length(request) = 32))
);

ALTER TABLE ONLY gateway.idempotency_keys FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.idempotency_keys OWNER TO chandler_owner;

COMMENT ON TABLE gateway.idempotency_keys IS 'answers to requests with an Idempotency-Key, until they expire';

CREATE TABLE gateway.identities (
    tenant text NOT NULL,
    id text NOT NULL,
    subject bytea NOT NULL,
    provider text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    actor text NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    created timestamp with time zone NOT NULL,
    seen timestamp with time zone NOT NULL,
    kind text DEFAULT 'User'::text NOT NULL,
    CONSTRAINT identities_kind_check CHECK ((kind = ANY (ARRAY['User'::text, 'ServiceAccount'::text]))),
    CONSTRAINT identities_subject_check CHECK ((length(subject) = 32))
);

ALTER TABLE ONLY gateway.identities FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.identities OWNER TO chandler_owner;

COMMENT ON TABLE gateway.identities IS 'who signs in at a provider, and machines that show certificates, with the actor of each; what acts in events is the actor';

CREATE TABLE gateway.installplans (
    tenant text NOT NULL,
    id text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    approval text NOT NULL,
    phase text NOT NULL,
    begun boolean NOT NULL,
    bundles jsonb NOT NULL,
    blocked_reason text NOT NULL,
    approval_expires timestamp with time zone,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    ended timestamp with time zone,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    annotations text DEFAULT ''::text NOT NULL,
    state jsonb NOT NULL
);

ALTER TABLE ONLY gateway.installplans FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.installplans OWNER TO chandler_owner;

COMMENT ON TABLE gateway.installplans IS 'read model: install plans';

CREATE TABLE gateway.migrations_applied (
    version bigint NOT NULL,
    file text NOT NULL,
    digest text NOT NULL,
    applied timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE gateway.migrations_applied OWNER TO chandler_owner;

CREATE TABLE gateway.operatorgroups (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    spec jsonb NOT NULL,
    event_id text NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    targets jsonb DEFAULT '[]'::jsonb NOT NULL,
    provided jsonb DEFAULT '[]'::jsonb NOT NULL,
    conditions jsonb DEFAULT '[]'::jsonb NOT NULL,
    observed_event text DEFAULT ''::text NOT NULL,
    observed_since timestamp with time zone,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    annotations text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.operatorgroups FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.operatorgroups OWNER TO chandler_owner;

COMMENT ON TABLE gateway.operatorgroups IS 'read model: operator groups';

CREATE TABLE gateway.operatorhub (
    tenant text NOT NULL,
    disable_all boolean NOT NULL,
    sources jsonb NOT NULL,
    updated timestamp with time zone NOT NULL
);

ALTER TABLE ONLY gateway.operatorhub FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.operatorhub OWNER TO chandler_owner;

COMMENT ON TABLE gateway.operatorhub IS 'which default catalogs are switched off';

CREATE TABLE gateway.operators (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    package text NOT NULL,
    csv_version text NOT NULL,
    phase text NOT NULL,
    reason text NOT NULL,
    content text NOT NULL,
    plan text NOT NULL,
    flapping boolean NOT NULL,
    history jsonb NOT NULL,
    installed timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    removal jsonb,
    drifted integer DEFAULT 0 NOT NULL,
    drift_policy text DEFAULT ''::text NOT NULL,
    drift_since timestamp with time zone,
    overrides jsonb
);

ALTER TABLE ONLY gateway.operators FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.operators OWNER TO chandler_owner;

COMMENT ON TABLE gateway.operators IS 'read model: installed operators, one for each CSV';

CREATE TABLE gateway.previews (
    tenant text NOT NULL,
    id uuid NOT NULL,
    actor text NOT NULL,
    asked timestamp with time zone NOT NULL,
    expires timestamp with time zone NOT NULL,
    request bytea NOT NULL,
    validate text NOT NULL,
    writes jsonb NOT NULL,
    not_applicable text NOT NULL,
    bodies text[] NOT NULL,
    applied timestamp with time zone,
    applied_by text DEFAULT ''::text NOT NULL,
    done jsonb DEFAULT '[]'::jsonb NOT NULL,
    key_id text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.previews FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.previews OWNER TO chandler_owner;

COMMENT ON TABLE gateway.previews IS 'previewed changes until they expire';

CREATE TABLE gateway.quotas (
    tenant text NOT NULL,
    subscriptions bigint,
    catalogs bigint,
    requests bigint,
    streams bigint,
    updated timestamp with time zone NOT NULL
);

ALTER TABLE ONLY gateway.quotas FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.quotas OWNER TO chandler_owner;

COMMENT ON TABLE gateway.quotas IS 'what each tenant may have and ask for at most; no row: no bounds';

CREATE TABLE gateway.read_audit (
    tenant text NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    about text NOT NULL,
    preview uuid,
    via text DEFAULT ''::text NOT NULL,
    CONSTRAINT read_audit_action_check CHECK ((action ~ '^[a-z]+([.][a-z]+)*$'::text))
);

ALTER TABLE ONLY gateway.read_audit FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.read_audit OWNER TO chandler_owner;

COMMENT ON TABLE gateway.read_audit IS 'who asked what and when, of what leaves no event';

CREATE TABLE gateway.role_bindings (
    tenant text NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    subjects jsonb NOT NULL,
    scope jsonb NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY gateway.role_bindings FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.role_bindings OWNER TO chandler_owner;

COMMENT ON TABLE gateway.role_bindings IS 'read model: who has which role, and where';

CREATE TABLE gateway.roles (
    tenant text NOT NULL,
    name text NOT NULL,
    rules jsonb NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY gateway.roles FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.roles OWNER TO chandler_owner;

COMMENT ON TABLE gateway.roles IS 'read model: roles that people defined; those that are built in are in the code';

CREATE TABLE gateway.rollout_clusters (
    tenant text NOT NULL,
    fleet text NOT NULL,
    number integer NOT NULL,
    cluster text NOT NULL,
    wave integer NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    directive text DEFAULT ''::text NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    since timestamp with time zone NOT NULL,
    forgiven boolean DEFAULT false NOT NULL,
    words text DEFAULT ''::text NOT NULL,
    skipped_by text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.rollout_clusters FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.rollout_clusters OWNER TO chandler_owner;

COMMENT ON TABLE gateway.rollout_clusters IS 'read model: where each cluster of a rollout stands';

CREATE TABLE gateway.rollouts (
    tenant text NOT NULL,
    fleet text NOT NULL,
    number integer NOT NULL,
    stream_version bigint NOT NULL,
    phase text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    wave integer NOT NULL,
    passed integer NOT NULL,
    promoted boolean DEFAULT false NOT NULL,
    started jsonb NOT NULL,
    started_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    gates jsonb DEFAULT '{}'::jsonb NOT NULL,
    rollback_to integer DEFAULT 0 NOT NULL,
    rollback_by text DEFAULT ''::text NOT NULL,
    rollback_words text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY gateway.rollouts FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.rollouts OWNER TO chandler_owner;

COMMENT ON TABLE gateway.rollouts IS 'read model: rollouts, what each began with and where it stands';

CREATE TABLE gateway.schema_migrations (
    version bigint NOT NULL,
    dirty boolean NOT NULL
);

ALTER TABLE gateway.schema_migrations OWNER TO chandler_owner;

CREATE TABLE gateway.sealed_kinds (
    kind text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE gateway.sealed_kinds OWNER TO chandler_owner;

COMMENT ON TABLE gateway.sealed_kinds IS 'kinds of bodies of which none is in the clear any more';

CREATE TABLE gateway.stream_tickets (
    tenant text NOT NULL,
    hash bytea NOT NULL,
    actor text NOT NULL,
    url text NOT NULL,
    caller jsonb NOT NULL,
    expires timestamp with time zone NOT NULL,
    CONSTRAINT stream_tickets_hash_check CHECK ((length(hash) = 32))
);

ALTER TABLE ONLY gateway.stream_tickets FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.stream_tickets OWNER TO chandler_owner;

COMMENT ON TABLE gateway.stream_tickets IS 'tickets that open one stream, once, within seconds';

CREATE TABLE gateway.subscription_catalogs (
    tenant text NOT NULL,
    subject text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    event_id text NOT NULL,
    since timestamp with time zone NOT NULL,
    variant text DEFAULT ''::text NOT NULL,
    revision_event text DEFAULT ''::text NOT NULL,
    revision_since timestamp with time zone
);

ALTER TABLE ONLY gateway.subscription_catalogs FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscription_catalogs OWNER TO chandler_owner;

COMMENT ON TABLE gateway.subscription_catalogs IS 'read model: health of catalogs, for the conditions of subscriptions';

CREATE TABLE gateway.subscription_csvs (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    phase text NOT NULL
);

ALTER TABLE ONLY gateway.subscription_csvs FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscription_csvs OWNER TO chandler_owner;

COMMENT ON TABLE gateway.subscription_csvs IS 'read model: CSVs that exist, for the states of subscriptions';

CREATE TABLE gateway.subscription_deprecations (
    tenant text NOT NULL,
    subject text NOT NULL,
    variant text NOT NULL,
    package text NOT NULL,
    element text NOT NULL,
    event_id text NOT NULL,
    since timestamp with time zone NOT NULL
);

ALTER TABLE ONLY gateway.subscription_deprecations FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscription_deprecations OWNER TO chandler_owner;

COMMENT ON TABLE gateway.subscription_deprecations IS 'read model: since which event something is deprecated, for the conditions of subscriptions';

CREATE TABLE gateway.subscriptions (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    package text NOT NULL,
    channel text NOT NULL,
    catalog text NOT NULL,
    catalog_namespace text NOT NULL,
    starting_csv text NOT NULL,
    approval text NOT NULL,
    config text NOT NULL,
    generated boolean NOT NULL,
    current_csv text NOT NULL,
    installed_csv text NOT NULL,
    plan_id text NOT NULL,
    plan_name text NOT NULL,
    plan_generation bigint NOT NULL,
    plan_phase text NOT NULL,
    plan_event text NOT NULL,
    plan_since timestamp with time zone,
    failed_reason text NOT NULL,
    failed_document text NOT NULL,
    failed_event text NOT NULL,
    failed_since timestamp with time zone,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    spec_event text DEFAULT ''::text NOT NULL,
    spec_since timestamp with time zone,
    installed_event text DEFAULT ''::text NOT NULL,
    installed_since timestamp with time zone,
    missing_event text DEFAULT ''::text NOT NULL,
    missing_since timestamp with time zone,
    rollback_from text DEFAULT ''::text NOT NULL,
    rollback_to text DEFAULT ''::text NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    annotations text DEFAULT ''::text NOT NULL,
    plan_state jsonb,
    owner text DEFAULT ''::text NOT NULL,
    target jsonb
);

ALTER TABLE ONLY gateway.subscriptions FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscriptions OWNER TO chandler_owner;

COMMENT ON TABLE gateway.subscriptions IS 'read model: subscriptions and what became of them';

COMMENT ON COLUMN gateway.subscriptions.rollback_from IS 'CSV that is left';

COMMENT ON COLUMN gateway.subscriptions.rollback_to IS 'CSV that is gone back to';

CREATE TABLE gateway.tokens (
    tenant text NOT NULL,
    id text NOT NULL,
    hash bytea NOT NULL,
    role text NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL,
    expires timestamp with time zone,
    name text DEFAULT ''::text NOT NULL,
    actor text,
    kind text DEFAULT 'User'::text NOT NULL,
    used timestamp with time zone,
    previous bytea,
    previous_ends timestamp with time zone,
    CONSTRAINT tokens_kind_check CHECK ((kind = ANY (ARRAY['User'::text, 'ServiceAccount'::text]))),
    CONSTRAINT tokens_previous_check CHECK (((previous IS NULL) = (previous_ends IS NULL))),
    CONSTRAINT tokens_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'viewer'::text, 'none'::text])))
);

ALTER TABLE ONLY gateway.tokens FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.tokens OWNER TO chandler_owner;

COMMENT ON TABLE gateway.tokens IS 'who may call the API; what acts in events is the actor, where there is none the id';

CREATE TABLE gateway.webhook_deliveries (
    tenant text NOT NULL,
    webhook text NOT NULL,
    id text NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    state text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    first timestamp with time zone,
    next timestamp with time zone,
    ended timestamp with time zone,
    status integer DEFAULT 0 NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    took interval DEFAULT '00:00:00'::interval NOT NULL,
    created timestamp with time zone NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT webhook_deliveries_state_check CHECK ((state = ANY (ARRAY['Pending'::text, 'Delivered'::text, 'Failed'::text, 'Withdrawn'::text])))
);

ALTER TABLE ONLY gateway.webhook_deliveries FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.webhook_deliveries OWNER TO chandler_owner;

COMMENT ON TABLE gateway.webhook_deliveries IS 'what webhooks send and have sent';

CREATE TABLE gateway.webhook_tests (
    tenant text NOT NULL,
    name text NOT NULL,
    until timestamp with time zone NOT NULL
);

ALTER TABLE ONLY gateway.webhook_tests FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.webhook_tests OWNER TO chandler_owner;

COMMENT ON TABLE gateway.webhook_tests IS 'tests of webhooks that are under way, or were a moment ago';

CREATE TABLE gateway.webhooks (
    tenant text NOT NULL,
    name text NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    spec jsonb NOT NULL,
    owner jsonb NOT NULL,
    disabled text DEFAULT ''::text NOT NULL,
    active boolean NOT NULL,
    host text NOT NULL,
    key_id text NOT NULL,
    sealed bytea NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    lease_owner text DEFAULT ''::text NOT NULL,
    lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    last_success timestamp with time zone,
    claim bigint DEFAULT 0 NOT NULL,
    test_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    unsent_since timestamp with time zone
);

ALTER TABLE ONLY gateway.webhooks FORCE ROW LEVEL SECURITY;

ALTER TABLE gateway.webhooks OWNER TO chandler_owner;

COMMENT ON TABLE gateway.webhooks IS 'webhooks, and which process sends their events';

CREATE VIEW gateway_api.bodies WITH (security_barrier='true') AS
 SELECT b.tenant,
    b.commitment,
    b.kind,
    b.body,
    b.key_id,
    b.salt
   FROM gateway.bodies b
  WHERE (((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = b.tenant)) AND
        CASE b.kind
            WHEN 'subscription-config'::text THEN (pg_has_role(SESSION_USER, 'chandler_gateway'::name, 'MEMBER'::text) OR pg_has_role(SESSION_USER, 'chandler_resolver'::name, 'MEMBER'::text) OR pg_has_role(SESSION_USER, 'chandler_installer'::name, 'MEMBER'::text))
            WHEN 'catalog-source'::text THEN (pg_has_role(SESSION_USER, 'chandler_gateway'::name, 'MEMBER'::text) OR pg_has_role(SESSION_USER, 'chandler_catalog_indexer'::name, 'MEMBER'::text) OR pg_has_role(SESSION_USER, 'chandler_installer'::name, 'MEMBER'::text))
            WHEN 'annotations'::text THEN (pg_has_role(SESSION_USER, 'chandler_gateway'::name, 'MEMBER'::text) OR pg_has_role(SESSION_USER, 'chandler_installer'::name, 'MEMBER'::text))
            ELSE pg_has_role(SESSION_USER, 'chandler_gateway'::name, 'MEMBER'::text)
        END);

ALTER TABLE gateway_api.bodies OWNER TO chandler_owner;

COMMENT ON VIEW gateway_api.bodies IS 'bodies by commitment, for resolver, indexer and installer';

CREATE VIEW gateway_api.catalog_secrets WITH (security_barrier='true') AS
 SELECT catalog_secrets.tenant,
    catalog_secrets.name,
    catalog_secrets.kind,
    catalog_secrets.commitment,
    catalog_secrets.ciphertext,
    catalog_secrets.key_id
   FROM gateway.catalog_secrets
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = catalog_secrets.tenant));

ALTER TABLE gateway_api.catalog_secrets OWNER TO chandler_owner;

COMMENT ON VIEW gateway_api.catalog_secrets IS 'encrypted credentials of catalog sources, for the catalog-indexer';

CREATE VIEW gateway_api.cluster_credentials WITH (security_barrier='true') AS
 SELECT credentials.tenant,
    credentials.cluster_key,
    credentials.name,
    credentials.commitment,
    credentials.ciphertext,
    credentials.key_id
   FROM gateway.credentials
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = credentials.tenant));

ALTER TABLE gateway_api.cluster_credentials OWNER TO chandler_owner;

COMMENT ON VIEW gateway_api.cluster_credentials IS 'encrypted kubeconfigs, for the installer';

CREATE TABLE installer.agent_processes (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    key text NOT NULL,
    process uuid NOT NULL,
    first timestamp with time zone NOT NULL,
    last timestamp with time zone NOT NULL
);

ALTER TABLE ONLY installer.agent_processes FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.agent_processes OWNER TO chandler_owner;

COMMENT ON TABLE installer.agent_processes IS 'processes of agents, with when each was heard first and last';

CREATE TABLE installer.agents (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    cluster text NOT NULL,
    state jsonb NOT NULL,
    pushed timestamp with time zone
);

ALTER TABLE ONLY installer.agents FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.agents OWNER TO chandler_owner;

COMMENT ON TABLE installer.agents IS 'agents of clusters and who wants to become one, as the log tells them';

CREATE TABLE installer.approval_policies (
    tenant text NOT NULL,
    name text NOT NULL,
    spec jsonb NOT NULL
);

ALTER TABLE ONLY installer.approval_policies FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.approval_policies OWNER TO chandler_owner;

COMMENT ON TABLE installer.approval_policies IS 'live approval policies, as the log tells them';

CREATE TABLE installer.catalogs (
    tenant text NOT NULL,
    subject text NOT NULL,
    spec text NOT NULL,
    signatures text NOT NULL
);

ALTER TABLE ONLY installer.catalogs FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.catalogs OWNER TO chandler_owner;

COMMENT ON TABLE installer.catalogs IS 'catalogs, removed ones too: what plans from them must be signed with';

CREATE TABLE installer.clusters (
    tenant text NOT NULL,
    name text NOT NULL,
    cluster_id uuid NOT NULL,
    stream text NOT NULL,
    credential text NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    waived text[] DEFAULT '{}'::text[] NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE ONLY installer.clusters FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.clusters OWNER TO chandler_owner;

COMMENT ON TABLE installer.clusters IS 'registered clusters, and those removed whose subjects are still to be cleared';

CREATE TABLE installer.csv_lives (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    uid text NOT NULL,
    state jsonb NOT NULL,
    removed boolean NOT NULL
);

ALTER TABLE ONLY installer.csv_lives FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.csv_lives OWNER TO chandler_owner;

COMMENT ON TABLE installer.csv_lives IS 'how much of each CSV history is recorded';

CREATE TABLE installer.csvs (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    stream text NOT NULL,
    phase text NOT NULL,
    reason text NOT NULL,
    package text NOT NULL,
    version text NOT NULL,
    content text NOT NULL,
    plan text NOT NULL,
    overrides jsonb
);

ALTER TABLE ONLY installer.csvs FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.csvs OWNER TO chandler_owner;

COMMENT ON TABLE installer.csvs IS 'ClusterServiceVersions that are installed according to the log';

CREATE TABLE installer.dirty (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    lane smallint NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    owner text,
    until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    not_before timestamp with time zone DEFAULT now() NOT NULL,
    marked timestamp with time zone DEFAULT now() NOT NULL,
    cause text DEFAULT ''::text NOT NULL,
    traceparent text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY installer.dirty FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.dirty OWNER TO chandler_owner;

COMMENT ON TABLE installer.dirty IS 'scopes to be published, with their claims';

CREATE TABLE installer.drifts (
    tenant text NOT NULL,
    digest text NOT NULL,
    body bytea NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY installer.drifts FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.drifts OWNER TO chandler_owner;

COMMENT ON TABLE installer.drifts IS 'differences of managed objects, by digest';

CREATE TABLE installer.grants (
    tenant text NOT NULL,
    plan uuid NOT NULL,
    cluster_id uuid NOT NULL,
    until timestamp with time zone NOT NULL
);

ALTER TABLE ONLY installer.grants FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.grants OWNER TO chandler_owner;

COMMENT ON TABLE installer.grants IS 'until when plans that have not begun may begin';

CREATE TABLE installer.group_observations (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    stream text NOT NULL,
    state jsonb NOT NULL
);

ALTER TABLE ONLY installer.group_observations FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.group_observations OWNER TO chandler_owner;

COMMENT ON TABLE installer.group_observations IS 'what was recorded last of each operator group';

CREATE TABLE installer.holders (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    epoch bigint NOT NULL,
    heard timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    budget jsonb DEFAULT '{}'::jsonb NOT NULL,
    session uuid,
    recorder text DEFAULT ''::text NOT NULL,
    recorder_epoch bigint DEFAULT 0 NOT NULL,
    scopes_session uuid,
    scopes integer DEFAULT 0 NOT NULL,
    scopes_sum bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
    heartbeat integer DEFAULT 15 NOT NULL
);

ALTER TABLE ONLY installer.holders FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.holders OWNER TO chandler_owner;

COMMENT ON TABLE installer.holders IS 'who holds each cluster, as registered';

COMMENT ON COLUMN installer.holders.heartbeat IS 'seconds between two reports of the cluster in which nothing changes, as its holder says; two without one, and it counts as gone';

CREATE TABLE installer.holds (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    session uuid NOT NULL,
    epoch bigint NOT NULL,
    holder text NOT NULL,
    public_key bytea NOT NULL,
    sequence bigint DEFAULT 0 NOT NULL,
    registered timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY installer.holds FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.holds OWNER TO chandler_owner;

COMMENT ON TABLE installer.holds IS 'sessions of executors, with their keys';

CREATE TABLE installer.leftovers (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    csv text NOT NULL,
    package text NOT NULL,
    removal text NOT NULL,
    objects jsonb NOT NULL,
    removed timestamp with time zone NOT NULL,
    more integer DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY installer.leftovers FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.leftovers OWNER TO chandler_owner;

COMMENT ON TABLE installer.leftovers IS 'objects that stayed when operators were uninstalled';

CREATE TABLE installer.messages (
    tenant text NOT NULL,
    subject text NOT NULL,
    kind text NOT NULL,
    message text NOT NULL,
    updated timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY installer.messages FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.messages OWNER TO chandler_owner;

COMMENT ON TABLE installer.messages IS 'the latest message for people about a plan, CSV or cluster';

CREATE TABLE installer.metadata (
    tenant text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    metadata jsonb NOT NULL
);

ALTER TABLE ONLY installer.metadata FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.metadata OWNER TO chandler_owner;

COMMENT ON TABLE installer.metadata IS 'labels and annotations of intents that have some';

CREATE TABLE installer.migrations_applied (
    version bigint NOT NULL,
    file text NOT NULL,
    digest text NOT NULL,
    applied timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE installer.migrations_applied OWNER TO chandler_owner;

CREATE TABLE installer.observations (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    state jsonb NOT NULL
);

ALTER TABLE ONLY installer.observations FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.observations OWNER TO chandler_owner;

COMMENT ON TABLE installer.observations IS 'what was recorded last of each cluster';

CREATE TABLE installer.operator_details (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    requirements json,
    condition json,
    drift json NOT NULL,
    components json NOT NULL,
    updated timestamp with time zone NOT NULL,
    cut json,
    not_ready json DEFAULT '[]'::json NOT NULL,
    conditions json DEFAULT '[]'::json NOT NULL
);

ALTER TABLE ONLY installer.operator_details FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.operator_details OWNER TO chandler_owner;

COMMENT ON TABLE installer.operator_details IS 'requirements, condition, drift and components of installed operators';

CREATE TABLE installer.operatorgroups (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    spec jsonb NOT NULL
);

ALTER TABLE ONLY installer.operatorgroups FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.operatorgroups OWNER TO chandler_owner;

COMMENT ON TABLE installer.operatorgroups IS 'operator groups as the log tells them';

CREATE TABLE installer.plans (
    tenant text NOT NULL,
    plan uuid NOT NULL,
    stream text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    phase text NOT NULL,
    state jsonb NOT NULL,
    configs jsonb NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    traceparent text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY installer.plans FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.plans OWNER TO chandler_owner;

COMMENT ON TABLE installer.plans IS 'install plans as the log tells them';

CREATE TABLE installer.published (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    cluster text NOT NULL,
    digest text NOT NULL,
    stopped boolean NOT NULL,
    published timestamp with time zone NOT NULL,
    renew timestamp with time zone,
    keys text[] DEFAULT '{}'::text[] NOT NULL,
    sequence bigint DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY installer.published FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.published OWNER TO chandler_owner;

COMMENT ON TABLE installer.published IS 'the last message of each scope in PLANS';

COMMENT ON COLUMN installer.published.sequence IS 'of the message in PLANS; 0: not known, it is published again';

CREATE TABLE installer.removals (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    csv text NOT NULL,
    removal text NOT NULL,
    crds text[] NOT NULL,
    plan text NOT NULL,
    epoch bigint NOT NULL,
    "position" bigint NOT NULL,
    dependants text[] DEFAULT '{}'::text[] NOT NULL
);

ALTER TABLE ONLY installer.removals FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.removals OWNER TO chandler_owner;

COMMENT ON TABLE installer.removals IS 'operators to be uninstalled, as the log tells them';

COMMENT ON COLUMN installer.removals.dependants IS 'namespace/csv';

CREATE TABLE installer.replicas (
    tenant text DEFAULT '*'::text NOT NULL,
    name text NOT NULL,
    capacity integer NOT NULL,
    draining boolean DEFAULT false NOT NULL,
    heard timestamp with time zone NOT NULL,
    clusters integer DEFAULT 0 NOT NULL,
    load integer DEFAULT 0 NOT NULL,
    unplaced integer DEFAULT 0 NOT NULL,
    moves bigint DEFAULT 0 NOT NULL,
    recorded integer DEFAULT 0 NOT NULL,
    gone timestamp with time zone,
    draining_by text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY installer.replicas FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.replicas OWNER TO chandler_owner;

COMMENT ON TABLE installer.replicas IS 'replicas of the installer that host executors';

CREATE TABLE installer.reports (
    tenant text NOT NULL,
    cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    epoch bigint NOT NULL,
    reported timestamp with time zone NOT NULL,
    digest text NOT NULL,
    budget jsonb DEFAULT '{}'::jsonb NOT NULL,
    session uuid,
    sequence bigint DEFAULT 0 NOT NULL,
    entry bytea
);

ALTER TABLE ONLY installer.reports FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.reports OWNER TO chandler_owner;

COMMENT ON TABLE installer.reports IS 'the last report taken of each scope';

CREATE TABLE installer.schema_migrations (
    version bigint NOT NULL,
    dirty boolean NOT NULL
);

ALTER TABLE installer.schema_migrations OWNER TO chandler_owner;

CREATE TABLE installer.step_logs (
    tenant text NOT NULL,
    digest text NOT NULL,
    body bytea NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY installer.step_logs FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.step_logs OWNER TO chandler_owner;

COMMENT ON TABLE installer.step_logs IS 'step logs of ended plans, by digest';

CREATE TABLE installer.stops (
    tenant text NOT NULL,
    subject text NOT NULL,
    reason text NOT NULL
);

ALTER TABLE ONLY installer.stops FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.stops OWNER TO chandler_owner;

COMMENT ON TABLE installer.stops IS 'where a person has stopped effects';

CREATE TABLE installer.streams (
    tenant text DEFAULT '*'::text NOT NULL,
    name text NOT NULL,
    created timestamp with time zone NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    fills bigint DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY installer.streams FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.streams OWNER TO chandler_owner;

COMMENT ON TABLE installer.streams IS 'incarnations of JetStream streams that were filled';

CREATE TABLE installer.subscriptions (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    config text NOT NULL,
    spec jsonb DEFAULT '{}'::jsonb NOT NULL,
    failed text DEFAULT ''::text NOT NULL,
    failed_since timestamp with time zone,
    goes_back_to text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY installer.subscriptions FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.subscriptions OWNER TO chandler_owner;

COMMENT ON TABLE installer.subscriptions IS 'which configuration each subscription carries';

COMMENT ON COLUMN installer.subscriptions.goes_back_to IS 'CSV that a rollout has it go back to; empty where none does';

CREATE TABLE installer.totals (
    tenant text NOT NULL,
    upgrades bigint DEFAULT 0 NOT NULL,
    warnings bigint DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY installer.totals FORCE ROW LEVEL SECURITY;

ALTER TABLE installer.totals OWNER TO chandler_owner;

COMMENT ON TABLE installer.totals IS 'upgrades and warnings of a tenant, counted from the log';

CREATE VIEW installer_api.cluster_apis WITH (security_barrier='true') AS
 SELECT o.tenant,
    c.name AS cluster,
    (o.state -> 'apis'::text) AS apis
   FROM (installer.observations o
     JOIN installer.clusters c ON (((c.tenant = o.tenant) AND (c.cluster_id = o.cluster_id) AND (NOT c.removed))))
  WHERE ((o.state ? 'apis'::text) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = o.tenant)));

ALTER TABLE installer_api.cluster_apis OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.cluster_apis IS 'API groups that clusters serve, as group/version';

CREATE VIEW installer_api.content_references WITH (security_barrier='true') AS
 SELECT DISTINCT csvs.tenant,
    csvs.content AS digest
   FROM installer.csvs
  WHERE ((csvs.content <> ''::text) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = csvs.tenant)));

ALTER TABLE installer_api.content_references OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.content_references IS 'contents of ClusterServiceVersions that are installed';

CREATE VIEW installer_api.drifts WITH (security_barrier='true') AS
 SELECT drifts.tenant,
    drifts.digest,
    (convert_from(drifts.body, 'UTF8'::name))::json AS document,
    drifts.created
   FROM installer.drifts
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = drifts.tenant));

ALTER TABLE installer_api.drifts OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.drifts IS 'differences of managed objects, by digest';

CREATE VIEW installer_api.key_uses WITH (security_barrier='true') AS
 SELECT p.tenant,
    k.id AS key_id,
    count(*) AS uses
   FROM (installer.published p
     CROSS JOIN LATERAL unnest(p.keys) k(id))
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = p.tenant))
  GROUP BY p.tenant, k.id;

ALTER TABLE installer_api.key_uses OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.key_uses IS 'how many namespaces need a key that signs grants';

CREATE VIEW installer_api.leftovers WITH (security_barrier='true') AS
 SELECT l.tenant,
    c.name AS cluster,
    l.namespace,
    l.csv,
    l.package,
    l.removal,
    l.objects,
    l.more,
    l.removed
   FROM (installer.leftovers l
     JOIN installer.clusters c ON (((c.tenant = l.tenant) AND (c.cluster_id = l.cluster_id) AND (NOT c.removed))))
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = l.tenant));

ALTER TABLE installer_api.leftovers OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.leftovers IS 'objects that stayed when operators were uninstalled';

CREATE VIEW installer_api.messages WITH (security_barrier='true') AS
 SELECT messages.tenant,
    messages.subject,
    messages.kind,
    messages.message,
    messages.updated
   FROM installer.messages
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = messages.tenant));

ALTER TABLE installer_api.messages OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.messages IS 'the latest message for people about a plan, CSV or cluster';

CREATE VIEW installer_api.operator_details WITH (security_barrier='true') AS
 SELECT d.tenant,
    c.name AS cluster,
    d.namespace,
    d.name,
    d.requirements,
    d.condition,
    d.drift,
    d.components,
    d.cut,
    d.updated,
    d.not_ready,
    d.conditions
   FROM (installer.operator_details d
     JOIN installer.clusters c ON (((c.tenant = d.tenant) AND (c.cluster_id = d.cluster_id) AND (NOT c.removed))))
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = d.tenant));

ALTER TABLE installer_api.operator_details OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.operator_details IS 'requirements, conditions, drift, components and readiness of installed operators';

CREATE VIEW installer_api.step_logs WITH (security_barrier='true') AS
 SELECT step_logs.tenant,
    step_logs.digest,
    (convert_from(step_logs.body, 'UTF8'::name))::json AS document
   FROM installer.step_logs
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = step_logs.tenant));

ALTER TABLE installer_api.step_logs OWNER TO chandler_owner;

COMMENT ON VIEW installer_api.step_logs IS 'step logs of ended plans, by digest';

CREATE TABLE resolver.approval_policies (
    tenant text NOT NULL,
    name text NOT NULL,
    spec jsonb NOT NULL
);

ALTER TABLE ONLY resolver.approval_policies FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.approval_policies OWNER TO chandler_owner;

COMMENT ON TABLE resolver.approval_policies IS 'live approval policies: which upgrades may happen, when, and who has to agree';

CREATE TABLE resolver.bundle_images (
    tenant text NOT NULL,
    subject text NOT NULL,
    image text NOT NULL,
    content text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    package text NOT NULL,
    bundle text NOT NULL
);

ALTER TABLE ONLY resolver.bundle_images FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.bundle_images OWNER TO chandler_owner;

COMMENT ON TABLE resolver.bundle_images IS 'bundle images that were fetched, or why not, as the log tells them';

CREATE TABLE resolver.catalog_clock (
    tenant text NOT NULL,
    changes bigint NOT NULL
);

ALTER TABLE ONLY resolver.catalog_clock FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalog_clock OWNER TO chandler_owner;

COMMENT ON TABLE resolver.catalog_clock IS 'how often the catalogs of a tenant changed';

CREATE TABLE resolver.catalog_health (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    strict boolean NOT NULL
);

ALTER TABLE ONLY resolver.catalog_health FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalog_health OWNER TO chandler_owner;

COMMENT ON TABLE resolver.catalog_health IS 'catalog namespaces and what an unhealthy catalog does to those who see it';

CREATE TABLE resolver.catalog_revisions (
    tenant text NOT NULL,
    subject text NOT NULL,
    variant text NOT NULL,
    revision text DEFAULT ''::text NOT NULL,
    failed boolean DEFAULT false NOT NULL,
    reason text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY resolver.catalog_revisions FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalog_revisions OWNER TO chandler_owner;

COMMENT ON TABLE resolver.catalog_revisions IS 'the revisions in service of live catalogs';

CREATE TABLE resolver.catalogs (
    tenant text NOT NULL,
    subject text NOT NULL,
    priority integer NOT NULL,
    visibility_cluster text DEFAULT ''::text NOT NULL,
    visibility_namespace text DEFAULT ''::text NOT NULL,
    templated boolean DEFAULT false NOT NULL,
    disabled boolean DEFAULT false NOT NULL
);

ALTER TABLE ONLY resolver.catalogs FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalogs OWNER TO chandler_owner;

COMMENT ON TABLE resolver.catalogs IS 'live catalogs and the revision in service';

CREATE TABLE resolver.clusters (
    tenant text NOT NULL,
    name text NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    minor text DEFAULT ''::text NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    kubernetes text DEFAULT ''::text NOT NULL,
    changes bigint DEFAULT 0 NOT NULL,
    cordoned boolean DEFAULT false NOT NULL,
    taints jsonb DEFAULT '{}'::jsonb NOT NULL,
    state text DEFAULT ''::text NOT NULL,
    facts jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE ONLY resolver.clusters FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.clusters OWNER TO chandler_owner;

COMMENT ON TABLE resolver.clusters IS 'clusters as the log tells them; nothing is decided for a removed one';

COMMENT ON COLUMN resolver.clusters.kubernetes IS 'version as the executor tells it, such as v1.34.4; empty while unknown';

COMMENT ON COLUMN resolver.clusters.changes IS 'counts changes of the version and of operator groups: a decision that rests on them compares';

COMMENT ON COLUMN resolver.clusters.taints IS 'value by key; they keep fleet subscriptions away that do not tolerate them';

COMMENT ON COLUMN resolver.clusters.state IS 'as the executor tells it, such as Connected; Registered before it has, empty while unknown';

COMMENT ON COLUMN resolver.clusters.facts IS 'what the cluster is made of: events.ClusterFacts';

CREATE TABLE resolver.content_references (
    tenant text NOT NULL,
    kind text NOT NULL,
    digest text NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL,
    holder text DEFAULT ''::text NOT NULL,
    CONSTRAINT content_references_kind_check CHECK ((kind = ANY (ARRAY['content'::text, 'package'::text])))
);

ALTER TABLE ONLY resolver.content_references FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.content_references OWNER TO chandler_owner;

COMMENT ON TABLE resolver.content_references IS 'catalog content that decisions refer to, by digest';

CREATE TABLE resolver.directives (
    tenant text NOT NULL,
    directive text NOT NULL,
    fleet text NOT NULL,
    number integer NOT NULL,
    cluster text NOT NULL,
    plan text DEFAULT ''::text NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    content text DEFAULT ''::text NOT NULL,
    cause text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY resolver.directives FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.directives OWNER TO chandler_owner;

COMMENT ON TABLE resolver.directives IS 'what was asked of clusters, and what the facts that it caused say';

COMMENT ON COLUMN resolver.directives.plan IS 'key of the stream of the newest plan that it led to';

CREATE TABLE resolver.dirty (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    lane smallint NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    owner text,
    until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    not_before timestamp with time zone DEFAULT now() NOT NULL,
    marked timestamp with time zone DEFAULT now() NOT NULL,
    cause text DEFAULT ''::text NOT NULL,
    traceparent text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY resolver.dirty FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.dirty OWNER TO chandler_owner;

COMMENT ON TABLE resolver.dirty IS 'scopes to be resolved, with their claims';

CREATE TABLE resolver.explanations (
    tenant text NOT NULL,
    digest text NOT NULL,
    document jsonb NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY resolver.explanations FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.explanations OWNER TO chandler_owner;

COMMENT ON TABLE resolver.explanations IS 'why something cannot be planned, by digest';

COMMENT ON COLUMN resolver.explanations.created IS 'when it was written, or last found to be needed';

CREATE TABLE resolver.fleet_allowances (
    tenant text NOT NULL,
    event uuid NOT NULL,
    changed integer NOT NULL,
    leaving integer NOT NULL,
    at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY resolver.fleet_allowances FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_allowances OWNER TO chandler_owner;

COMMENT ON TABLE resolver.fleet_allowances IS 'what persons allowed beyond the bounds, for an hour each';

CREATE TABLE resolver.fleet_budgets (
    tenant text NOT NULL,
    changed integer NOT NULL,
    leaving integer NOT NULL
);

ALTER TABLE ONLY resolver.fleet_budgets FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_budgets OWNER TO chandler_owner;

COMMENT ON TABLE resolver.fleet_budgets IS 'bounds of mass changes of tenants that have set some; 0 is none';

CREATE TABLE resolver.fleet_changes (
    tenant text NOT NULL,
    event uuid NOT NULL,
    kind text NOT NULL,
    cluster text NOT NULL,
    at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY resolver.fleet_changes FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_changes OWNER TO chandler_owner;

COMMENT ON TABLE resolver.fleet_changes IS 'clusters that fleet subscriptions changed or let go of, which the bounds count';

CREATE TABLE resolver.fleet_subscriptions (
    tenant text NOT NULL,
    name text NOT NULL,
    incarnation integer NOT NULL,
    version bigint NOT NULL,
    spec jsonb NOT NULL,
    deleted boolean DEFAULT false NOT NULL,
    due boolean DEFAULT true NOT NULL,
    waits text DEFAULT ''::text NOT NULL,
    held jsonb
);

ALTER TABLE ONLY resolver.fleet_subscriptions FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_subscriptions OWNER TO chandler_owner;

COMMENT ON TABLE resolver.fleet_subscriptions IS 'fleet subscriptions, also those that have ended until their clusters are let go';

COMMENT ON COLUMN resolver.fleet_subscriptions.due IS 'something changed that the fleet controller has not looked at';

COMMENT ON COLUMN resolver.fleet_subscriptions.waits IS 'code of why no rollout can begin; empty where none has to';

COMMENT ON COLUMN resolver.fleet_subscriptions.held IS 'why and how many clusters are held back; null where none is';

CREATE TABLE resolver.gate_evaluations (
    tenant text NOT NULL,
    fleet text NOT NULL,
    number integer NOT NULL,
    gate text NOT NULL,
    round integer NOT NULL,
    evaluation text DEFAULT ''::text NOT NULL,
    held_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    next_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    successes integer DEFAULT 0 NOT NULL,
    result text DEFAULT ''::text NOT NULL,
    verdict text DEFAULT ''::text NOT NULL,
    code text DEFAULT ''::text NOT NULL,
    begun_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    ended_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
);

ALTER TABLE ONLY resolver.gate_evaluations FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.gate_evaluations OWNER TO chandler_owner;

COMMENT ON TABLE resolver.gate_evaluations IS 'gates whose verdict is waited for: who evaluates one, and what the last evaluation came to';

COMMENT ON COLUMN resolver.gate_evaluations.round IS 'that was due when the evaluation was begun';

COMMENT ON COLUMN resolver.gate_evaluations.evaluation IS 'id of the one that is under way until held_until';

COMMENT ON COLUMN resolver.gate_evaluations.successes IS 'how often in a row it held';

COMMENT ON COLUMN resolver.gate_evaluations.result IS 'id of the evaluation that the columns behind it tell of';

CREATE TABLE resolver.inputs (
    tenant text NOT NULL,
    digest text NOT NULL,
    document bytea NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL,
    referred boolean DEFAULT false NOT NULL
);

ALTER TABLE ONLY resolver.inputs FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.inputs OWNER TO chandler_owner;

COMMENT ON TABLE resolver.inputs IS 'everything that a decision consulted, to decide again and compare';

COMMENT ON COLUMN resolver.inputs.created IS 'when it was written, or last found to be needed';

CREATE TABLE resolver.installed (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    package text NOT NULL,
    version text NOT NULL,
    content text NOT NULL,
    plan text NOT NULL,
    phase text NOT NULL,
    replaces text DEFAULT ''::text NOT NULL,
    properties jsonb DEFAULT '[]'::jsonb NOT NULL,
    upgradeable boolean DEFAULT true NOT NULL
);

ALTER TABLE ONLY resolver.installed FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.installed OWNER TO chandler_owner;

COMMENT ON TABLE resolver.installed IS 'ClusterServiceVersions that are in a cluster, or will be since their plan is finished';

COMMENT ON COLUMN resolver.installed.upgradeable IS 'whether the operator lets itself be upgraded, as far as it has said anything';

CREATE TABLE resolver.migrations_applied (
    version bigint NOT NULL,
    file text NOT NULL,
    digest text NOT NULL,
    applied timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE resolver.migrations_applied OWNER TO chandler_owner;

CREATE TABLE resolver.operator_groups (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    spec jsonb NOT NULL,
    targets text[],
    provided text[] DEFAULT '{}'::text[] NOT NULL
);

ALTER TABLE ONLY resolver.operator_groups FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.operator_groups OWNER TO chandler_owner;

COMMENT ON TABLE resolver.operator_groups IS 'live operator groups';

COMMENT ON COLUMN resolver.operator_groups.targets IS 'namespaces that the group serves, as the cluster tells; null while unknown';

COMMENT ON COLUMN resolver.operator_groups.provided IS 'APIs of its operators, Kind.version.group, as the cluster tells';

CREATE TABLE resolver.package_apis (
    tenant text NOT NULL,
    digest text NOT NULL,
    apis text[] NOT NULL,
    offer bytea
);

ALTER TABLE ONLY resolver.package_apis FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.package_apis OWNER TO chandler_owner;

COMMENT ON TABLE resolver.package_apis IS 'what a package document offers: the APIs that it provides, and its channels and bundles for resolution';

COMMENT ON COLUMN resolver.package_apis.offer IS 'JSON of a package with what resolution needs; null where an older version met the document';

CREATE TABLE resolver.plan_documents (
    tenant text NOT NULL,
    plan text NOT NULL,
    digest text NOT NULL,
    document bytea NOT NULL,
    effect text NOT NULL,
    properties jsonb NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY resolver.plan_documents FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.plan_documents OWNER TO chandler_owner;

COMMENT ON TABLE resolver.plan_documents IS 'what install plans do and why';

COMMENT ON COLUMN resolver.plan_documents.created IS 'when it was written, or last found to be needed';

CREATE TABLE resolver.plans (
    tenant text NOT NULL,
    plan text NOT NULL,
    key uuid NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    generation bigint NOT NULL,
    version bigint NOT NULL,
    live boolean NOT NULL,
    phase text NOT NULL,
    settled boolean DEFAULT false NOT NULL,
    state jsonb NOT NULL,
    packages text[] DEFAULT '{}'::text[] NOT NULL,
    input text GENERATED ALWAYS AS (((state -> 'Proposed'::text) ->> 'input'::text)) STORED
);

ALTER TABLE ONLY resolver.plans FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.plans OWNER TO chandler_owner;

COMMENT ON TABLE resolver.plans IS 'install plans, folded from their streams';

COMMENT ON COLUMN resolver.plans.input IS 'digest of what the plan rests on';

CREATE TABLE resolver.preview_scopes (
    tenant text NOT NULL,
    id uuid NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    fingerprint text NOT NULL,
    facts jsonb NOT NULL,
    announced text NOT NULL,
    outlook jsonb
);

ALTER TABLE ONLY resolver.preview_scopes FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.preview_scopes OWNER TO chandler_owner;

COMMENT ON TABLE resolver.preview_scopes IS 'what a preview came to in each namespace, and what that rests on';

CREATE TABLE resolver.previews (
    tenant text NOT NULL,
    id uuid NOT NULL,
    asked timestamp with time zone NOT NULL,
    expires timestamp with time zone NOT NULL,
    question jsonb NOT NULL,
    totals jsonb NOT NULL,
    complete boolean NOT NULL,
    reached_cluster text DEFAULT ''::text NOT NULL,
    reached_namespace text DEFAULT ''::text NOT NULL
);

ALTER TABLE ONLY resolver.previews FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.previews OWNER TO chandler_owner;

COMMENT ON TABLE resolver.previews IS 'hypothetical events and what they would lead to, until they expire';

CREATE TABLE resolver.reads (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    kind text NOT NULL,
    catalog text NOT NULL,
    name text NOT NULL
);

ALTER TABLE ONLY resolver.reads FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.reads OWNER TO chandler_owner;

COMMENT ON TABLE resolver.reads IS 'what each scope''s last resolution asked of the catalogs';

CREATE TABLE resolver.rollout_clusters (
    tenant text NOT NULL,
    fleet text NOT NULL,
    number integer NOT NULL,
    cluster text NOT NULL,
    wave integer NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    directive text DEFAULT ''::text NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    since timestamp with time zone NOT NULL,
    forgiven boolean DEFAULT false NOT NULL
);

ALTER TABLE ONLY resolver.rollout_clusters FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.rollout_clusters OWNER TO chandler_owner;

COMMENT ON TABLE resolver.rollout_clusters IS 'where each cluster of a rollout stands';

CREATE TABLE resolver.rollouts (
    tenant text NOT NULL,
    fleet text NOT NULL,
    number integer NOT NULL,
    stream_version bigint NOT NULL,
    phase text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    wave integer NOT NULL,
    passed integer NOT NULL,
    promoted boolean DEFAULT false NOT NULL,
    started jsonb NOT NULL,
    started_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    gates jsonb DEFAULT '{}'::jsonb NOT NULL,
    rollback_to integer DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY resolver.rollouts FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.rollouts OWNER TO chandler_owner;

COMMENT ON TABLE resolver.rollouts IS 'rollouts: what each began with and where it stands';

COMMENT ON COLUMN resolver.rollouts.gates IS 'where the gates of the open wave stand';

COMMENT ON COLUMN resolver.rollouts.rollback_to IS 'number of the rollout that brought what its clusters go back to; 0 where nobody asked for a rollback';

CREATE TABLE resolver.samples (
    tenant text NOT NULL,
    night date NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    begun timestamp with time zone,
    looked timestamp with time zone,
    found text[] DEFAULT '{}'::text[] NOT NULL
);

ALTER TABLE ONLY resolver.samples FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.samples OWNER TO chandler_owner;

COMMENT ON TABLE resolver.samples IS 'scopes that were resolved afresh by night, and what that found';

CREATE TABLE resolver.schema_migrations (
    version bigint NOT NULL,
    dirty boolean NOT NULL
);

ALTER TABLE resolver.schema_migrations OWNER TO chandler_owner;

CREATE TABLE resolver.scopes (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    decisions bigint DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY resolver.scopes FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.scopes OWNER TO chandler_owner;

COMMENT ON TABLE resolver.scopes IS 'namespaces for which something was decided, and how often';

CREATE TABLE resolver.subscriptions (
    tenant text NOT NULL,
    cluster text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    incarnation integer NOT NULL,
    version bigint NOT NULL,
    spec jsonb NOT NULL,
    generated boolean DEFAULT false NOT NULL,
    created bigint NOT NULL,
    correlation text DEFAULT ''::text NOT NULL,
    installed_csv text DEFAULT ''::text NOT NULL,
    outcome jsonb DEFAULT '{}'::jsonb NOT NULL,
    input text GENERATED ALWAYS AS ((outcome ->> 'input'::text)) STORED,
    explanation text GENERATED ALWAYS AS ((outcome ->> 'explanation'::text)) STORED,
    rollback_from text DEFAULT ''::text NOT NULL,
    rollback_to text DEFAULT ''::text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    target jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE ONLY resolver.subscriptions FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.subscriptions OWNER TO chandler_owner;

COMMENT ON TABLE resolver.subscriptions IS 'live subscriptions and what was last said of their resolution';

COMMENT ON COLUMN resolver.subscriptions.input IS 'digest of what the outcome rests on';

COMMENT ON COLUMN resolver.subscriptions.explanation IS 'digest of why the outcome is a failure';

COMMENT ON COLUMN resolver.subscriptions.rollback_from IS 'CSV that is not taken again, since a rollback left it';

COMMENT ON COLUMN resolver.subscriptions.rollback_to IS 'CSV that the rollback leads to';

COMMENT ON COLUMN resolver.subscriptions.owner IS 'fleet subscription that asks for it; empty for one of a person';

COMMENT ON COLUMN resolver.subscriptions.target IS 'how far a rollout lets it go; empty without one';

CREATE TABLE resolver.wanted_images (
    tenant text NOT NULL,
    subject text NOT NULL,
    image text NOT NULL,
    package text NOT NULL,
    bundle text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY resolver.wanted_images FORCE ROW LEVEL SECURITY;

ALTER TABLE resolver.wanted_images OWNER TO chandler_owner;

COMMENT ON TABLE resolver.wanted_images IS 'bundle images that a resolution waits for';

CREATE VIEW resolver_api.content_references WITH (security_barrier='true') AS
 SELECT content_references.tenant,
    content_references.kind,
    content_references.digest
   FROM resolver.content_references
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = content_references.tenant));

ALTER TABLE resolver_api.content_references OWNER TO chandler_owner;

COMMENT ON VIEW resolver_api.content_references IS 'catalog content that decisions refer to; it is never collected';

CREATE VIEW resolver_api.explanations WITH (security_barrier='true') AS
 SELECT explanations.tenant,
    explanations.digest,
    explanations.document
   FROM resolver.explanations
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = explanations.tenant));

ALTER TABLE resolver_api.explanations OWNER TO chandler_owner;

COMMENT ON VIEW resolver_api.explanations IS 'why something cannot be planned, by digest';

CREATE VIEW resolver_api.fleet_changes WITH (security_barrier='true') AS
 SELECT c.tenant,
    c.kind,
    c.cluster,
    c.at
   FROM resolver.fleet_changes c
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = c.tenant));

ALTER TABLE resolver_api.fleet_changes OWNER TO chandler_owner;

CREATE VIEW resolver_api.fleet_held WITH (security_barrier='true') AS
 SELECT f.tenant,
    f.name,
    f.held
   FROM resolver.fleet_subscriptions f
  WHERE ((f.held IS NOT NULL) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = f.tenant)));

ALTER TABLE resolver_api.fleet_held OWNER TO chandler_owner;

CREATE VIEW resolver_api.fleet_waits WITH (security_barrier='true') AS
 SELECT f.tenant,
    f.name,
    f.waits
   FROM resolver.fleet_subscriptions f
  WHERE ((f.waits <> ''::text) AND (NOT f.deleted) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = f.tenant)));

ALTER TABLE resolver_api.fleet_waits OWNER TO chandler_owner;

CREATE VIEW resolver_api.plan_documents WITH (security_barrier='true') AS
 SELECT plan_documents.tenant,
    plan_documents.plan,
    plan_documents.digest,
    plan_documents.document
   FROM resolver.plan_documents
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = plan_documents.tenant));

ALTER TABLE resolver_api.plan_documents OWNER TO chandler_owner;

COMMENT ON VIEW resolver_api.plan_documents IS 'canonical JSON of install plans';

CREATE VIEW resolver_api.platform_limits WITH (security_barrier='true') AS
 SELECT i.tenant,
    i.cluster,
    i.namespace,
    i.name AS csv,
    (p.value -> 'value'::text) AS value
   FROM resolver.installed i,
    LATERAL jsonb_array_elements(i.properties) p(value)
  WHERE (((p.value ->> 'type'::text) = 'olm.maxOpenShiftVersion'::text) AND ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = i.tenant)));

ALTER TABLE resolver_api.platform_limits OWNER TO chandler_owner;

COMMENT ON VIEW resolver_api.platform_limits IS 'property olm.maxOpenShiftVersion of installed operators';

CREATE VIEW resolver_api.samples WITH (security_barrier='true') AS
 SELECT samples.tenant,
    samples.night,
    samples.cluster,
    samples.namespace,
    samples.looked,
    samples.found
   FROM resolver.samples
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = samples.tenant));

ALTER TABLE resolver_api.samples OWNER TO chandler_owner;

COMMENT ON VIEW resolver_api.samples IS 'scopes that were resolved afresh by night, and what that found';

CREATE VIEW resolver_api.wanted_images WITH (security_barrier='true') AS
 SELECT wanted_images.tenant,
    wanted_images.subject AS catalog,
    wanted_images.image,
    wanted_images.package,
    wanted_images.bundle,
    wanted_images.since
   FROM resolver.wanted_images
  WHERE ((current_setting('chandler.tenant'::text, true) = '*'::text) OR (current_setting('chandler.tenant'::text, true) = wanted_images.tenant));

ALTER TABLE resolver_api.wanted_images OWNER TO chandler_owner;

COMMENT ON VIEW resolver_api.wanted_images IS 'bundle images that a resolution waits for, by subject of the catalog';

ALTER TABLE ONLY eventlog.events ATTACH PARTITION eventlog.events_000000000001 FOR VALUES FROM ('1') TO ('1000001');

ALTER TABLE ONLY eventlog.events ATTACH PARTITION eventlog.events_000001000001 FOR VALUES FROM ('1000001') TO ('21000001');

ALTER TABLE ONLY catalog.bundle_images
    ADD CONSTRAINT bundle_images_pkey PRIMARY KEY (tenant, catalog, image, package, bundle);

ALTER TABLE ONLY catalog.catalogs
    ADD CONSTRAINT catalogs_pkey PRIMARY KEY (tenant, stream);

ALTER TABLE ONLY catalog.clusters
    ADD CONSTRAINT clusters_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY catalog.compared
    ADD CONSTRAINT compared_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY catalog.contents
    ADD CONSTRAINT contents_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY catalog.decoded
    ADD CONSTRAINT decoded_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY catalog.dirty
    ADD CONSTRAINT dirty_pkey PRIMARY KEY (tenant, cluster, namespace);

ALTER TABLE ONLY catalog.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY catalog.fetches
    ADD CONSTRAINT fetches_pkey PRIMARY KEY (tenant, cluster, namespace);

ALTER TABLE ONLY catalog.findings
    ADD CONSTRAINT findings_pkey PRIMARY KEY (tenant, document, catalog);

ALTER TABLE ONLY catalog.migrations_applied
    ADD CONSTRAINT migrations_applied_pkey PRIMARY KEY (version);

ALTER TABLE ONLY catalog.packages
    ADD CONSTRAINT packages_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY catalog.packs
    ADD CONSTRAINT packs_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY catalog.packs
    ADD CONSTRAINT packs_tenant_id_key UNIQUE (tenant, id);

ALTER TABLE ONLY catalog.revision_blobs
    ADD CONSTRAINT revision_blobs_pkey PRIMARY KEY (tenant, revision, package, schema, name, digest);

ALTER TABLE ONLY catalog.revision_packages
    ADD CONSTRAINT revision_packages_pkey PRIMARY KEY (tenant, revision, package);

ALTER TABLE ONLY catalog.revisions
    ADD CONSTRAINT revisions_pkey PRIMARY KEY (tenant, catalog, version);

ALTER TABLE ONLY catalog.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY catalog.search
    ADD CONSTRAINT search_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY catalog.signed_images
    ADD CONSTRAINT signed_images_pkey PRIMARY KEY (tenant, catalog, image);

ALTER TABLE ONLY catalog.upgrades
    ADD CONSTRAINT upgrades_pkey PRIMARY KEY (tenant, from_content, to_content, semantics);

ALTER TABLE ONLY catalog.variants
    ADD CONSTRAINT variants_pkey PRIMARY KEY (tenant, stream, variant);

ALTER TABLE ONLY eventlog.appended
    ADD CONSTRAINT appended_pkey PRIMARY KEY (id);

ALTER TABLE ONLY eventlog.appended
    ADD CONSTRAINT appended_stream_key_incarnation_version_key UNIQUE (stream_key, incarnation, version);

ALTER TABLE ONLY eventlog.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (consumer, tenant, revision);

ALTER TABLE ONLY eventlog.coming_types
    ADD CONSTRAINT coming_types_pkey PRIMARY KEY (type);

ALTER TABLE ONLY eventlog.consumers
    ADD CONSTRAINT consumers_pkey PRIMARY KEY (consumer, tenant);

ALTER TABLE ONLY eventlog.epochs
    ADD CONSTRAINT epochs_pkey PRIMARY KEY (epoch);

ALTER TABLE ONLY eventlog.event_types
    ADD CONSTRAINT event_types_pkey PRIMARY KEY (type);

ALTER TABLE ONLY eventlog.events
    ADD CONSTRAINT events_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY eventlog.events_000000000001
    ADD CONSTRAINT events_000000000001_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY eventlog.events_000001000001
    ADD CONSTRAINT events_000001000001_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY eventlog.incidents
    ADD CONSTRAINT incidents_pkey PRIMARY KEY (id);

ALTER TABLE ONLY eventlog.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (one);

ALTER TABLE ONLY eventlog.migrations_applied
    ADD CONSTRAINT migrations_applied_pkey PRIMARY KEY (version);

ALTER TABLE ONLY eventlog.models
    ADD CONSTRAINT models_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY eventlog.models
    ADD CONSTRAINT models_place_key UNIQUE (place);

ALTER TABLE ONLY eventlog.needs
    ADD CONSTRAINT needs_pkey PRIMARY KEY (what);

ALTER TABLE ONLY eventlog.parked
    ADD CONSTRAINT parked_pkey PRIMARY KEY (consumer, stream, version);

ALTER TABLE ONLY eventlog.partitions
    ADD CONSTRAINT partitions_pkey PRIMARY KEY (first_position);

ALTER TABLE ONLY eventlog.readers
    ADD CONSTRAINT readers_pkey PRIMARY KEY (instance);

ALTER TABLE ONLY eventlog.rebuilds
    ADD CONSTRAINT rebuilds_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY eventlog.schema_info
    ADD CONSTRAINT schema_info_pkey PRIMARY KEY (schema);

ALTER TABLE ONLY eventlog.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY eventlog.sequencer
    ADD CONSTRAINT sequencer_pkey PRIMARY KEY (revision);

ALTER TABLE ONLY eventlog.server
    ADD CONSTRAINT server_pkey PRIMARY KEY (one);

ALTER TABLE ONLY eventlog.service_keys
    ADD CONSTRAINT service_keys_pkey PRIMARY KEY (public_key);

ALTER TABLE ONLY eventlog.skipped
    ADD CONSTRAINT skipped_pkey PRIMARY KEY (consumer, stream, version);

ALTER TABLE ONLY eventlog.stops
    ADD CONSTRAINT stops_pkey PRIMARY KEY (epoch);

ALTER TABLE ONLY eventlog.stream_parts
    ADD CONSTRAINT stream_parts_pkey PRIMARY KEY (stream_key, incarnation, first_position);

ALTER TABLE ONLY eventlog.streams
    ADD CONSTRAINT streams_pkey PRIMARY KEY (tenant, key, incarnation);

ALTER TABLE ONLY gateway.access_clusters
    ADD CONSTRAINT access_clusters_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.access_log
    ADD CONSTRAINT access_log_pkey PRIMARY KEY (tenant, at, id);

ALTER TABLE ONLY gateway.access_versions
    ADD CONSTRAINT access_versions_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY gateway.approval_policies
    ADD CONSTRAINT approval_policies_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.bodies
    ADD CONSTRAINT bodies_pkey PRIMARY KEY (tenant, commitment);

ALTER TABLE ONLY gateway.break_glass
    ADD CONSTRAINT break_glass_hash_key UNIQUE (hash);

ALTER TABLE ONLY gateway.break_glass
    ADD CONSTRAINT break_glass_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY gateway.catalog_hooks
    ADD CONSTRAINT catalog_hooks_pkey PRIMARY KEY (tenant, subject);

ALTER TABLE ONLY gateway.catalog_secrets
    ADD CONSTRAINT catalog_secrets_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.catalogs
    ADD CONSTRAINT catalogs_pkey PRIMARY KEY (tenant, subject);

ALTER TABLE ONLY gateway.clusters
    ADD CONSTRAINT clusters_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.credentials
    ADD CONSTRAINT credentials_pkey PRIMARY KEY (tenant, cluster_key);

ALTER TABLE ONLY gateway.erased_bodies
    ADD CONSTRAINT erased_bodies_pkey PRIMARY KEY (tenant, commitment);

ALTER TABLE ONLY gateway.fleet_subscriptions
    ADD CONSTRAINT fleet_subscriptions_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, actor, key);

ALTER TABLE ONLY gateway.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY gateway.identities
    ADD CONSTRAINT identities_tenant_subject_key UNIQUE (tenant, subject);

ALTER TABLE ONLY gateway.installplans
    ADD CONSTRAINT installplans_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY gateway.migrations_applied
    ADD CONSTRAINT migrations_applied_pkey PRIMARY KEY (version);

ALTER TABLE ONLY gateway.operatorgroups
    ADD CONSTRAINT operatorgroups_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY gateway.operatorhub
    ADD CONSTRAINT operatorhub_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY gateway.operators
    ADD CONSTRAINT operators_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY gateway.previews
    ADD CONSTRAINT previews_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY gateway.quotas
    ADD CONSTRAINT quotas_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY gateway.read_audit
    ADD CONSTRAINT read_audit_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY gateway.role_bindings
    ADD CONSTRAINT role_bindings_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.roles
    ADD CONSTRAINT roles_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.rollout_clusters
    ADD CONSTRAINT rollout_clusters_pkey PRIMARY KEY (tenant, fleet, number, cluster);

ALTER TABLE ONLY gateway.rollouts
    ADD CONSTRAINT rollouts_pkey PRIMARY KEY (tenant, fleet, number);

ALTER TABLE ONLY gateway.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY gateway.sealed_kinds
    ADD CONSTRAINT sealed_kinds_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY gateway.stream_tickets
    ADD CONSTRAINT stream_tickets_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY gateway.subscription_catalogs
    ADD CONSTRAINT subscription_catalogs_pkey PRIMARY KEY (tenant, subject, variant);

ALTER TABLE ONLY gateway.subscription_csvs
    ADD CONSTRAINT subscription_csvs_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY gateway.subscription_deprecations
    ADD CONSTRAINT subscription_deprecations_pkey PRIMARY KEY (tenant, subject, variant, package, element);

ALTER TABLE ONLY gateway.subscriptions
    ADD CONSTRAINT subscriptions_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY gateway.tokens
    ADD CONSTRAINT tokens_hash_key UNIQUE (hash);

ALTER TABLE ONLY gateway.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY gateway.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (tenant, webhook, id);

ALTER TABLE ONLY gateway.webhook_tests
    ADD CONSTRAINT webhook_tests_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY gateway.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY installer.agent_processes
    ADD CONSTRAINT agent_processes_pkey PRIMARY KEY (tenant, cluster_id, key, process);

ALTER TABLE ONLY installer.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant, cluster_id);

ALTER TABLE ONLY installer.approval_policies
    ADD CONSTRAINT approval_policies_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY installer.catalogs
    ADD CONSTRAINT catalogs_pkey PRIMARY KEY (tenant, subject);

ALTER TABLE ONLY installer.clusters
    ADD CONSTRAINT clusters_pkey PRIMARY KEY (tenant, cluster_id);

ALTER TABLE ONLY installer.csv_lives
    ADD CONSTRAINT csv_lives_pkey PRIMARY KEY (tenant, cluster_id, namespace, name, uid);

ALTER TABLE ONLY installer.csvs
    ADD CONSTRAINT csvs_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY installer.dirty
    ADD CONSTRAINT dirty_pkey PRIMARY KEY (tenant, cluster, namespace);

ALTER TABLE ONLY installer.drifts
    ADD CONSTRAINT drifts_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY installer.grants
    ADD CONSTRAINT grants_pkey PRIMARY KEY (tenant, plan);

ALTER TABLE ONLY installer.group_observations
    ADD CONSTRAINT group_observations_pkey PRIMARY KEY (tenant, cluster_id, namespace);

ALTER TABLE ONLY installer.holders
    ADD CONSTRAINT holders_pkey PRIMARY KEY (tenant, cluster_id);

ALTER TABLE ONLY installer.holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (tenant, cluster_id, session);

ALTER TABLE ONLY installer.leftovers
    ADD CONSTRAINT leftovers_pkey PRIMARY KEY (tenant, cluster_id, namespace, csv);

ALTER TABLE ONLY installer.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (tenant, kind, subject);

ALTER TABLE ONLY installer.metadata
    ADD CONSTRAINT metadata_pkey PRIMARY KEY (tenant, kind, subject);

ALTER TABLE ONLY installer.migrations_applied
    ADD CONSTRAINT migrations_applied_pkey PRIMARY KEY (version);

ALTER TABLE ONLY installer.observations
    ADD CONSTRAINT observations_pkey PRIMARY KEY (tenant, cluster_id);

ALTER TABLE ONLY installer.operator_details
    ADD CONSTRAINT operator_details_pkey PRIMARY KEY (tenant, cluster_id, namespace, name);

ALTER TABLE ONLY installer.operatorgroups
    ADD CONSTRAINT operatorgroups_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY installer.plans
    ADD CONSTRAINT plans_pkey PRIMARY KEY (tenant, plan);

ALTER TABLE ONLY installer.published
    ADD CONSTRAINT published_pkey PRIMARY KEY (tenant, cluster_id, namespace);

ALTER TABLE ONLY installer.removals
    ADD CONSTRAINT removals_pkey PRIMARY KEY (tenant, cluster, namespace, csv);

ALTER TABLE ONLY installer.replicas
    ADD CONSTRAINT replicas_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY installer.reports
    ADD CONSTRAINT reports_pkey PRIMARY KEY (tenant, cluster_id, namespace);

ALTER TABLE ONLY installer.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY installer.step_logs
    ADD CONSTRAINT step_logs_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY installer.stops
    ADD CONSTRAINT stops_pkey PRIMARY KEY (tenant, subject);

ALTER TABLE ONLY installer.streams
    ADD CONSTRAINT streams_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY installer.subscriptions
    ADD CONSTRAINT subscriptions_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY installer.totals
    ADD CONSTRAINT totals_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY resolver.approval_policies
    ADD CONSTRAINT approval_policies_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY resolver.bundle_images
    ADD CONSTRAINT bundle_images_pkey PRIMARY KEY (tenant, subject, image, package, bundle);

ALTER TABLE ONLY resolver.catalog_clock
    ADD CONSTRAINT catalog_clock_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY resolver.catalog_health
    ADD CONSTRAINT catalog_health_pkey PRIMARY KEY (tenant, cluster, namespace);

ALTER TABLE ONLY resolver.catalog_revisions
    ADD CONSTRAINT catalog_revisions_pkey PRIMARY KEY (tenant, subject, variant);

ALTER TABLE ONLY resolver.catalogs
    ADD CONSTRAINT catalogs_pkey PRIMARY KEY (tenant, subject);

ALTER TABLE ONLY resolver.clusters
    ADD CONSTRAINT clusters_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY resolver.content_references
    ADD CONSTRAINT content_references_pkey PRIMARY KEY (tenant, kind, digest, holder);

ALTER TABLE ONLY resolver.directives
    ADD CONSTRAINT directives_pkey PRIMARY KEY (tenant, directive);

ALTER TABLE ONLY resolver.dirty
    ADD CONSTRAINT dirty_pkey PRIMARY KEY (tenant, cluster, namespace);

ALTER TABLE ONLY resolver.explanations
    ADD CONSTRAINT explanations_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY resolver.fleet_allowances
    ADD CONSTRAINT fleet_allowances_pkey PRIMARY KEY (tenant, event);

ALTER TABLE ONLY resolver.fleet_budgets
    ADD CONSTRAINT fleet_budgets_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY resolver.fleet_changes
    ADD CONSTRAINT fleet_changes_pkey PRIMARY KEY (tenant, event);

ALTER TABLE ONLY resolver.fleet_subscriptions
    ADD CONSTRAINT fleet_subscriptions_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY resolver.gate_evaluations
    ADD CONSTRAINT gate_evaluations_pkey PRIMARY KEY (tenant, fleet, number, gate);

ALTER TABLE ONLY resolver.inputs
    ADD CONSTRAINT inputs_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY resolver.installed
    ADD CONSTRAINT installed_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY resolver.migrations_applied
    ADD CONSTRAINT migrations_applied_pkey PRIMARY KEY (version);

ALTER TABLE ONLY resolver.operator_groups
    ADD CONSTRAINT operator_groups_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY resolver.package_apis
    ADD CONSTRAINT package_apis_pkey PRIMARY KEY (tenant, digest);

ALTER TABLE ONLY resolver.plan_documents
    ADD CONSTRAINT plan_documents_pkey PRIMARY KEY (tenant, plan);

ALTER TABLE ONLY resolver.plans
    ADD CONSTRAINT plans_pkey PRIMARY KEY (tenant, plan);

ALTER TABLE ONLY resolver.preview_scopes
    ADD CONSTRAINT preview_scopes_pkey PRIMARY KEY (tenant, id, cluster, namespace);

ALTER TABLE ONLY resolver.previews
    ADD CONSTRAINT previews_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY resolver.reads
    ADD CONSTRAINT reads_pkey PRIMARY KEY (tenant, cluster, namespace, kind, catalog, name);

ALTER TABLE ONLY resolver.rollout_clusters
    ADD CONSTRAINT rollout_clusters_pkey PRIMARY KEY (tenant, fleet, number, cluster);

ALTER TABLE ONLY resolver.rollouts
    ADD CONSTRAINT rollouts_pkey PRIMARY KEY (tenant, fleet, number);

ALTER TABLE ONLY resolver.samples
    ADD CONSTRAINT samples_pkey PRIMARY KEY (tenant, night, cluster, namespace);

ALTER TABLE ONLY resolver.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY resolver.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (tenant, cluster, namespace);

ALTER TABLE ONLY resolver.subscriptions
    ADD CONSTRAINT subscriptions_pkey PRIMARY KEY (tenant, cluster, namespace, name);

ALTER TABLE ONLY resolver.wanted_images
    ADD CONSTRAINT wanted_images_pkey PRIMARY KEY (tenant, subject, image, package, bundle);

CREATE INDEX bundle_images_content ON catalog.bundle_images USING btree (tenant, image) WHERE (content <> ''::text);

CREATE INDEX bundle_images_due ON catalog.bundle_images USING btree (next_try) WHERE (content = ''::text);

CREATE UNIQUE INDEX catalogs_subject ON catalog.catalogs USING btree (tenant, subject) WHERE (NOT removed);

CREATE INDEX compared_package ON catalog.compared USING btree (tenant, package);

CREATE INDEX dirty_turn ON catalog.dirty USING btree (lane, tenant, cluster, marked);

CREATE INDEX fetches_turn ON catalog.fetches USING btree (lane, tenant, cluster, marked);

CREATE INDEX packs_shelf ON catalog.packs USING btree (tenant, shelf, id DESC);

CREATE INDEX search_words ON catalog.search USING gin (words);

CREATE INDEX signed_images_content ON catalog.signed_images USING btree (tenant, content);

CREATE INDEX appended_access ON eventlog.appended USING btree (id) WHERE (kind = 'access'::text);

CREATE INDEX events_stream ON ONLY eventlog.events USING btree (stream_key, incarnation, version);

CREATE INDEX events_000000000001_stream_key_incarnation_version_idx ON eventlog.events_000000000001 USING btree (stream_key, incarnation, version);

CREATE INDEX events_000001000001_stream_key_incarnation_version_idx ON eventlog.events_000001000001 USING btree (stream_key, incarnation, version);

CREATE INDEX models_model ON eventlog.models USING btree (model);

CREATE INDEX streams_bounded ON eventlog.streams USING btree (tenant, kind) WHERE ((kind = ANY (ARRAY['subscription'::text, 'catalog'::text])) AND (NOT closed));

CREATE INDEX access_log_actor ON ONLY gateway.access_log USING btree (tenant, actor, at);

CREATE INDEX bodies_by_key ON gateway.bodies USING btree (kind, key_id, tenant, commitment);

CREATE INDEX catalog_hooks_due ON gateway.catalog_hooks USING btree (due) WHERE (due IS NOT NULL);

CREATE UNIQUE INDEX catalog_hooks_nonce ON gateway.catalog_hooks USING btree (nonce);

CREATE INDEX idempotency_keys_expired ON gateway.idempotency_keys USING btree (expires);

CREATE INDEX identities_actor ON gateway.identities USING btree (tenant, actor);

CREATE INDEX identities_made ON gateway.identities USING btree (created, tenant, provider);

CREATE INDEX installplans_name ON gateway.installplans USING btree (tenant, name);

CREATE INDEX installplans_newest ON gateway.installplans USING btree (tenant, epoch DESC, "position" DESC);

CREATE INDEX installplans_phase ON gateway.installplans USING btree (tenant, phase, epoch DESC, "position" DESC);

CREATE INDEX installplans_scope ON gateway.installplans USING btree (tenant, cluster, namespace, epoch DESC, "position" DESC);

CREATE INDEX installplans_stream ON gateway.installplans USING btree (tenant, stream);

CREATE INDEX operators_drifted ON gateway.operators USING btree (tenant, cluster, namespace, name) WHERE (drifted > 0);

CREATE INDEX operators_package ON gateway.operators USING btree (tenant, package, cluster, namespace, name);

CREATE INDEX operators_phase ON gateway.operators USING btree (tenant, phase, cluster, namespace, name);

CREATE INDEX previews_expired ON gateway.previews USING btree (expires);

CREATE INDEX read_audit_at ON gateway.read_audit USING btree (tenant, at);

CREATE INDEX stream_tickets_actor ON gateway.stream_tickets USING btree (tenant, actor);

CREATE INDEX stream_tickets_expired ON gateway.stream_tickets USING btree (expires);

CREATE INDEX subscriptions_labels ON gateway.subscriptions USING gin (labels);

CREATE INDEX subscriptions_moving ON gateway.subscriptions USING btree (tenant, cluster, namespace, name) WHERE (current_csv <> installed_csv);

CREATE INDEX subscriptions_package ON gateway.subscriptions USING btree (tenant, package, cluster, namespace, name);

CREATE UNIQUE INDEX tokens_previous ON gateway.tokens USING btree (previous);

CREATE INDEX webhook_deliveries_ended ON gateway.webhook_deliveries USING btree (tenant, webhook, ended) WHERE (state <> 'Pending'::text);

CREATE INDEX webhook_deliveries_listed ON gateway.webhook_deliveries USING btree (tenant, webhook, created, id);

CREATE INDEX webhook_deliveries_pending ON gateway.webhook_deliveries USING btree (tenant, webhook, epoch, "position") WHERE (state = 'Pending'::text);

CREATE INDEX webhooks_by_key ON gateway.webhooks USING btree (key_id, tenant, name);

CREATE INDEX webhooks_free ON gateway.webhooks USING btree (lease_until) WHERE active;

CREATE INDEX webhooks_leased ON gateway.webhooks USING btree (lease_owner);

CREATE UNIQUE INDEX clusters_name ON installer.clusters USING btree (tenant, name) WHERE (NOT removed);

CREATE INDEX dirty_turn ON installer.dirty USING btree (lane, tenant, cluster, marked);

CREATE INDEX drifts_created ON installer.drifts USING btree (created);

CREATE INDEX grants_cluster ON installer.grants USING btree (tenant, cluster_id);

CREATE INDEX plans_live ON installer.plans USING btree (tenant, cluster, namespace, epoch, "position") WHERE (phase = ANY (ARRAY['RequiresApproval'::text, 'Installing'::text]));

CREATE INDEX plans_stream ON installer.plans USING btree (tenant, stream);

CREATE INDEX published_renew ON installer.published USING btree (renew) WHERE (renew IS NOT NULL);

CREATE INDEX content_references_holder ON resolver.content_references USING btree (tenant, holder);

CREATE INDEX content_references_unheld ON resolver.content_references USING btree (created) WHERE (holder = ''::text);

CREATE INDEX directives_plan ON resolver.directives USING btree (tenant, plan) WHERE (plan <> ''::text);

CREATE INDEX directives_rollout ON resolver.directives USING btree (tenant, fleet, number);

CREATE INDEX dirty_turn ON resolver.dirty USING btree (lane, tenant, cluster, marked);

CREATE INDEX explanations_created ON resolver.explanations USING btree (created);

CREATE INDEX fleet_changes_at ON resolver.fleet_changes USING btree (tenant, at);

CREATE INDEX inputs_created ON resolver.inputs USING btree (created);

CREATE INDEX inputs_unreferred ON resolver.inputs USING btree (tenant, digest) WHERE (NOT referred);

CREATE INDEX plan_documents_created ON resolver.plan_documents USING btree (created);

CREATE UNIQUE INDEX plans_generation ON resolver.plans USING btree (tenant, cluster, namespace, generation);

CREATE INDEX plans_input ON resolver.plans USING btree (tenant, input);

CREATE UNIQUE INDEX plans_key ON resolver.plans USING btree (tenant, key);

CREATE INDEX preview_scopes_in_order ON resolver.preview_scopes USING btree (tenant, id, cluster COLLATE "C", namespace COLLATE "C");

CREATE INDEX previews_expired ON resolver.previews USING btree (expires);

CREATE INDEX reads_by_answer ON resolver.reads USING btree (tenant, kind, catalog, name);

CREATE INDEX samples_due ON resolver.samples USING btree (night) WHERE (looked IS NULL);

CREATE INDEX subscriptions_explanation ON resolver.subscriptions USING btree (tenant, explanation) WHERE (explanation IS NOT NULL);

CREATE INDEX subscriptions_input ON resolver.subscriptions USING btree (tenant, input) WHERE (input IS NOT NULL);

CREATE INDEX subscriptions_owner ON resolver.subscriptions USING btree (tenant, owner) WHERE (owner <> ''::text);

ALTER INDEX eventlog.events_pkey ATTACH PARTITION eventlog.events_000000000001_pkey;

ALTER INDEX eventlog.events_stream ATTACH PARTITION eventlog.events_000000000001_stream_key_incarnation_version_idx;

ALTER INDEX eventlog.events_pkey ATTACH PARTITION eventlog.events_000001000001_pkey;

ALTER INDEX eventlog.events_stream ATTACH PARTITION eventlog.events_000001000001_stream_key_incarnation_version_idx;

CREATE TRIGGER knows_needs BEFORE INSERT OR UPDATE ON eventlog.readers FOR EACH ROW EXECUTE FUNCTION eventlog.knows_needs();

CREATE TRIGGER note_begin BEFORE INSERT ON eventlog.checkpoints FOR EACH ROW EXECUTE FUNCTION eventlog.note_replay();

CREATE TRIGGER note_replay BEFORE UPDATE ON eventlog.checkpoints FOR EACH ROW WHEN (((new."position" < old."position") OR (old.replay_to IS NOT NULL))) EXECUTE FUNCTION eventlog.note_replay();

CREATE TRIGGER one BEFORE INSERT OR DELETE ON eventlog.checkpoints FOR EACH ROW EXECUTE FUNCTION eventlog.one_checkpoint();

CREATE TRIGGER one BEFORE INSERT ON eventlog.sequencer FOR EACH ROW EXECUTE FUNCTION eventlog.one_sequencer();

ALTER TABLE ONLY catalog.search
    ADD CONSTRAINT search_tenant_digest_fkey FOREIGN KEY (tenant, digest) REFERENCES catalog.packages(tenant, digest) ON DELETE CASCADE;

ALTER TABLE ONLY catalog.signed_images
    ADD CONSTRAINT signed_images_tenant_content_fkey FOREIGN KEY (tenant, content) REFERENCES catalog.contents(tenant, digest) ON DELETE CASCADE;

ALTER TABLE ONLY eventlog.stops
    ADD CONSTRAINT stops_epoch_fkey FOREIGN KEY (epoch) REFERENCES eventlog.epochs(epoch);

ALTER TABLE ONLY gateway.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_tenant_webhook_fkey FOREIGN KEY (tenant, webhook) REFERENCES gateway.webhooks(tenant, name) ON DELETE CASCADE;

ALTER TABLE ONLY resolver.preview_scopes
    ADD CONSTRAINT preview_scopes_tenant_id_fkey FOREIGN KEY (tenant, id) REFERENCES resolver.previews(tenant, id) ON DELETE CASCADE;

ALTER TABLE catalog.bundle_images ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.catalogs ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.clusters ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.compared ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.contents ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.decoded ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.dirty ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.documents ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.fetches ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.findings ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.packages ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.packs ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.revision_blobs ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.revision_packages ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.revisions ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.search ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.signed_images ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON catalog.bundle_images USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.catalogs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.clusters USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.compared USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.contents USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.decoded USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.dirty USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.documents USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.fetches USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.findings USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.packages USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.packs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.revision_blobs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.revision_packages USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.revisions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.search USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.signed_images USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.upgrades USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON catalog.variants USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

ALTER TABLE catalog.upgrades ENABLE ROW LEVEL SECURITY;

ALTER TABLE catalog.variants ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.appended ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.checkpoints ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.consumers ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.events ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.parked ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.skipped ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.stream_parts ENABLE ROW LEVEL SECURITY;

ALTER TABLE eventlog.streams ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON eventlog.appended USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON eventlog.checkpoints USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON eventlog.consumers USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON eventlog.events USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON eventlog.parked USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON eventlog.skipped USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON eventlog.stream_parts USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON eventlog.streams USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

ALTER TABLE gateway.access_clusters ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.access_log ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.access_versions ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.approval_policies ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.bodies ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.break_glass ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.catalog_hooks ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.catalog_secrets ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.catalogs ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.clusters ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.credentials ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.erased_bodies ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.fleet_subscriptions ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.idempotency_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.identities ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.installplans ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.operatorgroups ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.operatorhub ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.operators ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.previews ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.quotas ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.read_audit ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.role_bindings ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.roles ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.rollout_clusters ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.rollouts ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.stream_tickets ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscription_catalogs ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscription_csvs ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscription_deprecations ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.subscriptions ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON gateway.access_clusters USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.access_log USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.access_versions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.approval_policies USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.bodies USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.break_glass USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.catalog_hooks USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.catalog_secrets USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.catalogs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.clusters USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.credentials USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.erased_bodies USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.fleet_subscriptions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.idempotency_keys USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.identities USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.installplans USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.operatorgroups USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.operatorhub USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.operators USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.previews USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.quotas USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.read_audit USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.role_bindings USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.roles USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.rollout_clusters USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.rollouts USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.stream_tickets USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.subscription_catalogs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.subscription_csvs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.subscription_deprecations USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.subscriptions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.tokens USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.webhook_deliveries USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.webhook_tests USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON gateway.webhooks USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

ALTER TABLE gateway.tokens ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.webhook_deliveries ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.webhook_tests ENABLE ROW LEVEL SECURITY;

ALTER TABLE gateway.webhooks ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.agent_processes ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.agents ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.approval_policies ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.catalogs ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.clusters ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.csv_lives ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.csvs ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.dirty ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.drifts ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.grants ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.group_observations ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.holders ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.holds ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.leftovers ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.messages ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.metadata ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.observations ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.operator_details ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.operatorgroups ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.plans ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.published ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.removals ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.replicas ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.reports ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.step_logs ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.stops ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.streams ENABLE ROW LEVEL SECURITY;

ALTER TABLE installer.subscriptions ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON installer.agent_processes USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.agents USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.approval_policies USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.catalogs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.clusters USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.csv_lives USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.csvs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.dirty USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.drifts USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.grants USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.group_observations USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.holders USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.holds USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.leftovers USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.messages USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.metadata USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.observations USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.operator_details USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.operatorgroups USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.plans USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.published USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.removals USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.replicas USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.reports USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.step_logs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.stops USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.streams USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.subscriptions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON installer.totals USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

ALTER TABLE installer.totals ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.approval_policies ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.bundle_images ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalog_clock ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalog_health ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalog_revisions ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.catalogs ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.clusters ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.content_references ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.directives ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.dirty ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.explanations ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_allowances ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_budgets ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_changes ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.fleet_subscriptions ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.gate_evaluations ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.inputs ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.installed ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.operator_groups ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.package_apis ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.plan_documents ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.plans ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.preview_scopes ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.previews ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.reads ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.rollout_clusters ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.rollouts ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.samples ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.scopes ENABLE ROW LEVEL SECURITY;

ALTER TABLE resolver.subscriptions ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON resolver.approval_policies USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.bundle_images USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.catalog_clock USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.catalog_health USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.catalog_revisions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.catalogs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.clusters USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.content_references USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.directives USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.dirty USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.explanations USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.fleet_allowances USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.fleet_budgets USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.fleet_changes USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.fleet_subscriptions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.gate_evaluations USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.inputs USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.installed USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.operator_groups USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.package_apis USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.plan_documents USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.plans USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.preview_scopes USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.previews USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.reads USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.rollout_clusters USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.rollouts USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.samples USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.scopes USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.subscriptions USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

CREATE POLICY tenant ON resolver.wanted_images USING (((tenant = ( SELECT
        CASE
            WHEN (SESSION_USER <> 'chandler_gateway_api'::name) THEN current_setting('chandler.tenant'::text, true)
            ELSE NULLIF(current_setting('chandler.tenant'::text, true), '*'::text)
        END AS "nullif")) OR ( SELECT (((SESSION_USER <> 'chandler_gateway_api'::name) AND (current_setting('chandler.tenant'::text, true) = '*'::text)) OR (CURRENT_USER = 'chandler_owner'::name)))));

ALTER TABLE resolver.wanted_images ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA catalog TO chandler_catalog_indexer;

GRANT USAGE ON SCHEMA catalog_api TO chandler_gateway;
GRANT USAGE ON SCHEMA catalog_api TO chandler_resolver;
GRANT USAGE ON SCHEMA catalog_api TO chandler_installer;
GRANT USAGE ON SCHEMA catalog_api TO chandler_catalog_indexer;

GRANT USAGE ON SCHEMA eventlog TO chandler_gateway;
GRANT USAGE ON SCHEMA eventlog TO chandler_resolver;
GRANT USAGE ON SCHEMA eventlog TO chandler_installer;
GRANT USAGE ON SCHEMA eventlog TO chandler_catalog_indexer;

GRANT USAGE ON SCHEMA eventlog_api TO chandler_gateway;
GRANT USAGE ON SCHEMA eventlog_api TO chandler_resolver;
GRANT USAGE ON SCHEMA eventlog_api TO chandler_installer;
GRANT USAGE ON SCHEMA eventlog_api TO chandler_catalog_indexer;

GRANT USAGE ON SCHEMA gateway TO chandler_gateway;

GRANT USAGE ON SCHEMA gateway_api TO chandler_gateway;
GRANT USAGE ON SCHEMA gateway_api TO chandler_resolver;
GRANT USAGE ON SCHEMA gateway_api TO chandler_installer;
GRANT USAGE ON SCHEMA gateway_api TO chandler_catalog_indexer;

GRANT USAGE ON SCHEMA installer TO chandler_installer;

GRANT USAGE ON SCHEMA installer_api TO chandler_gateway;
GRANT USAGE ON SCHEMA installer_api TO chandler_resolver;
GRANT USAGE ON SCHEMA installer_api TO chandler_installer;
GRANT USAGE ON SCHEMA installer_api TO chandler_catalog_indexer;

GRANT USAGE ON SCHEMA resolver TO chandler_resolver;

GRANT USAGE ON SCHEMA resolver_api TO chandler_gateway;
GRANT USAGE ON SCHEMA resolver_api TO chandler_resolver;
GRANT USAGE ON SCHEMA resolver_api TO chandler_installer;
GRANT USAGE ON SCHEMA resolver_api TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION catalog_api.search_packages(of_tenant text, of_revisions text[], wanted text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION catalog_api.search_packages(of_tenant text, of_revisions text[], wanted text[]) TO chandler_gateway;

REVOKE ALL ON FUNCTION eventlog.adopt_model(p_consumer text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.adopt_model(p_consumer text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.adopt_model(p_consumer text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.adopt_model(p_consumer text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.adopt_model(p_consumer text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.announce_type(p_type text, p_kind text, p_writer text, p_closes boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.append(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint, p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[], OUT version bigint, OUT repeated boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.append(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint, p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[], OUT version bigint, OUT repeated boolean) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.append(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint, p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[], OUT version bigint, OUT repeated boolean) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.append(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint, p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[], OUT version bigint, OUT repeated boolean) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.append(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint, p_once boolean, p_types text[], p_ids uuid[], p_bodies bytea[], OUT version bigint, OUT repeated boolean) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.ask_rebuild(p_consumer text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.ask_rebuild(p_consumer text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.ask_rebuild(p_consumer text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.ask_rebuild(p_consumer text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.ask_rebuild(p_consumer text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.at_work(p_consumer text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.at_work(p_consumer text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.at_work(p_consumer text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.at_work(p_consumer text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.at_work(p_consumer text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.bounded_lease(p_lease interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.check_epoch(p_epoch bigint, p_position bigint, p_source text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.checkpoints TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.checkpoints TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.checkpoints TO chandler_installer;
GRANT SELECT ON TABLE eventlog.checkpoints TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.checkpoint(p_consumer text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.checkpoint(p_consumer text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.checkpoint(p_consumer text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.checkpoint(p_consumer text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.checkpoint(p_consumer text) TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.sequencer TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.sequencer TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.sequencer TO chandler_installer;
GRANT SELECT ON TABLE eventlog.sequencer TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.clock_jump(s eventlog.sequencer, p_now timestamp with time zone, p_mono interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.done(p_tenant text, p_key uuid, p_incarnation integer, p_ids uuid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.drop_checkpoints(p_consumer text, p_prefix text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.drop_checkpoints(p_consumer text, p_prefix text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.drop_checkpoints(p_consumer text, p_prefix text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.drop_checkpoints(p_consumer text, p_prefix text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.drop_checkpoints(p_consumer text, p_prefix text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.drop_models(p_models text, p_after interval) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.drop_models(p_models text, p_after interval) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.drop_models(p_models text, p_after interval) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.drop_models(p_models text, p_after interval) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.drop_models(p_models text, p_after interval) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.drop_rebuild(p_consumer text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.drop_rebuild(p_consumer text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.drop_rebuild(p_consumer text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.drop_rebuild(p_consumer text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.drop_rebuild(p_consumer text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.exchange_keys(p_service text, p_key bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.exchange_keys(p_service text, p_key bytea) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.exchange_keys(p_service text, p_key bytea) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.exchange_keys(p_service text, p_key bytea) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.exchange_keys(p_service text, p_key bytea) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.extend() FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.extend() TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.extend() TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.extend() TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.extend() TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.for_persons(p_tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.hold_parked(p_consumer text, p_stream text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.hold_parked(p_consumer text, p_stream text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.hold_parked(p_consumer text, p_stream text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.hold_parked(p_consumer text, p_stream text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.hold_parked(p_consumer text, p_stream text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.hold_work(p_consumer text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.hold_work(p_consumer text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.hold_work(p_consumer text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.hold_work(p_consumer text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.hold_work(p_consumer text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.is_of(p_role name, p_consumer text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.kept(p_prefix text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.kept(p_prefix text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.kept(p_prefix text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.kept(p_prefix text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.kept(p_prefix text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.knows_needs() FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.lead(p_id text, p_lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.lead(p_id text, p_lease interval) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.lead(p_id text, p_lease interval) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.lead(p_id text, p_lease interval) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.lead(p_id text, p_lease interval) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.leave(p_instance text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.leave(p_instance text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.leave(p_instance text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.leave(p_instance text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.leave(p_instance text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.lives(p_consumer text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.lock_checkpoints(p_consumer text, p_prefix text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.lock_checkpoints(p_consumer text, p_prefix text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.lock_checkpoints(p_consumer text, p_prefix text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.lock_checkpoints(p_consumer text, p_prefix text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.lock_checkpoints(p_consumer text, p_prefix text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.log_time(s eventlog.sequencer, p_mono interval, p_jumped interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.make_model(p_consumer text, p_tables text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.make_model(p_consumer text, p_tables text[]) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.make_model(p_consumer text, p_tables text[]) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.make_model(p_consumer text, p_tables text[]) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.make_model(p_consumer text, p_tables text[]) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.may_begin(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.may_write(p_kind text, p_types text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.model_of(p_consumer text, OUT service text, OUT shape text, OUT model text, OUT place text, OUT version text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.need(p_what text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.note_replay() FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.one_checkpoint() FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.one_sequencer() FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.own(p_consumer text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint, p_position bigint, p_type text, p_reason text, p_attempts integer, p_wait interval, p_body bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint, p_position bigint, p_type text, p_reason text, p_attempts integer, p_wait interval, p_body bytea) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint, p_position bigint, p_type text, p_reason text, p_attempts integer, p_wait interval, p_body bytea) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint, p_position bigint, p_type text, p_reason text, p_attempts integer, p_wait interval, p_body bytea) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.park(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_epoch bigint, p_position bigint, p_type text, p_reason text, p_attempts integer, p_wait interval, p_body bytea) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts integer, p_reason text, p_wait interval, p_body bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts integer, p_reason text, p_wait interval, p_body bytea) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts integer, p_reason text, p_wait interval, p_body bytea) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts integer, p_reason text, p_wait interval, p_body bytea) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.park_again(p_consumer text, p_stream text, p_version bigint, p_attempts integer, p_reason text, p_wait interval, p_body bytea) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.position_of(p_tenant text, p_key uuid, p_incarnation integer, p_version bigint, OUT epoch bigint, OUT "position" bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.position_of(p_tenant text, p_key uuid, p_incarnation integer, p_version bigint, OUT epoch bigint, OUT "position" bigint) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.position_of(p_tenant text, p_key uuid, p_incarnation integer, p_version bigint, OUT epoch bigint, OUT "position" bigint) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.position_of(p_tenant text, p_key uuid, p_incarnation integer, p_version bigint, OUT epoch bigint, OUT "position" bigint) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.position_of(p_tenant text, p_key uuid, p_incarnation integer, p_version bigint, OUT epoch bigint, OUT "position" bigint) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.protect(target regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.raise_epoch(s eventlog.sequencer, p_epoch bigint, p_position bigint, p_source text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation integer, p_after bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation integer, p_after bigint) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation integer, p_after bigint) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation integer, p_after bigint) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.read_stream(p_tenant text, p_key uuid, p_incarnation integer, p_after bigint) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.rebuilt(p_consumer text, p_epoch bigint, p_position bigint) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.refuse(p_tenant text, p_kind text, p_key uuid, p_incarnation integer, p_subject text, p_expected bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.release_types() FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.remove_model(p_consumer text, p_place text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.resign(p_term bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.resign(p_term bigint) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.resign(p_term bigint) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.resign(p_term bigint) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.resign(p_term bigint) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.resume(p_epoch bigint, p_actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.resume(p_epoch bigint, p_actor text) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.resume(p_epoch bigint, p_actor text) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.resume(p_epoch bigint, p_actor text) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.resume(p_epoch bigint, p_actor text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.retry_parked(p_tenant text, p_consumer text, p_stream text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.retry_parked(p_tenant text, p_consumer text, p_stream text) TO chandler_gateway;

REVOKE ALL ON FUNCTION eventlog.sequence(p_term bigint, p_max integer, p_lease interval, p_mono interval, OUT moved integer, OUT epoch bigint, OUT head bigint, OUT narrow boolean, OUT jumped interval) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.sequence(p_term bigint, p_max integer, p_lease interval, p_mono interval, OUT moved integer, OUT epoch bigint, OUT head bigint, OUT narrow boolean, OUT jumped interval) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.sequence(p_term bigint, p_max integer, p_lease interval, p_mono interval, OUT moved integer, OUT epoch bigint, OUT head bigint, OUT narrow boolean, OUT jumped interval) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.sequence(p_term bigint, p_max integer, p_lease interval, p_mono interval, OUT moved integer, OUT epoch bigint, OUT head bigint, OUT narrow boolean, OUT jumped interval) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.sequence(p_term bigint, p_max integer, p_lease interval, p_mono interval, OUT moved integer, OUT epoch bigint, OUT head bigint, OUT narrow boolean, OUT jumped interval) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.session_tenant() FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.settle(s eventlog.sequencer) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.skip_parked(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_actor text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.skip_parked(p_tenant text, p_consumer text, p_stream text, p_version bigint, p_actor text, p_reason text) TO chandler_gateway;

REVOKE ALL ON FUNCTION eventlog.stalled(s eventlog.sequencer, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.take_checkpoint(p_consumer text, OUT epoch bigint, OUT "position" bigint, OUT held boolean, OUT skips boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.take_checkpoint(p_consumer text, OUT epoch bigint, OUT "position" bigint, OUT held boolean, OUT skips boolean) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.take_checkpoint(p_consumer text, OUT epoch bigint, OUT "position" bigint, OUT held boolean, OUT skips boolean) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.take_checkpoint(p_consumer text, OUT epoch bigint, OUT "position" bigint, OUT held boolean, OUT skips boolean) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.take_checkpoint(p_consumer text, OUT epoch bigint, OUT "position" bigint, OUT held boolean, OUT skips boolean) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.unaware(p_type text) FROM PUBLIC;

REVOKE ALL ON FUNCTION eventlog.unpark(p_consumer text, p_stream text, p_version bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.unpark(p_consumer text, p_stream text, p_version bigint) TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.unpark(p_consumer text, p_stream text, p_version bigint) TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.unpark(p_consumer text, p_stream text, p_version bigint) TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.unpark(p_consumer text, p_stream text, p_version bigint) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.watch_server() FROM PUBLIC;
GRANT ALL ON FUNCTION eventlog.watch_server() TO chandler_gateway;
GRANT ALL ON FUNCTION eventlog.watch_server() TO chandler_resolver;
GRANT ALL ON FUNCTION eventlog.watch_server() TO chandler_installer;
GRANT ALL ON FUNCTION eventlog.watch_server() TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION eventlog.within_log(p_epoch bigint, p_position bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION gateway.begin_sealing() FROM PUBLIC;
GRANT ALL ON FUNCTION gateway.begin_sealing() TO chandler_gateway;

REVOKE ALL ON FUNCTION gateway.end_sealing() FROM PUBLIC;
GRANT ALL ON FUNCTION gateway.end_sealing() TO chandler_gateway;

REVOKE ALL ON FUNCTION gateway.keep_access_log(p_days integer) FROM PUBLIC;
GRANT ALL ON FUNCTION gateway.keep_access_log(p_days integer) TO chandler_gateway;

REVOKE ALL ON FUNCTION gateway_api.clear_bodies() FROM PUBLIC;
GRANT ALL ON FUNCTION gateway_api.clear_bodies() TO chandler_gateway;
GRANT ALL ON FUNCTION gateway_api.clear_bodies() TO chandler_resolver;
GRANT ALL ON FUNCTION gateway_api.clear_bodies() TO chandler_installer;
GRANT ALL ON FUNCTION gateway_api.clear_bodies() TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION gateway_api.reseal_catalog_secret(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION gateway_api.reseal_catalog_secret(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION gateway_api.reseal_cluster_credential(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION gateway_api.reseal_cluster_credential(p_tenant text, p_name text, p_commitment text, p_was text, p_ciphertext bytea, p_key_id text) TO chandler_installer;

REVOKE ALL ON FUNCTION gateway_api.rotate_cluster_credential(p_tenant text, p_name text, p_was text, p_commitment text, p_salt bytea, p_ciphertext bytea, p_key_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION gateway_api.rotate_cluster_credential(p_tenant text, p_name text, p_was text, p_commitment text, p_salt bytea, p_ciphertext bytea, p_key_id text) TO chandler_installer;

REVOKE ALL ON FUNCTION gateway_api.sealed_kinds() FROM PUBLIC;
GRANT ALL ON FUNCTION gateway_api.sealed_kinds() TO chandler_gateway;
GRANT ALL ON FUNCTION gateway_api.sealed_kinds() TO chandler_resolver;
GRANT ALL ON FUNCTION gateway_api.sealed_kinds() TO chandler_installer;
GRANT ALL ON FUNCTION gateway_api.sealed_kinds() TO chandler_catalog_indexer;

REVOKE ALL ON FUNCTION installer_api.drain_replica(p_name text, p_draining boolean, p_actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION installer_api.drain_replica(p_name text, p_draining boolean, p_actor text) TO chandler_gateway;

REVOKE ALL ON FUNCTION installer_api.replicas() FROM PUBLIC;
GRANT ALL ON FUNCTION installer_api.replicas() TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.bundle_images TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.catalogs TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.clusters TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.compared TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.contents TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.decoded TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.dirty TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.documents TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.fetches TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.findings TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.packages TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.packs TO chandler_catalog_indexer;

GRANT USAGE ON SEQUENCE catalog.packs_id_seq TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.revision_blobs TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.revision_packages TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.revisions TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.search TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.signed_images TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.upgrades TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE catalog.variants TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.bundle_images TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.bundle_images TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.bundle_images TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.bundle_images TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.catalog_status TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.catalog_status TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.catalog_status TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.catalog_status TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.catalogs TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.catalogs TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.catalogs TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.catalogs TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.contents TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.contents TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.contents TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.contents TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.documents TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.documents TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.documents TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.documents TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.findings TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.findings TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.findings TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.findings TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.package_cards TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.package_cards TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.package_cards TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.package_cards TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.packages TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.packages TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.packages TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.packages TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.revision_blobs TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.revision_blobs TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.revision_blobs TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.revision_blobs TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.revision_packages TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.revision_packages TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.revision_packages TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.revision_packages TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.revisions TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.revisions TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.revisions TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.revisions TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.served TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.served TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.served TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.served TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.signed_images TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.signed_images TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.signed_images TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.signed_images TO chandler_catalog_indexer;

GRANT SELECT ON TABLE catalog_api.upgrades TO chandler_gateway;
GRANT SELECT ON TABLE catalog_api.upgrades TO chandler_resolver;
GRANT SELECT ON TABLE catalog_api.upgrades TO chandler_installer;
GRANT SELECT ON TABLE catalog_api.upgrades TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.appended TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.appended TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.appended TO chandler_installer;
GRANT SELECT ON TABLE eventlog.appended TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.coming_types TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.coming_types TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.coming_types TO chandler_installer;
GRANT SELECT ON TABLE eventlog.coming_types TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.consumers TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.consumers TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.consumers TO chandler_installer;
GRANT SELECT ON TABLE eventlog.consumers TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.epochs TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.epochs TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.epochs TO chandler_installer;
GRANT SELECT ON TABLE eventlog.epochs TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.event_types TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.event_types TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.event_types TO chandler_installer;
GRANT SELECT ON TABLE eventlog.event_types TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.events TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.events TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.events TO chandler_installer;
GRANT SELECT ON TABLE eventlog.events TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.incidents TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.incidents TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.incidents TO chandler_installer;
GRANT SELECT ON TABLE eventlog.incidents TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.installation TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.installation TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.installation TO chandler_installer;
GRANT SELECT ON TABLE eventlog.installation TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.models TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.models TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.models TO chandler_installer;
GRANT SELECT ON TABLE eventlog.models TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.needs TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.needs TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.needs TO chandler_installer;
GRANT SELECT ON TABLE eventlog.needs TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.parked TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.parked TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.parked TO chandler_installer;
GRANT SELECT ON TABLE eventlog.parked TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.partitions TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.partitions TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.partitions TO chandler_installer;
GRANT SELECT ON TABLE eventlog.partitions TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.readers TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.readers TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.readers TO chandler_installer;
GRANT SELECT ON TABLE eventlog.readers TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.rebuilds TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.rebuilds TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.rebuilds TO chandler_installer;
GRANT SELECT ON TABLE eventlog.rebuilds TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.schema_info TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.schema_info TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.schema_info TO chandler_installer;
GRANT SELECT ON TABLE eventlog.schema_info TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.server TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.server TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.server TO chandler_installer;
GRANT SELECT ON TABLE eventlog.server TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.service_keys TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.service_keys TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.service_keys TO chandler_installer;
GRANT SELECT ON TABLE eventlog.service_keys TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.skipped TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.skipped TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.skipped TO chandler_installer;
GRANT SELECT ON TABLE eventlog.skipped TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.stops TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.stops TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.stops TO chandler_installer;
GRANT SELECT ON TABLE eventlog.stops TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.stream_parts TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.stream_parts TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.stream_parts TO chandler_installer;
GRANT SELECT ON TABLE eventlog.stream_parts TO chandler_catalog_indexer;

GRANT SELECT ON TABLE eventlog.streams TO chandler_gateway;
GRANT SELECT ON TABLE eventlog.streams TO chandler_resolver;
GRANT SELECT ON TABLE eventlog.streams TO chandler_installer;
GRANT SELECT ON TABLE eventlog.streams TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.access_clusters TO chandler_gateway;

GRANT SELECT,INSERT ON TABLE gateway.access_log TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.access_versions TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.approval_policies TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.bodies TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.break_glass TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.catalog_hooks TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.catalog_secrets TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.catalogs TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.clusters TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.credentials TO chandler_gateway;

GRANT SELECT,INSERT ON TABLE gateway.erased_bodies TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.fleet_subscriptions TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.idempotency_keys TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.identities TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.installplans TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.operatorgroups TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.operatorhub TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.operators TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.previews TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.quotas TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.read_audit TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.role_bindings TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.roles TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.rollout_clusters TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.rollouts TO chandler_gateway;

GRANT SELECT ON TABLE gateway.sealed_kinds TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.stream_tickets TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.subscription_catalogs TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.subscription_csvs TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.subscription_deprecations TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.subscriptions TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.tokens TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.webhook_deliveries TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.webhook_tests TO chandler_gateway;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE gateway.webhooks TO chandler_gateway;

GRANT SELECT ON TABLE gateway_api.bodies TO chandler_gateway;
GRANT SELECT ON TABLE gateway_api.bodies TO chandler_resolver;
GRANT SELECT ON TABLE gateway_api.bodies TO chandler_installer;
GRANT SELECT ON TABLE gateway_api.bodies TO chandler_catalog_indexer;

GRANT SELECT ON TABLE gateway_api.catalog_secrets TO chandler_catalog_indexer;

GRANT SELECT ON TABLE gateway_api.cluster_credentials TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.agent_processes TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.agents TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.approval_policies TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.catalogs TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.clusters TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.csv_lives TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.csvs TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.dirty TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.drifts TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.grants TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.group_observations TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.holders TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.holds TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.leftovers TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.messages TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.metadata TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.observations TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.operator_details TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.operatorgroups TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.plans TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.published TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.removals TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.replicas TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.reports TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.step_logs TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.stops TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.streams TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.subscriptions TO chandler_installer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE installer.totals TO chandler_installer;

GRANT SELECT ON TABLE installer_api.cluster_apis TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.cluster_apis TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.cluster_apis TO chandler_installer;
GRANT SELECT ON TABLE installer_api.cluster_apis TO chandler_catalog_indexer;

GRANT SELECT ON TABLE installer_api.content_references TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.content_references TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.content_references TO chandler_installer;
GRANT SELECT ON TABLE installer_api.content_references TO chandler_catalog_indexer;

GRANT SELECT ON TABLE installer_api.drifts TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.drifts TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.drifts TO chandler_installer;
GRANT SELECT ON TABLE installer_api.drifts TO chandler_catalog_indexer;

GRANT SELECT ON TABLE installer_api.key_uses TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.key_uses TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.key_uses TO chandler_installer;
GRANT SELECT ON TABLE installer_api.key_uses TO chandler_catalog_indexer;

GRANT SELECT ON TABLE installer_api.leftovers TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.leftovers TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.leftovers TO chandler_installer;
GRANT SELECT ON TABLE installer_api.leftovers TO chandler_catalog_indexer;

GRANT SELECT ON TABLE installer_api.messages TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.messages TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.messages TO chandler_installer;
GRANT SELECT ON TABLE installer_api.messages TO chandler_catalog_indexer;

GRANT SELECT ON TABLE installer_api.operator_details TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.operator_details TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.operator_details TO chandler_installer;
GRANT SELECT ON TABLE installer_api.operator_details TO chandler_catalog_indexer;

GRANT SELECT ON TABLE installer_api.step_logs TO chandler_gateway;
GRANT SELECT ON TABLE installer_api.step_logs TO chandler_resolver;
GRANT SELECT ON TABLE installer_api.step_logs TO chandler_installer;
GRANT SELECT ON TABLE installer_api.step_logs TO chandler_catalog_indexer;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.approval_policies TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.bundle_images TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.catalog_clock TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.catalog_health TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.catalog_revisions TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.catalogs TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.clusters TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.content_references TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.directives TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.dirty TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.explanations TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.fleet_allowances TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.fleet_budgets TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.fleet_changes TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.fleet_subscriptions TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.gate_evaluations TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.inputs TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.installed TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.operator_groups TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.package_apis TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.plan_documents TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.plans TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.preview_scopes TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.previews TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.reads TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.rollout_clusters TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.rollouts TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.samples TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.scopes TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.subscriptions TO chandler_resolver;

GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLE resolver.wanted_images TO chandler_resolver;

GRANT SELECT ON TABLE resolver_api.content_references TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.content_references TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.content_references TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.content_references TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.explanations TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.explanations TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.explanations TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.explanations TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.fleet_changes TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.fleet_changes TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.fleet_changes TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.fleet_changes TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.fleet_held TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.fleet_held TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.fleet_held TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.fleet_held TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.fleet_waits TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.fleet_waits TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.fleet_waits TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.fleet_waits TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.plan_documents TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.plan_documents TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.plan_documents TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.plan_documents TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.platform_limits TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.platform_limits TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.platform_limits TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.platform_limits TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.samples TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.samples TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.samples TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.samples TO chandler_catalog_indexer;

GRANT SELECT ON TABLE resolver_api.wanted_images TO chandler_gateway;
GRANT SELECT ON TABLE resolver_api.wanted_images TO chandler_resolver;
GRANT SELECT ON TABLE resolver_api.wanted_images TO chandler_installer;
GRANT SELECT ON TABLE resolver_api.wanted_images TO chandler_catalog_indexer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA catalog GRANT USAGE ON SEQUENCES  TO chandler_catalog_indexer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA catalog GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLES  TO chandler_catalog_indexer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA catalog_api GRANT SELECT ON TABLES  TO chandler_gateway;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA catalog_api GRANT SELECT ON TABLES  TO chandler_resolver;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA catalog_api GRANT SELECT ON TABLES  TO chandler_installer;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA catalog_api GRANT SELECT ON TABLES  TO chandler_catalog_indexer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA eventlog_api GRANT SELECT ON TABLES  TO chandler_gateway;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA eventlog_api GRANT SELECT ON TABLES  TO chandler_resolver;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA eventlog_api GRANT SELECT ON TABLES  TO chandler_installer;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA eventlog_api GRANT SELECT ON TABLES  TO chandler_catalog_indexer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA gateway GRANT USAGE ON SEQUENCES  TO chandler_gateway;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA gateway GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLES  TO chandler_gateway;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA gateway_api GRANT SELECT ON TABLES  TO chandler_gateway;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA gateway_api GRANT SELECT ON TABLES  TO chandler_resolver;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA gateway_api GRANT SELECT ON TABLES  TO chandler_installer;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA gateway_api GRANT SELECT ON TABLES  TO chandler_catalog_indexer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA installer GRANT USAGE ON SEQUENCES  TO chandler_installer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA installer GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLES  TO chandler_installer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA installer_api GRANT SELECT ON TABLES  TO chandler_gateway;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA installer_api GRANT SELECT ON TABLES  TO chandler_resolver;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA installer_api GRANT SELECT ON TABLES  TO chandler_installer;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA installer_api GRANT SELECT ON TABLES  TO chandler_catalog_indexer;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA resolver GRANT USAGE ON SEQUENCES  TO chandler_resolver;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA resolver GRANT SELECT,INSERT,DELETE,TRUNCATE,UPDATE ON TABLES  TO chandler_resolver;

ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA resolver_api GRANT SELECT ON TABLES  TO chandler_gateway;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA resolver_api GRANT SELECT ON TABLES  TO chandler_resolver;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA resolver_api GRANT SELECT ON TABLES  TO chandler_installer;
ALTER DEFAULT PRIVILEGES FOR ROLE chandler_owner IN SCHEMA resolver_api GRANT SELECT ON TABLES  TO chandler_catalog_indexer;
