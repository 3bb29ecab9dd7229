-- Labels and annotations of intents, shown in clusters that mirror everything.
create table installer.metadata (
  tenant   text  not null,
  kind     text  not null, -- of the stream: subscription, operatorgroup, catalog
  subject  text  not null,
  metadata jsonb not null, -- events.Metadata
  primary key (tenant, kind, subject)
);
comment on table installer.metadata is 'labels and annotations of intents that have some';
select eventlog.protect('installer.metadata');
