-- Reports count only under a hold that was registered: whoever can write to the bus gives himself no epoch.

-- The sessions of executors with their keys, and the epoch in which each holds its cluster. sequence is the number of
-- the last report about the cluster as a whole that was taken from it: an older one that comes again counts for nothing.
create table installer.holds (
  tenant     text        not null,
  cluster_id uuid        not null,
  session    uuid        not null,
  epoch      bigint      not null, -- 0: it does not hold the cluster
  holder     text        not null,
  public_key bytea       not null,
  sequence   bigint      not null default 0,
  registered timestamptz not null default now(),
  primary key (tenant, cluster_id, session)
);
comment on table installer.holds is 'sessions of executors, with their keys';
select eventlog.protect('installer.holds');

-- Who holds a cluster is what was registered last, no longer the highest epoch that any report has named.
alter table installer.holders
  add column session uuid, -- null: nobody has registered
  drop column back;
update installer.holders set epoch = 0;
comment on table installer.holders is 'who holds each cluster, as registered';

-- Reports are ordered by their numbers within a session. reported is the clock of the executor, for people.
alter table installer.reports
  add column session  uuid,
  add column sequence bigint not null default 0;
update installer.reports set epoch = 0;
