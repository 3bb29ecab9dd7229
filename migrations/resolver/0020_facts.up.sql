-- Fleet subscriptions choose clusters by what these are made of.
-- compatible: 14
alter table resolver.clusters add column facts jsonb not null default '{}';
comment on column resolver.clusters.facts is 'what the cluster is made of: events.ClusterFacts';
