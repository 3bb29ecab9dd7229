alter table installer.subscriptions drop column failed_since;
alter table installer.subscriptions drop column failed;
