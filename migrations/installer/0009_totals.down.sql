drop table installer.totals;
