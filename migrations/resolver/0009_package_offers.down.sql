alter table resolver.package_apis drop column offer;
comment on table resolver.package_apis is 'which APIs a package document provides';
