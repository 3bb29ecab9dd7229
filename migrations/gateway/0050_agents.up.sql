-- compatible: 25
-- Clusters are hosted, or served by an agent. The table has no row: read models are made of its shape (ADR 0043).
alter table gateway.clusters add column access text not null default 'Hosted'; -- events.ClusterRegistered.Access
