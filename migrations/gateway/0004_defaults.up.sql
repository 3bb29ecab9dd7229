-- Default catalogs are told from a tenant's own of the same name, and hooks are found by what stands in
-- their secret rather than by the name of their catalog.

-- The projection is made again from the log, which tells who added a catalog.
alter table gateway.catalogs add column configured boolean not null default false;
comment on column gateway.catalogs.configured is 'added by the configuration of the installation, not by a person';

drop index gateway.catalog_hooks_subject;
create unique index catalog_hooks_nonce on gateway.catalog_hooks (nonce);
