-- check_event compares an event that somebody has seen with the record. check_epoch sees only positions
-- beyond the head; but a record that lost commits goes on, and soon holds other events at the same
-- positions. Where the record holds another event or none there, it has lost that one: the epoch is
-- raised and effects stop. A position of an epoch before the current one says nothing new: what that
-- epoch lost was noticed when the next one was raised. It returns the new epoch, or null where nothing
-- is amiss.
create function eventlog.check_event(p_epoch bigint, p_position bigint, p_hash bytea, p_source text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s eventlog.sequencer;
  e bigint;
begin
  if exists (select from eventlog.events v where v.position = p_position and v.epoch = p_epoch and v.hash = p_hash) then
    return null; -- the usual answer takes no lock
  end if;
  select * into s from eventlog.sequencer for update;
  if p_epoch < s.epoch
      or exists (select from eventlog.events v where v.position = p_position and v.epoch = p_epoch and v.hash = p_hash) then
    return null;
  end if;
  e := greatest(s.epoch, p_epoch) + 1;
  insert into eventlog.epochs values (e, s.position + 1, clock_timestamp(), p_source, p_epoch, p_position);
  insert into eventlog.stops (epoch, reason, source, since, seen_epoch, seen_position, head_epoch, head_position)
    values (e, 'RecordLostCommits', p_source, clock_timestamp(), p_epoch, p_position, s.epoch, s.position);
  update eventlog.sequencer set epoch = e;
  return e;
end $$;

revoke execute on function eventlog.check_event(bigint, bigint, bytea, text) from public;
grant execute on function eventlog.check_event(bigint, bigint, bytea, text)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
