drop view installer_api.drifts;
drop view installer_api.operator_details;
drop table installer.drifts;
drop table installer.operator_details;
