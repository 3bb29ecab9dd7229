-- Labels and annotations of intents. The projections are made again from the log.
alter table gateway.subscriptions add column labels jsonb not null default '{}';
alter table gateway.subscriptions add column annotations text not null default ''; -- commitment
alter table gateway.operatorgroups add column labels jsonb not null default '{}';
alter table gateway.operatorgroups add column annotations text not null default ''; -- commitment
alter table gateway.catalogs add column labels jsonb not null default '{}';
alter table gateway.catalogs add column annotations text not null default ''; -- commitment
create index subscriptions_labels on gateway.subscriptions using gin (labels);
-- Annotations are bodies that can be erased.
alter table gateway.bodies drop constraint bodies_kind_check;
alter table gateway.bodies add constraint bodies_kind_check check (kind in ('subscription-config', 'catalog-source', 'plan-reason', 'annotations'));
