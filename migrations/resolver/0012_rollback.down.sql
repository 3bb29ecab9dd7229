alter table resolver.subscriptions drop column rollback_from, drop column rollback_to;
