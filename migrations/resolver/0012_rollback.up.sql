-- The way back that was asked for since the subscription was changed last; '' where nobody did.
alter table resolver.subscriptions
  add column rollback_from text not null default '',
  add column rollback_to   text not null default '';
comment on column resolver.subscriptions.rollback_from is 'CSV that is not taken again, since a rollback left it';
comment on column resolver.subscriptions.rollback_to is 'CSV that the rollback leads to';
