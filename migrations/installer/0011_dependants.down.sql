alter table installer.removals drop column dependants;
