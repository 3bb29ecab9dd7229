-- compatible: 8
-- What every process that reads the log has to know from now on, beside event types: a form in which something outside of
-- the log is stored. It begins once all live readers know it, and a reader of before is refused afterwards. Not a
-- tenant's data.
create table eventlog.needs (
  what  text        primary key,
  since timestamptz not null default now()
);
comment on table eventlog.needs is 'what every process that reads the log has to know, and since when';
grant select on eventlog.needs to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- need begins that, or says that a live reader does not know it yet. A reader that begins in this moment is waited for.
-- It is called by functions that say what it is about; no role calls it.
create function eventlog.need(p_what text) returns boolean
language plpgsql as $$
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
revoke execute on function eventlog.need(text) from public;

-- knows_needs refuses a reader that does not know what is needed.
create function eventlog.knows_needs() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
revoke execute on function eventlog.knows_needs() from public;
create trigger knows_needs before insert or update on eventlog.readers for each row execute function eventlog.knows_needs();
