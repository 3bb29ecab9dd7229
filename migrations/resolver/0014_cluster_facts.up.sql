-- What is known of a cluster beside its catalogs, and decides whether an operator that could be planned could run there.
alter table resolver.clusters
  add column kubernetes text   not null default '',
  add column changes    bigint not null default 0;
comment on column resolver.clusters.kubernetes is 'version as the executor tells it, such as v1.34.4; empty while unknown';
comment on column resolver.clusters.changes is 'counts changes of the version and of operator groups: a decision that rests on them compares';
alter table resolver.operator_groups
  add column targets  text[],
  add column provided text[] not null default '{}';
comment on column resolver.operator_groups.targets is 'namespaces that the group serves, as the cluster tells; null while unknown';
comment on column resolver.operator_groups.provided is 'APIs of its operators, Kind.version.group, as the cluster tells';
