-- What was recorded last of the one operator group of a namespace; stream says of which.
create table installer.group_observations (
  tenant     text  not null,
  cluster_id uuid  not null,
  namespace  text  not null,
  stream     text  not null,
  state      jsonb not null, -- record.Group
  primary key (tenant, cluster_id, namespace)
);
comment on table installer.group_observations is 'what was recorded last of each operator group';

select eventlog.protect('installer.group_observations');
