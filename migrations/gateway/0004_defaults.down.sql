drop index gateway.catalog_hooks_nonce;
create index catalog_hooks_subject on gateway.catalog_hooks (subject);
alter table gateway.catalogs drop column configured;
