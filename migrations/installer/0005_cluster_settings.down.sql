alter table installer.subscriptions drop column spec;
alter table installer.clusters drop column settings;
