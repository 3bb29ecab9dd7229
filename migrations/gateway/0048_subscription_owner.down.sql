alter table gateway.subscriptions drop column owner, drop column target;
