-- compatible: 8
-- Read models of several versions side by side (ADR 0043). Each version has a schema of its own, such as
-- gateway_clusters_v7, with tables in the shape that the migrations of the service's schema give, and a checkpoint that is
-- named projection/gateway.clusters/7. Releases of before have the tables of the service's schema, and the checkpoint
-- projection/gateway.clusters/v7: neither touches what the other has.

create table eventlog.models (
  consumer text        primary key, -- the name of its checkpoint
  model    text        not null,    -- what the checkpoints of all its versions begin with
  place    text        not null unique, -- the schema of its tables
  made     timestamptz not null default clock_timestamp(),
  used     timestamptz not null default clock_timestamp()
);
comment on table eventlog.models is 'versions of read models that have tables; used is when a process that keeps one was last seen';
create index models_model on eventlog.models (model);
grant select on eventlog.models to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- model_of takes the name of a version apart, and refuses one that is none, or another service's.
create function eventlog.model_of(p_consumer text, out service text, out shape text, out model text, out place text, out version text)
language plpgsql stable as $$
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
end $$;

-- lives says whether a process that keeps a version was seen within the last minute.
create function eventlog.lives(p_consumer text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select exists (select from eventlog.readers r where r.seen > clock_timestamp() - interval '1 minute' and p_consumer = any (r.types))
$$;

-- remove_model takes a version away, with its checkpoint and what is parked. What a person has skipped stays on record.
create function eventlog.remove_model(p_consumer text, p_place text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from eventlog.checkpoints c where c.consumer = p_consumer for update; -- who folds just then ends first
  execute format('drop schema if exists %I cascade', p_place);
  delete from eventlog.checkpoints c where c.consumer = p_consumer;
  delete from eventlog.parked p where p.consumer = p_consumer;
  delete from eventlog.rebuilds r where r.consumer = p_consumer;
  delete from eventlog.models m where m.consumer = p_consumer;
end $$;

-- make_model makes the tables of a version, empty, and returns their schema. They have the shape of the tables of the same
-- names in the service's schema, and belong to the owner: the service reads and writes their rows. A model has three versions at
-- most, the present one, the one before and the next: a fourth takes the place of the one that was not in use for longest,
-- and is refused while all are.
create function eventlog.make_model(p_consumer text, p_tables text[]) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  versions constant int := 3;
  tables   constant int := 8;
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

-- adopt_model has a version go on from where a release of before has brought the tables of the service's schema, whose rows
-- the caller copies in the same transaction and snapshot: checkpoint, and what is parked and skipped. It says false where
-- those tables are of another version, or of none.
create function eventlog.adopt_model(p_consumer text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
end $$;

-- drop_models drops the tables of those versions of a service's read models that no live process keeps, and that none has
-- kept for p_after, and returns their names; p_models is such as "projection/gateway.". The tables that releases of before
-- keep in the service's schema are emptied by the same rule, once a version with a schema of its own has been there for as
-- long; such a release makes them anew when it comes again: the checkpoint v999999 says to it that they are of another
-- version. Nobody waits for a table here longer than three seconds.
create function eventlog.drop_models(p_models text, p_after interval) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '3s' as $$
declare
  least_after constant interval := interval '1 hour'; -- a release that is taken back at once finds its tables
  now timestamptz := clock_timestamp();
  m   record;
  was text[];
  t   text;
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
    perform eventlog.remove_model(m.consumer, m.place);
    return next m.consumer;
  end loop;
  for m in
    select distinct on (e.model) e.model, e.place, o.shape from eventlog.models e cross join eventlog.model_of(e.consumer) o
    where starts_with(e.model, p_models) and e.made < now - p_after order by e.model, e.made
  loop
    was := array(select c.consumer from eventlog.checkpoints c
      where starts_with(c.consumer, m.model || 'v') and c.consumer <> m.model || 'v999999' order by 1 for update);
    continue when cardinality(was) = 0 or exists (select from eventlog.checkpoints c join unnest(was) w on w = c.consumer
      where c.updated > now - p_after or eventlog.lives(c.consumer));
    for t in select c.relname from pg_class c where c.relnamespace = m.place::regnamespace and c.relkind = 'r' order by 1 loop
      execute format('truncate %I.%I', m.shape, t);
    end loop;
    delete from eventlog.checkpoints c where c.consumer = any (was);
    delete from eventlog.parked p where p.consumer = any (was);
    insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (m.model || 'v999999', '*', 1, 0)
      on conflict do nothing;
    return query select unnest(was);
  end loop;
end $$;

-- attend, as before; and it says which versions of read models are in use.
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
  -- Not each time: whoever looks asks for hours. A row that is locked is being noted by another process.
  update eventlog.models m set used = now where m.consumer in (select u.consumer from eventlog.models u
    where u.consumer = any (p_types) and u.used < now - interval '1 minute' for update skip locked);
  delete from eventlog.readers r where r.seen < now - interval '1 day' or r.role = session_user and r.instance in
    (select o.instance from eventlog.readers o where o.role = session_user order by o.seen desc, o.instance offset most);
  return array(select t.type from eventlog.event_types t where not t.type = any (p_types) order by 1);
end $$;

revoke execute on function eventlog.model_of(text), eventlog.lives(text), eventlog.remove_model(text, text),
  eventlog.make_model(text, text[]), eventlog.adopt_model(text), eventlog.drop_models(text, interval) from public;
grant execute on function eventlog.make_model(text, text[]), eventlog.adopt_model(text), eventlog.drop_models(text, interval)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
