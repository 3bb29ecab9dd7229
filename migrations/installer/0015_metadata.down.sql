drop table installer.metadata;
