-- What upgrades change: computed along the edges of update graphs, for approvals and for installation.
create table catalog.upgrades (
  tenant       text        not null,
  from_content text        not null, -- digests of canonical bundles
  to_content   text        not null,
  semantics    text        not null, -- of the rules that compared them
  breaking     boolean     not null, -- what exists can become invalid or unreachable
  gained       integer     not null, -- rights that the old bundle did not have
  difference   bytea       not null, -- zstd of JSON
  created      timestamptz not null default now(),
  primary key (tenant, from_content, to_content)
);
comment on table catalog.upgrades is 'what differs between two bundles: custom resource definitions and rights';
alter table catalog.upgrades alter column difference set storage external;

-- Package documents whose every edge was compared. A row may go at any time: the work is done again.
create table catalog.compared (
  tenant    text        not null,
  digest    text        not null, -- of the package document
  package   text        not null,
  semantics text        not null,
  created   timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table catalog.compared is 'package documents whose upgrades are compared';
create index compared_package on catalog.compared (tenant, package);

select eventlog.protect(t) from unnest(array['catalog.upgrades', 'catalog.compared']::regclass[]) as t;

create view catalog_api.upgrades with (security_barrier) as
  select tenant, from_content, to_content, semantics, breaking, gained, difference from catalog.upgrades
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.upgrades is 'what differs between two bundles: zstd of JSON';
