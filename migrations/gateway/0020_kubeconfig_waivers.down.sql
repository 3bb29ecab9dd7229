alter table gateway.clusters drop column waived;
