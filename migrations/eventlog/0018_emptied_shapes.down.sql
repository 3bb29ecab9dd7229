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
