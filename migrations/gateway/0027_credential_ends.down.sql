alter table gateway.clusters drop column credential_ends;
