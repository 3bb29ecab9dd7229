drop function catalog_api.search_packages;
drop function catalog.search_query;
drop view catalog_api.package_cards;
drop table catalog.search;
