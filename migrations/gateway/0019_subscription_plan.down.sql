delete from gateway.subscriptions;
alter table gateway.subscriptions
  drop column plan_state,
  add column plan_reason text not null,
  add column plan_approval text not null default '',
  add column plan_begun boolean not null default false,
  add column plan_expires timestamptz,
  add column plan_windows jsonb not null default '[]';
