-- compatible: 8
-- Which version of a read model its tables are of is said by the one checkpoint that it has: who puts tables in place takes
-- the checkpoints of all other versions away. And live readers say which versions they keep, so that none is replaced by an
-- older one while it lives.

-- drop_checkpoints takes away the checkpoints whose names begin with p_prefix, but for p_consumer's.
create function eventlog.drop_checkpoints(p_consumer text, p_prefix text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.own(p_prefix);
  perform eventlog.own(c.consumer) from eventlog.checkpoints c where starts_with(c.consumer, p_prefix);
  delete from eventlog.checkpoints c where starts_with(c.consumer, p_prefix) and c.consumer <> p_consumer;
end $$;

-- kept is the newest version of a read model that a live reader keeps, 0 where none says so. p_prefix is that of its
-- checkpoints, such as "projection/gateway.clusters/v"; readers name what they keep in that form among the types they know.
create function eventlog.kept(p_prefix text) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(max(substring(k.name from '/v([0-9]{1,6})$')::int), 0)
  from eventlog.readers r cross join unnest(r.types) k(name)
  where r.seen > clock_timestamp() - interval '1 minute' and starts_with(k.name, p_prefix)
$$;

revoke execute on function eventlog.drop_checkpoints(text, text), eventlog.kept(text) from public;
grant execute on function eventlog.drop_checkpoints(text, text), eventlog.kept(text)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
