-- How often a holder says that it is there: agents do so once a minute.
-- compatible: 25
alter table installer.holders add column heartbeat integer not null default 15;
comment on column installer.holders.heartbeat is 'seconds between two reports of the cluster in which nothing changes, as its holder says; two without one, and it counts as gone';
