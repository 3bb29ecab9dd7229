alter table gateway.clusters drop column cordoned;
