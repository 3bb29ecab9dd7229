alter table resolver.clusters drop column taints;
