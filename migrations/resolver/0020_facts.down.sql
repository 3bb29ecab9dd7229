alter table resolver.clusters drop column facts;
