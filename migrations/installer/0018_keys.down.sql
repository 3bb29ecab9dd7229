drop view installer_api.key_uses;
alter table installer.published drop column keys;
