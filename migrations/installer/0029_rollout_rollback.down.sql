alter table installer.subscriptions drop column goes_back_to;
