-- compatible: 23
-- Who asked the API for what, from where, and what was answered (ADR 0037). A gateway adds to it and reads it; nobody
-- changes a row, and what is old goes by whole days.
create table gateway.access_log (
  tenant  text        not null,
  at      timestamptz not null, -- when the request began
  id      uuid        not null,
  actor   text        not null, -- '' where nobody was recognised
  token   text        not null, -- id
  role    text        not null,
  address text        not null, -- of the client, as far as trusted proxies tell it
  method  text        not null,
  route   text        not null, -- pattern
  path    text        not null, -- '' where nobody was recognised
  status  int         not null,
  took_us bigint      not null, -- microseconds until the answer was complete; of a stream, until it ended
  request text        not null, -- id, as in the log of the gateway
  count   bigint      not null check (count > 0), -- of refused requests that are one row
  primary key (tenant, at, id)
) partition by range (at);
comment on table gateway.access_log is 'requests to the API; refused ones from one address are counted together; a row of status 0 counts those that were not kept';
select eventlog.protect('gateway.access_log');
create index access_log_actor on gateway.access_log (tenant, actor, at);
revoke update, delete, truncate on gateway.access_log from chandler_gateway;

-- keep_access_log makes the partitions of the days around today, and drops those that ended more than so many days ago;
-- none where p_days is null. It returns how many were dropped. A gateway that is taken over cannot drop the last month.
create function gateway.keep_access_log(p_days int) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
revoke execute on function gateway.keep_access_log(int) from public;
grant execute on function gateway.keep_access_log(int) to chandler_gateway;
