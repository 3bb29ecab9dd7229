drop index resolver.subscriptions_owner;
drop table resolver.directives;
drop table resolver.rollout_clusters;
drop table resolver.rollouts;
drop view resolver_api.fleet_waits;
drop table resolver.fleet_subscriptions;
alter table resolver.clusters drop column state;
alter table resolver.subscriptions drop column target, drop column owner;
