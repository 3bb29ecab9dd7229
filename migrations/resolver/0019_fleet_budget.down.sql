drop view resolver_api.fleet_changes;
drop view resolver_api.fleet_held;
alter table resolver.fleet_subscriptions drop column held;
drop table resolver.fleet_changes;
drop table resolver.fleet_allowances;
drop table resolver.fleet_budgets;
