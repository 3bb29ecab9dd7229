-- Approval policies, and the labels of clusters that they select by.

create table resolver.approval_policies (
  tenant text  not null,
  name   text  not null,
  spec   jsonb not null, -- events.ApprovalPolicySpec
  primary key (tenant, name)
);
comment on table resolver.approval_policies is 'live approval policies: which upgrades may happen, when, and who has to agree';
select eventlog.protect('resolver.approval_policies');

alter table resolver.clusters add column labels jsonb not null default '{}';
update resolver.clusters c set labels = coalesce((
  select convert_from(e.body, 'UTF8')::jsonb -> 'data' -> 'labels'
  from eventlog.events e where e.tenant = c.tenant and e.type = 'cluster.registered.v1' and e.subject = c.name
  order by e.position desc limit 1), '{}');
