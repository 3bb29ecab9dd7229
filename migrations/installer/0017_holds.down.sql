alter table installer.reports drop column session, drop column sequence;
alter table installer.holders drop column session, add column back jsonb not null default '{}';
comment on table installer.holders is 'who holds each cluster, as far as reports tell';
drop table installer.holds;
