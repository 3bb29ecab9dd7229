-- What is installed refers to content by digest; the indexer's collector removes none of it.
create view installer_api.content_references with (security_barrier) as
  select distinct tenant, content as digest from installer.csvs
  where content <> '' and current_setting('chandler.tenant', true) in ('*', tenant);
comment on view installer_api.content_references is 'contents of ClusterServiceVersions that are installed';
