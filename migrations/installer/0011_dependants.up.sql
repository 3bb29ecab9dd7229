-- Who depends on an operator that is to be uninstalled, by requirements that its cluster does not know.
alter table installer.removals add column dependants text[] not null default '{}';
comment on column installer.removals.dependants is 'namespace/csv';
