drop table gateway.subscription_deprecations;
-- A read model: what is left out is made again from the log.
delete from gateway.subscription_catalogs where variant <> '';
alter table gateway.subscription_catalogs
  drop constraint subscription_catalogs_pkey,
  add primary key (tenant, subject),
  drop column variant,
  drop column revision_event,
  drop column revision_since;
alter table gateway.subscriptions
  drop column plan_approval,
  drop column plan_begun,
  drop column plan_expires,
  drop column plan_windows,
  drop column spec_event,
  drop column spec_since,
  drop column installed_event,
  drop column installed_since,
  drop column missing_event,
  drop column missing_since;
