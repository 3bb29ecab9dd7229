-- A rollback that a rollout asks of a subscription needs no approval for that alone.
-- compatible: 25
alter table installer.subscriptions add column goes_back_to text not null default '';
comment on column installer.subscriptions.goes_back_to is 'CSV that a rollout has it go back to; empty where none does';
