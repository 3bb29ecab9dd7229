drop table gateway.operators;
drop table gateway.installplans;
drop table gateway.subscription_catalogs;
drop table gateway.subscription_csvs;
drop table gateway.subscriptions;
drop table gateway.operatorgroups;
drop table gateway.catalogs;
drop table gateway.clusters;
