-- What the indexer knows: catalogs as the log tells them, and content by digest (DESIGN D3).

-- One row per life of a catalog (stream). wanted counts intents that ask for a look at the source,
-- looked is the count that the last look answered.
create table catalog.catalogs (
  tenant               text        not null,
  stream               text        not null,
  subject              text        not null,
  source_type          text        not null,
  spec                 text        not null, -- commitment of the source's settings
  priority             integer     not null,
  visibility_cluster   text        not null default '',
  visibility_namespace text        not null default '',
  removed              boolean     not null default false,
  wanted               bigint      not null default 1,
  looked               bigint      not null default 0,
  fingerprint          text        not null default '', -- of the files at the last look: names, sizes, times
  revision             text        not null default '', -- that is served
  state                text        not null default 'Loading' check (state in ('Loading', 'Ready', 'Failed')),
  reason               text        not null default '',
  message              text        not null default '', -- for people; never in an event
  document             text        not null default '', -- digest of the findings of the last look
  failed_input         text        not null default '', -- of the last failure that was told, '' after a success
  updated              timestamptz not null default now(),
  primary key (tenant, stream)
);
comment on table catalog.catalogs is 'catalogs, where they come from, what is served and the state of the last look';
create unique index catalogs_subject on catalog.catalogs (tenant, subject) where not removed;

-- Catalogs that are to be looked at (libs/bus.Lanes): "cluster" holds the stream.
create table catalog.dirty (
  tenant      text        not null,
  cluster     text        not null,
  namespace   text        not null,
  lane        smallint    not null,
  generation  bigint      not null default 1,
  owner       text,
  until       timestamptz,
  attempts    integer     not null default 0,
  not_before  timestamptz not null default now(),
  marked      timestamptz not null default now(),
  cause       text        not null default '',
  traceparent text        not null default '',
  reason      text        not null default '',
  primary key (tenant, cluster, namespace)
);
comment on table catalog.dirty is 'catalogs to be looked at, with their claims';
create index dirty_turn on catalog.dirty (lane, tenant, cluster, marked);

-- Content: written once by digest, shared by every revision and catalog of the tenant, never changed.
create table catalog.contents (
  tenant  text        not null,
  digest  text        not null,
  size    bigint      not null, -- of the canonical bundle
  pack    bytea       not null, -- zstd of the canonical bundle
  created timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table catalog.contents is 'canonical bundles by digest';
alter table catalog.contents alter column pack set storage external; -- packed already

create table catalog.packages (
  tenant   text        not null,
  digest   text        not null,
  package  text        not null,
  document bytea       not null, -- zstd of the canonical JSON of the package
  created  timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table catalog.packages is 'package documents by digest';
alter table catalog.packages alter column document set storage external;

create table catalog.documents (
  tenant  text        not null,
  digest  text        not null,
  body    bytea       not null,
  created timestamptz not null default now(),
  primary key (tenant, digest)
);
comment on table catalog.documents is 'blobs of schemas that Chandler does not know, by digest of their bytes';

-- A revision is a set of packages; two catalogs with the same content share it.
create table catalog.revision_packages (
  tenant   text not null,
  revision text not null,
  package  text not null,
  digest   text not null,
  primary key (tenant, revision, package)
);
comment on table catalog.revision_packages is 'which package documents a revision is made of';

create table catalog.revision_blobs (
  tenant   text not null,
  revision text not null,
  package  text not null, -- '' where the blob names no package of the catalog
  schema   text not null,
  name     text not null,
  digest   text not null,
  primary key (tenant, revision, package, schema, name, digest)
);
comment on table catalog.revision_blobs is 'blobs of unknown schemas of a revision, by schema, package and name';

-- Which catalog served which revision, in order of version (of the event that says so in its stream).
create table catalog.revisions (
  tenant   text        not null,
  catalog  text        not null, -- stream
  version  bigint      not null,
  revision text        not null,
  previous text        not null,
  packages integer     not null,
  bundles  integer     not null,
  created  timestamptz not null,
  primary key (tenant, catalog, version)
);
comment on table catalog.revisions is 'the revisions that each catalog has served';

create table catalog.findings (
  tenant   text        not null,
  document text        not null,
  catalog  text        not null, -- stream
  findings jsonb       not null,
  created  timestamptz not null default now(),
  primary key (tenant, document, catalog)
);
comment on table catalog.findings is 'what was wrong with a catalog at a look, by digest';

select eventlog.protect(t) from unnest(array[
  'catalog.catalogs', 'catalog.dirty', 'catalog.contents', 'catalog.packages', 'catalog.documents',
  'catalog.revision_packages', 'catalog.revision_blobs', 'catalog.revisions', 'catalog.findings']::regclass[]) as t;
