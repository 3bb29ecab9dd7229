alter table installer.clusters drop column labels;
drop table installer.catalogs;
drop table installer.approval_policies;
