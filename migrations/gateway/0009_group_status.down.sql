alter table gateway.operatorgroups
  drop column observed_since, drop column observed_event, drop column conditions, drop column provided, drop column targets;
