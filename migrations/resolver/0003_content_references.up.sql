-- What decisions refer to in the catalog schema: contents that plans install, and package documents that
-- were consulted (resolver.inputs). The indexer's collector removes none of it: plans are in the record
-- for good, and any of them may be looked at, carried out or decided again.
create table resolver.content_references (
  tenant  text        not null,
  kind    text        not null check (kind in ('content', 'package')),
  digest  text        not null,
  created timestamptz not null default now(),
  primary key (tenant, kind, digest)
);
comment on table resolver.content_references is 'catalog content that decisions refer to, by digest';
select eventlog.protect('resolver.content_references');

-- Of decisions made before, the contents are in their plans. (The package documents that they consulted are
-- kept by the catalog schema, all of them.)
insert into resolver.content_references (tenant, kind, digest)
  select distinct p.tenant, 'content', b ->> 'content'
  from resolver.plans p, jsonb_array_elements(p.state -> 'Proposed' -> 'bundles') b
  where coalesce(b ->> 'content', '') <> ''
  union
  select tenant, 'content', content from resolver.installed where content <> '';

create view resolver_api.content_references with (security_barrier) as
  select tenant, kind, digest from resolver.content_references
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view resolver_api.content_references is 'catalog content that decisions refer to; it is never collected';
