-- Until when the grants that the hub signed let each plan begin: a start that an executor reports is measured by it.
create table installer.grants (
  tenant     text        not null,
  plan       uuid        not null,
  cluster_id uuid        not null,
  until      timestamptz not null,
  primary key (tenant, plan)
);
comment on table installer.grants is 'until when plans that have not begun may begin';
create index grants_cluster on installer.grants (tenant, cluster_id);
select eventlog.protect('installer.grants');
