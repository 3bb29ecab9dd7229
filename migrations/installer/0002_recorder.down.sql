drop view installer_api.messages, installer_api.step_logs;
drop table installer.messages, installer.step_logs, installer.observations, installer.csv_lives, installer.holders, installer.reports;
