-- Nothing new is planned for a cordoned cluster.
-- compatible: 14
alter table resolver.clusters add column cordoned boolean not null default false;
