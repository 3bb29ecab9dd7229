-- The rollback that was asked for since the intent was changed last; '' where none was.
alter table gateway.subscriptions
  add column rollback_from text not null default '',
  add column rollback_to   text not null default '';
comment on column gateway.subscriptions.rollback_from is 'CSV that is left';
comment on column gateway.subscriptions.rollback_to is 'CSV that is gone back to';
