alter table gateway.clusters drop column settings;
