-- What has happened since these rows were begun, counted from the log: metrics that only ever rise (R-MET-1).
create table installer.totals (
  tenant   text   not null,
  upgrades bigint not null default 0, -- ClusterServiceVersions that were replaced by another one
  warnings bigint not null default 0, -- of API servers, about objects of install plans
  primary key (tenant)
);
comment on table installer.totals is 'upgrades and warnings of a tenant, counted from the log';

select eventlog.protect('installer.totals');
