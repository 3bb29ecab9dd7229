alter table gateway.clusters drop column taints;
