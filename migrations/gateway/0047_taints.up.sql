-- Taints of clusters.
-- compatible: 25
alter table gateway.clusters add column taints jsonb not null default '{}';
