drop view catalog_api.upgrades;
drop table catalog.compared;
drop table catalog.upgrades;
