-- What approvers said of obstacles of a plan. The projection is made again from the log.
alter table gateway.installplans add column choices jsonb not null default '[]';
-- Why an approver settled an obstacle is a body that can be erased.
alter table gateway.bodies drop constraint bodies_kind_check;
alter table gateway.bodies add constraint bodies_kind_check check (kind in ('subscription-config', 'catalog-source', 'plan-reason'));
