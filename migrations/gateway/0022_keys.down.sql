drop function gateway_api.reseal_catalog_secret;
drop function gateway_api.reseal_cluster_credential;
-- A view cannot lose a column: it is made again, with its rights.
drop view gateway_api.catalog_secrets;
create view gateway_api.catalog_secrets with (security_barrier) as
  select tenant, name, kind, commitment, ciphertext from gateway.catalog_secrets
   where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view gateway_api.catalog_secrets is 'encrypted credentials of catalog sources, for the catalog-indexer';
revoke select on gateway_api.catalog_secrets from chandler_resolver, chandler_installer, chandler_gateway;
drop view gateway_api.cluster_credentials;
create view gateway_api.cluster_credentials with (security_barrier) as
  select tenant, cluster_key, name, commitment, ciphertext from gateway.credentials
   where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view gateway_api.cluster_credentials is 'encrypted kubeconfigs, for the installer';
revoke select on gateway_api.cluster_credentials from chandler_resolver, chandler_catalog_indexer, chandler_gateway;
alter table gateway.catalog_hooks drop column key_id;
alter table gateway.catalog_secrets drop column key_id;
alter table gateway.credentials drop column key_id;
