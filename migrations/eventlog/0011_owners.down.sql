create or replace function eventlog.lock_checkpoints(p_consumer text, p_prefix text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.own(p_prefix);
  insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
  perform from eventlog.checkpoints c where c.consumer = p_consumer or starts_with(c.consumer, p_prefix)
    order by c.consumer for update;
end $$;

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

create or replace function eventlog.attend(p_instance text, p_service text, p_version text, p_types text[]) returns text[]
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

create or replace function eventlog.leave(p_instance text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from eventlog.readers where instance = p_instance;
  perform eventlog.release_types();
end $$;

drop function eventlog.stalled(eventlog.sequencer, timestamptz);
alter table eventlog.sequencer drop column waiting, drop column waiting_since;
alter table eventlog.readers drop column role;
