-- The replicas of the installer that host executors, as each says of itself every few seconds. From the rows of those
-- that live each comes to the same placement. Not a tenant's data; tenant is '*'.
create table installer.replicas (
  tenant   text        not null default '*',
  name     text        not null, -- as in the leases of clusters
  capacity int         not null, -- the weight of clusters that it takes; 0: any
  draining boolean     not null default false,
  heard    timestamptz not null,
  clusters int         not null default 0, -- whose executors it runs
  load     int         not null default 0, -- their weight
  unplaced int         not null default 0, -- clusters of the fleet for which it finds no replica with room
  primary key (tenant, name)
);
comment on table installer.replicas is 'replicas of the installer that host executors';
select eventlog.protect('installer.replicas');
