alter table resolver.operator_groups drop column targets, drop column provided;
alter table resolver.clusters drop column kubernetes, drop column changes;
