alter table gateway.clusters drop column access;
