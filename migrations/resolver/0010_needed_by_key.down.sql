alter table resolver.plans drop column input;
alter table resolver.subscriptions drop column input, drop column explanation;
