-- compatible: 8
-- Rebuilds of consumers' tables, which administrators ask for and the services carry out.

-- Not a tenant's data.
create table eventlog.rebuilds (
  consumer text        primary key,
  asked    timestamptz not null default now(),
  role     text        not null default session_user,
  began    timestamptz,            -- of the present attempt
  position bigint,                 -- that it has reached
  failed   text                    -- why the last attempt ended
);
comment on table eventlog.rebuilds is 'rebuilds that are asked for and not done yet';
grant select on eventlog.rebuilds to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- ask_rebuild asks for a rebuild of a consumer, and is false where none of that name has begun. Whether one is asked for
-- already makes no difference.
create function eventlog.ask_rebuild(p_consumer text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  insert into eventlog.rebuilds (consumer) select c.consumer from eventlog.checkpoints c where c.consumer = p_consumer
    on conflict do nothing;
  return exists (select from eventlog.checkpoints c where c.consumer = p_consumer);
end $$;

-- drop_rebuild takes the wish back, or says that it is done: in the transaction that puts the tables in place.
create function eventlog.drop_rebuild(p_consumer text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  delete from eventlog.rebuilds r where r.consumer = p_consumer;
  return found;
end $$;

-- note_rebuild notes where a rebuild is, or why it ended. It is false where nobody wants it any more.
create function eventlog.note_rebuild(p_consumer text, p_position bigint, p_failed text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  update eventlog.rebuilds r set position = p_position, failed = coalesce(p_failed, r.failed),
      began = case when p_position = 0 then now() else r.began end
    where r.consumer = p_consumer;
  return found;
end $$;

revoke execute on function eventlog.ask_rebuild(text), eventlog.drop_rebuild(text),
  eventlog.note_rebuild(text, bigint, text) from public;
grant execute on function eventlog.ask_rebuild(text), eventlog.drop_rebuild(text), eventlog.note_rebuild(text, bigint, text)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
