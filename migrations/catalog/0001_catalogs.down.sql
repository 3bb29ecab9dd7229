drop table catalog.findings, catalog.revisions, catalog.revision_blobs, catalog.revision_packages,
  catalog.documents, catalog.packages, catalog.contents, catalog.dirty, catalog.catalogs;
