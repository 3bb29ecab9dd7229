drop table installer.group_observations;
