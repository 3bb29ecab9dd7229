-- In the order in which those who read both take them.
lock table eventlog.sequencer, eventlog.checkpoints in access exclusive mode;

create or replace function eventlog.move_checkpoint(p_consumer text, p_epoch bigint, p_position bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  perform eventlog.within_log(p_epoch, p_position);
  update eventlog.checkpoints c set epoch = p_epoch, position = p_position, updated = now()
    where c.consumer = p_consumer and c.tenant = '*' and (c.epoch, c.position) <= (p_epoch, p_position);
  if not found then
    raise exception 'the checkpoint of % moves forward only, not to %-%', p_consumer, p_epoch, p_position using errcode = 'CH003';
  end if;
end $$;
create or replace function eventlog.take_checkpoint(p_consumer text, out epoch bigint, out "position" bigint,
  out held boolean, out skips boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform eventlog.own(p_consumer);
  held := false;
  skips := false;
  for i in 1..2 loop
    select c.epoch, c.position, exists (select from eventlog.skipped s where s.consumer = p_consumer and s.position > c.position)
      into take_checkpoint.epoch, take_checkpoint.position, skips from eventlog.checkpoints c
      where c.consumer = p_consumer and c.tenant = '*' for update skip locked;
    if found then return; end if;
    insert into eventlog.checkpoints (consumer, tenant, epoch, position) values (p_consumer, '*', 1, 0) on conflict do nothing;
    exit when not found;
  end loop;
  held := true;
end $$;
create or replace function eventlog.note_replay() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    select greatest(s.position, new.replay_to) into new.replay_to from eventlog.sequencer s;
  elsif new.position < old.position then
    perform pg_advisory_xact_lock(hashtext('replay/' || new.consumer));
    new.replay_to := greatest(old.position, old.replay_to);
  end if;
  if new.position >= new.replay_to then
    new.replay_to := null;
  end if;
  return new;
end $$;
create or replace function eventlog.at_work(p_consumer text) returns boolean
language sql stable as $$
  select exists (select from eventlog.checkpoints c
    where c.consumer = p_consumer and c.tenant = '*' and c.replay_to is null)
$$;
drop function eventlog.checkpoint(text);
drop trigger one on eventlog.checkpoints;
drop function eventlog.one_checkpoint();
drop table eventlog.consumers;
alter table eventlog.checkpoints drop constraint checkpoints_pkey, drop column revision, add primary key (consumer, tenant);
drop trigger one on eventlog.sequencer;
drop function eventlog.one_sequencer();
alter table eventlog.sequencer drop constraint sequencer_pkey, add primary key (one);
create index sequencer_newest on eventlog.sequencer (revision desc);
