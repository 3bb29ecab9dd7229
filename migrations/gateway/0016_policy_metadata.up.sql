-- Labels and annotations of approval policies. The projection is made again from the log.
alter table gateway.approval_policies add column labels jsonb not null default '{}';
alter table gateway.approval_policies add column annotations text not null default ''; -- commitment
