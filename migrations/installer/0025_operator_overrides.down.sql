alter table installer.csvs drop column overrides;
