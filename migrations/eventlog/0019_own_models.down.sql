create or replace function eventlog.lives(p_consumer text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select exists (select from eventlog.readers r where r.seen > clock_timestamp() - interval '1 minute' and p_consumer = any (r.types))
$$;

create or replace function eventlog.kept(p_prefix text) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(max(substring(k.name from '/v([0-9]{1,6})$')::int), 0)
  from eventlog.readers r cross join unnest(r.types) k(name)
  where r.seen > clock_timestamp() - interval '1 minute' and starts_with(k.name, p_prefix)
$$;

create or replace function eventlog.make_model(p_consumer text, p_tables text[]) returns text
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

create or replace function eventlog.drop_models(p_models text, p_after interval) returns setof text
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
  end loop;
end $$;

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
drop function eventlog.is_of(name, text);
