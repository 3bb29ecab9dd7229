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

do $$
declare
  m eventlog.models;
begin
  for m in select * from eventlog.models loop
    perform eventlog.remove_model(m.consumer, m.place);
  end loop;
end $$;
drop function eventlog.drop_models(text, interval), eventlog.adopt_model(text), eventlog.make_model(text, text[]),
  eventlog.remove_model(text, text), eventlog.lives(text), eventlog.model_of(text);
drop table eventlog.models;
