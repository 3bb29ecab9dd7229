drop function installer_api.drain_replica, installer_api.replicas;
alter table installer.replicas drop column moves, drop column recorded, drop column gone, drop column draining_by;
