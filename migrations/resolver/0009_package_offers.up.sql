-- What a resolution needs of a package document is some hundredth of it, and is read a hundred times as often: it is
-- kept apart, made of the document when that is first met. It stays when the document leaves the catalog, so that
-- decisions can be made again.
alter table resolver.package_apis add column offer bytea;
comment on table resolver.package_apis is 'what a package document offers: the APIs that it provides, and its channels and bundles for resolution';
comment on column resolver.package_apis.offer is 'JSON of a package with what resolution needs; null where an older version met the document';
