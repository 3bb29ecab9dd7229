-- What an operator group comes to in its cluster (operatorgroup.observed): which namespaces it serves ("" is all), what
-- it provides there, and conditions by their type. The projection is made again from the log.
alter table gateway.operatorgroups
  add column targets        jsonb       not null default '[]',
  add column provided       jsonb       not null default '[]',
  add column conditions     jsonb       not null default '[]',
  add column observed_event text        not null default '',
  add column observed_since timestamptz;
