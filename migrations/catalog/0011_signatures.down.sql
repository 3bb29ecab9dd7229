alter table catalog.catalogs drop column signatures;
