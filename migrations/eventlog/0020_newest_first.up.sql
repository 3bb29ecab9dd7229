-- compatible: 8
-- What a snapshot that stays open costs those who go on writing: no look at the newest version of a row that changes all the
-- time steps over the dead ones. A number that rises with each change is the last column of its primary key, so that the
-- newest is found first. No unique index may be without it: entering a version would look at all dead ones of the same key.

-- In the order in which those who read both take them.
lock table eventlog.sequencer, eventlog.checkpoints in access exclusive mode;

alter table eventlog.checkpoints add column revision bigint not null default 0;
comment on column eventlog.checkpoints.revision is 'rises with each move; the newest version of the row is found by it';
alter table eventlog.checkpoints drop constraint checkpoints_pkey, add primary key (consumer, tenant, revision);

-- That a consumer has one checkpoint is kept by a table in which nothing changes while it has one.
create table eventlog.consumers (
  consumer text not null,
  tenant   text not null,
  primary key (consumer, tenant)
);
comment on table eventlog.consumers is 'which consumers have a checkpoint';
select eventlog.protect('eventlog.consumers');
grant select on eventlog.consumers to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
insert into eventlog.consumers (consumer, tenant) select c.consumer, c.tenant from eventlog.checkpoints c;

-- one_checkpoint leaves out the row of a consumer that has one already, as "on conflict do nothing" did by the primary key. It
-- waits for who makes or deletes one in this moment.
create function eventlog.one_checkpoint() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    delete from eventlog.consumers c where c.consumer = old.consumer and c.tenant = old.tenant;
    return old;
  end if;
  insert into eventlog.consumers (consumer, tenant) values (new.consumer, new.tenant) on conflict do nothing;
  return case when found then new end;
end $$;
revoke execute on function eventlog.one_checkpoint() from public;
create trigger one before insert or delete on eventlog.checkpoints for each row execute function eventlog.one_checkpoint();

-- checkpoint is that of a consumer; nothing where it has none.
create function eventlog.checkpoint(p_consumer text) returns setof eventlog.checkpoints
language sql stable as $$
  select c.* from eventlog.checkpoints c where c.consumer = p_consumer and c.tenant = '*' order by c.revision desc limit 1
$$;
revoke execute on function eventlog.checkpoint(text) from public;
grant execute on function eventlog.checkpoint(text)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;

-- at_work, as before, of the newest version.
create or replace function eventlog.at_work(p_consumer text) returns boolean
language sql stable as $$
  select exists (select from eventlog.checkpoint(p_consumer) c where c.replay_to is null)
$$;

-- note_replay, as before, of the newest version.
create or replace function eventlog.note_replay() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    select greatest(s.position, new.replay_to) into new.replay_to from eventlog.sequencer s order by s.revision desc limit 1;
  elsif new.position < old.position then
    perform pg_advisory_xact_lock(hashtext('replay/' || new.consumer));
    new.replay_to := greatest(old.position, old.replay_to);
  end if;
  if new.position >= new.replay_to then
    new.replay_to := null;
  end if;
  return new;
end $$;

-- take_checkpoint, as before, of the newest version.
create or replace function eventlog.take_checkpoint(p_consumer text, out epoch bigint, out "position" bigint,
  out held boolean, out skips boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off -- a plan made while the table was small must not read all dead versions later
as $$
begin
  perform eventlog.own(p_consumer);
  held := false;
  skips := false;
  for i in 1..2 loop
    select c.epoch, c.position, exists (select from eventlog.skipped s where s.consumer = p_consumer and s.position > c.position)
      into take_checkpoint.epoch, take_checkpoint.position, skips from eventlog.checkpoints c
      where c.consumer = p_consumer and c.tenant = '*' order by c.revision desc limit 1 for update skip locked;
    if found then return; end if;
    insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
    exit when not found;
  end loop;
  held := true;
end $$;

-- move_checkpoint, as before, of the newest version.
create or replace function eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  newest bigint;
begin
  perform eventlog.own(p_consumer);
  perform eventlog.within_log(p_epoch, p_position);
  select c.revision into newest from eventlog.checkpoints c
    where c.consumer = p_consumer and c.tenant = '*' order by c.revision desc limit 1 for update;
  update eventlog.checkpoints c set epoch = p_epoch, position = p_position, updated = now(), revision = newest + 1
    where c.consumer = p_consumer and c.tenant = '*' and c.revision = newest and (c.epoch, c.position) <= (p_epoch, p_position);
  if not found then
    raise exception 'the checkpoint of % moves forward only, not to %-%', p_consumer, p_epoch, p_position using errcode = 'CH003';
  end if;
end $$;

-- The sequencer's primary key was the same for all versions of its row: each move looked at those of all moves before it.
alter table eventlog.sequencer drop constraint sequencer_pkey;
drop index eventlog.sequencer_newest;
alter table eventlog.sequencer add primary key (revision);

create function eventlog.one_sequencer() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'eventlog.sequencer has one row, which the migrations made' using errcode = 'unique_violation';
end $$;
revoke execute on function eventlog.one_sequencer() from public;
create trigger one before insert on eventlog.sequencer for each row execute function eventlog.one_sequencer();
