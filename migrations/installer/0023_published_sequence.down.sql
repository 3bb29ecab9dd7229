alter table installer.published drop column sequence;
