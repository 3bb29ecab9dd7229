drop table gateway.access_versions;
drop table gateway.access_clusters;
drop table gateway.role_bindings;
drop table gateway.roles;
delete from gateway.tokens where role = 'none';
alter table gateway.tokens
  drop constraint tokens_role_check,
  add constraint tokens_role_check check (role in ('admin', 'viewer'));
