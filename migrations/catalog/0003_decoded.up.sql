-- What bundles were decoded to, by a digest of their text: a look after a small change decodes only
-- what is new. A row may go at any time; it is worth nothing without the content that it names.
create table catalog.decoded (
  tenant  text        not null,
  key     text        not null,
  content text        not null, -- digest in catalog.contents, '' for none
  value   bytea       not null, -- zstd
  created timestamptz not null default now(),
  primary key (tenant, key)
);
comment on table catalog.decoded is 'what bundles were decoded to, by digest of their text; a cache';
alter table catalog.decoded alter column value set storage external;
select eventlog.protect('catalog.decoded');
