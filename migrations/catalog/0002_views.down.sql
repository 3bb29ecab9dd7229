drop view catalog_api.findings, catalog_api.revisions, catalog_api.revision_blobs, catalog_api.documents,
  catalog_api.contents, catalog_api.packages, catalog_api.revision_packages, catalog_api.catalogs;
