-- Labels and annotations of install plans. The projection is made again from the log.
alter table gateway.installplans add column labels jsonb not null default '{}';
alter table gateway.installplans add column annotations text not null default ''; -- commitment
