alter table gateway.role_bindings drop column version, drop column stream;
alter table gateway.roles drop column version, drop column stream;
