alter table installer.clusters drop column waived;
