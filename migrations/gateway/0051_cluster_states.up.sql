-- The state of a cluster follows from several facts: what its executor found (connection, reason, since) is one of them.
-- compatible: 25
alter table gateway.clusters add column connection text not null default '', add column since timestamptz not null default now();
