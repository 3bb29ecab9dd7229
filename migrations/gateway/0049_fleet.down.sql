drop table gateway.rollout_clusters;
drop table gateway.rollouts;
drop table gateway.fleet_subscriptions;
