-- What clusters are made of.
-- compatible: 25
alter table gateway.clusters add column facts jsonb;
