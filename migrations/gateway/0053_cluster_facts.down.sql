alter table gateway.clusters drop column facts;
