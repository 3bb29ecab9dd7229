-- The record (DESIGN D1): heads of streams, the inbox of the sequencer, the log, and what reads it.

-- protect puts the one policy of all tables on a table: a session sees and writes rows of its own
-- tenant, or of all tenants where its role carries '*'. Migrations of every schema call it.
create function eventlog.protect(target regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  execute format('alter table %s enable row level security', target);
  execute format($policy$create policy tenant on %s
    using (current_setting('chandler.tenant', true) in ('*', tenant))$policy$, target);
end $$;
revoke execute on function eventlog.protect(regclass) from public;

-- What this schema is and which binaries it serves. Not a tenant's data.
create table eventlog.schema_info (
  schema        text primary key,
  version       bigint not null,
  oldest_binary text not null,
  migrated      timestamptz not null
);
comment on table eventlog.schema_info is 'version of each schema, and the oldest binary that it serves';

-- The registry of event types, copied from the code by the migration command. Not a tenant's data.
create table eventlog.event_types (
  type   text primary key,
  kind   text not null,
  writer text not null,
  closes boolean not null,
  role   text not null generated always as ('chandler_' || replace(writer, '-', '_')) stored
);
comment on table eventlog.event_types is 'every event type, the kind of stream it stands in, the one service that may write it, whether it ends its stream';

-- Heads of streams: append compares and sets version here. It also checks the values, since a check
-- constraint is parsed again at every statement, which took a tenth of the time of an append.
create table eventlog.streams (
  tenant      text    not null,
  kind        text    not null,
  key         uuid    not null,
  incarnation int     not null,
  subject     text    not null,
  version     bigint  not null,
  closed      boolean not null,
  primary key (tenant, key, incarnation)
) with (fillfactor = 70); -- room on the page, so that a new version needs no new index entry
comment on table eventlog.streams is 'where each stream stands; append compares and sets version';
select eventlog.protect('eventlog.streams');

-- The inbox: committed events without a position yet. Every row passes through, so dead rows pile up
-- as fast as the log grows: vacuum by count, not by share, without pauses, and never truncate, since
-- that needs a lock that would hold up every append.
create table eventlog.appended (
  id          bigint  generated always as identity primary key,
  tenant      text    not null,
  kind        text    not null,
  stream_key  uuid    not null,
  incarnation int     not null,
  version     bigint  not null,
  type        text    not null,
  subject     text    not null,
  event_id    uuid    not null,
  body        bytea   not null,
  hash        bytea   not null,
  unique (stream_key, incarnation, version)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
comment on table eventlog.appended is 'committed events that have no position yet';
select eventlog.protect('eventlog.appended');

-- The log. body holds the exact bytes of the envelope, hash their SHA-256.
create table eventlog.events (
  position    bigint      not null,
  epoch       bigint      not null,
  recorded    timestamptz not null,
  tenant      text        not null,
  kind        text        not null,
  stream_key  uuid        not null,
  incarnation int         not null,
  version     bigint      not null,
  type        text        not null,
  subject     text        not null,
  event_id    uuid        not null,
  body        bytea       not null,
  hash        bytea       not null,
  primary key (position)
) partition by range (position);
comment on table eventlog.events is 'the record: dense positions, never changed, never deleted';
create index events_stream on eventlog.events (stream_key, incarnation, version);
select eventlog.protect('eventlog.events');

-- Epochs: raised when somebody has seen a position that the record does not hold. Not a tenant's data.
create table eventlog.epochs (
  epoch          bigint primary key,
  first_position bigint      not null,
  raised         timestamptz not null,
  source         text        not null,
  seen_epoch     bigint,
  seen_position  bigint
);
comment on table eventlog.epochs is 'each epoch, the first position in it and who had seen more than the record held';
insert into eventlog.epochs values (1, 1, now(), 'bootstrap', null, null);

-- The sequencer's one row: who leads until when, and where the log stands. Not a tenant's data.
create table eventlog.sequencer (
  one            boolean primary key default true check (one),
  term           bigint      not null default 0,
  leader         text        not null default '',
  until          timestamptz not null default '-infinity',
  epoch          bigint      not null default 1,
  position       bigint      not null default 0,
  recorded       timestamptz not null default '-infinity',
  partitioned    bigint      not null default 0, -- last position that has a partition
  -- One million events are about 1 GB with their indexes: they fit in memory, one partition can be
  -- archived in minutes, and a log of 100 million has 100 partitions, few enough for the planner.
  partition_rows bigint      not null default 1000000 check (partition_rows > 0)
) with (fillfactor = 10); -- one row, changed at every batch: many versions of it fit on its page
comment on table eventlog.sequencer is 'who gives positions, and the last one given';
insert into eventlog.sequencer default values;

-- How far each consumer has come. Its effects commit in the same transaction.
create table eventlog.checkpoints (
  consumer text        not null,
  tenant   text        not null default '*',
  epoch    bigint      not null,
  position bigint      not null,
  updated  timestamptz not null default now(),
  primary key (consumer, tenant)
) with (fillfactor = 50);
comment on table eventlog.checkpoints is 'the last position whose effects a consumer has committed';
select eventlog.protect('eventlog.checkpoints');

-- What a consumer could not take, and the later events of that stream behind it.
create table eventlog.parked (
  tenant     text        not null,
  consumer   text        not null,
  stream     text        not null,
  version    bigint      not null,
  epoch      bigint      not null,
  position   bigint      not null,
  type       text        not null,
  reason     text        not null,
  attempts   int         not null default 0,
  since      timestamptz not null default now(),
  next_retry timestamptz not null default now(),
  primary key (consumer, stream, version)
);
comment on table eventlog.parked is 'events that a consumer could not take; retried, never skipped';
select eventlog.protect('eventlog.parked');

-- Why effects are stopped. A stop without "resumed" is in force.
create table eventlog.stops (
  epoch         bigint      not null primary key references eventlog.epochs,
  tenant        text        not null default '*',
  reason        text        not null,
  source        text        not null,
  since         timestamptz not null,
  seen_epoch    bigint      not null,
  seen_position bigint      not null,
  head_epoch    bigint      not null,
  head_position bigint      not null,
  resumed       timestamptz,
  resumed_by    text
);
comment on table eventlog.stops is 'lost commits were noticed: no effect in any cluster until a person resumes';
