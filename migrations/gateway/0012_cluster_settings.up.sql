-- How a cluster is to be treated (events.ClusterSettings). The projection is made again from the log.
alter table gateway.clusters add column settings jsonb not null default '{}';
