alter table installer.holders drop column heartbeat;
