-- Since when a cluster is cordoned.
-- compatible: 25
alter table gateway.clusters add column cordoned timestamptz;
