-- The digest of the policy that says with whose key the images of a catalog must be signed, '' for none.
alter table catalog.catalogs add column signatures text not null default '';
