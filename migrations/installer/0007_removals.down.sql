drop view installer_api.leftovers;
drop table installer.leftovers, installer.removals;
