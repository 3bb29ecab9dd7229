-- What the hub checks itself before it signs a grant (ADR 0034): approval policies, the labels that they select clusters
-- by, and the signature policies of catalogs, each as the gateway's events say.
create table installer.approval_policies (
  tenant text  not null,
  name   text  not null,
  spec   jsonb not null, -- events.ApprovalPolicySpec
  primary key (tenant, name)
);
comment on table installer.approval_policies is 'live approval policies, as the log tells them';

create table installer.catalogs (
  tenant     text not null,
  subject    text not null,
  spec       text not null, -- commitment of the settings
  signatures text not null, -- digest of the signature policy, '' for none
  primary key (tenant, subject)
);
comment on table installer.catalogs is 'catalogs, removed ones too: what plans from them must be signed with';

select eventlog.protect(t) from unnest(array['installer.approval_policies', 'installer.catalogs']::regclass[]) as t;

alter table installer.clusters add column labels jsonb not null default '{}';

-- What the log has told before there were these tables.
insert into installer.approval_policies (tenant, name, spec)
select e.tenant, substr(e.subject, length('approval/') + 1), convert_from(e.body, 'UTF8')::jsonb -> 'data' -> 'spec'
from (select distinct on (tenant, subject) * from eventlog.events
  where type in ('policy.approval-set.v1', 'policy.approval-deleted.v1')
  order by tenant, subject, position desc) e
where e.type = 'policy.approval-set.v1';

insert into installer.catalogs (tenant, subject, spec, signatures)
select e.tenant, e.subject, coalesce(convert_from(e.body, 'UTF8')::jsonb -> 'data' ->> 'spec', ''),
  coalesce(convert_from(e.body, 'UTF8')::jsonb -> 'data' ->> 'signatures', '')
from (select distinct on (tenant, subject) * from eventlog.events
  where type in ('catalog.added.v1', 'catalog.changed.v1')
  order by tenant, subject, position desc) e;

update installer.clusters c set labels = coalesce((
  select convert_from(e.body, 'UTF8')::jsonb -> 'data' -> 'labels'
  from eventlog.events e
  where e.tenant = c.tenant and e.type in ('cluster.registered.v1', 'cluster.labels-changed.v1')
    and c.stream = e.kind || ':' || e.stream_key || ':' || e.incarnation
  order by e.position desc limit 1), '{}');
