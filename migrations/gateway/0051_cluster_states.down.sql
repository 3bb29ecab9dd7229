alter table gateway.clusters drop column connection, drop column since;
