-- Rollouts that are taken back.
-- compatible: 14
alter table resolver.rollouts add column rollback_to integer not null default 0;
comment on column resolver.rollouts.rollback_to is 'number of the rollout that brought what its clusters go back to; 0 where nobody asked for a rollback';
