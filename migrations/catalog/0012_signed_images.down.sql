drop view catalog_api.signed_images;
drop table catalog.signed_images;
