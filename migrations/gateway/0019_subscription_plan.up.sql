-- A subscription keeps the state of its plan as the plan's aggregate folds it; what it chooses by and shows of every plan
-- stays in columns. The projection is made again from the log.
delete from gateway.subscriptions;
alter table gateway.subscriptions
  drop column plan_reason, drop column plan_approval, drop column plan_begun, drop column plan_expires,
  drop column plan_windows,
  add column plan_state jsonb; -- installplan.State without its bundles; null before the first plan
