drop table gateway.operatorhub;
drop table gateway.catalog_hooks;
drop view gateway_api.catalog_secrets;
drop table gateway.catalog_secrets;
alter table gateway.catalogs drop column disabled;
