-- Taints keep fleet subscriptions away from clusters.
-- compatible: 14
alter table resolver.clusters add column taints jsonb not null default '{}';
comment on column resolver.clusters.taints is 'value by key; they keep fleet subscriptions away that do not tolerate them';
