-- How long what decisions rest on is kept, who refers to catalog content, and the nightly sample.

-- Packages of a plan: the newest plan of each says what was tried last, and stays.
alter table resolver.plans add column packages text[] not null default '{}';
update resolver.plans p set packages = coalesce((
  select array_agg(distinct b ->> 'package' order by b ->> 'package') from jsonb_array_elements(p.state -> 'Proposed' -> 'bundles') b), '{}');

-- A reference is by its holder, a plan or the digest of an input, and goes with it. Those of before have none.
alter table resolver.content_references add column holder text not null default '';
alter table resolver.content_references drop constraint content_references_pkey, add primary key (tenant, kind, digest, holder);
create index content_references_holder on resolver.content_references (tenant, holder);
insert into resolver.content_references (tenant, kind, digest, holder)
  select distinct p.tenant, 'content', b ->> 'content', p.plan
  from resolver.plans p, jsonb_array_elements(p.state -> 'Proposed' -> 'bundles') b
  where coalesce(b ->> 'content', '') <> ''
  on conflict do nothing;

-- What an input refers to stands in its packed document. Inputs of before are unpacked by and by.
alter table resolver.inputs add column referred boolean not null default false;
create index inputs_unreferred on resolver.inputs (tenant, digest) where not referred;

create index plan_documents_created on resolver.plan_documents (created);
create index inputs_created on resolver.inputs (created);
create index explanations_created on resolver.explanations (created);
create index content_references_unheld on resolver.content_references (created) where holder = '';
comment on column resolver.plan_documents.created is 'when it was written, or last found to be needed';
comment on column resolver.inputs.created is 'when it was written, or last found to be needed';
comment on column resolver.explanations.created is 'when it was written, or last found to be needed';

create table resolver.samples (
  tenant    text        not null,
  night     date        not null,
  cluster   text        not null,
  namespace text        not null,
  begun     timestamptz,           -- a replica looks at it
  looked    timestamptz,           -- it has
  found     text[]      not null default '{}', -- what was new though nothing had made the scope dirty
  primary key (tenant, night, cluster, namespace)
);
comment on table resolver.samples is 'scopes that were resolved afresh by night, and what that found';
create index samples_due on resolver.samples (night) where looked is null;
select eventlog.protect('resolver.samples');

create view resolver_api.samples with (security_barrier) as
  select tenant, night, cluster, namespace, looked, found from resolver.samples
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view resolver_api.samples is 'scopes that were resolved afresh by night, and what that found';
