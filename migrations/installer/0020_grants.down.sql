drop table installer.grants;
