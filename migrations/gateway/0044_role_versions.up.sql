-- compatible: 25
-- Roles and bindings are replaced under If-Match (ADR 0055): at which version of their one stream each was defined last.
-- A gateway of before has tables of its own version of the read model, and leaves these columns at their defaults.
alter table gateway.roles
  add column stream  text   not null default '',
  add column version bigint not null default 0;
alter table gateway.role_bindings
  add column stream  text   not null default '',
  add column version bigint not null default 0;
