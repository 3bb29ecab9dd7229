-- How a cluster is to be treated (events.ClusterSettings): told to its executor with every scope. Clusters that are
-- known already were never configured.
alter table installer.clusters add column settings jsonb not null default '{}';

-- Subscriptions are shown in clusters whose settings ask for it; those that are known already once they change.
alter table installer.subscriptions add column spec jsonb not null default '{}'; -- events.SubscriptionSpec
