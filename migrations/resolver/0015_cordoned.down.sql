alter table resolver.clusters drop column cordoned;
