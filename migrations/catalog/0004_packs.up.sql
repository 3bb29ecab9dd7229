-- Content in packs (docs/adr/0009): all versions of a package share chunks. A row of contents is a recipe
-- that says of which chunks of which packs the bundle is made. Rows of the form before, a value under one
-- zstd frame, stay as they are and are read for as long as they live; new rows have a recipe.
--
-- touched is when somebody relied on a row last. The collector takes only rows that nothing refers to and
-- that nobody has touched for a while: what is stored but not published yet looks the same as garbage.

create table catalog.packs (
  tenant  text        not null,
  digest  text        not null, -- of data
  id      bigint      not null generated always as identity, -- what recipes name
  shelf   text        not null, -- the package whose versions share it
  size    integer     not null, -- of the chunks
  data    bytea       not null, -- libs/content.Pack
  touched timestamptz not null default now(),
  created timestamptz not null default now(),
  primary key (tenant, digest),
  unique (tenant, id)
);
comment on table catalog.packs is 'chunks of bundles, packed together; never changed';
alter table catalog.packs alter column data set storage external;
create index packs_shelf on catalog.packs (tenant, shelf, id desc);
select eventlog.protect('catalog.packs');

alter table catalog.contents
  alter column pack drop not null,
  add column recipe  bytea, -- libs/content.Recipe
  add column packs   bigint[], -- ids, in the order in which the recipe counts them
  add column touched timestamptz not null default now(),
  add constraint contents_form check ((pack is null) = (recipe is not null) and (recipe is null) = (packs is null));

alter table catalog.decoded
  alter column value drop not null,
  add column recipe  bytea,
  add column packs   bigint[],
  add column touched timestamptz not null default now(),
  add constraint decoded_form check ((value is null) = (recipe is not null) and (recipe is null) = (packs is null));

-- contents is what the document's bundles refer to: the first 8 bytes of each content digest as a number,
-- since the collector asks for all of them at every turn. One number for two digests would only keep
-- something for longer. Null: stored by a release before; the collector fills it in.
alter table catalog.packages
  alter column document drop not null,
  add column recipe   bytea, -- as in contents; the documents of one package share a shelf of their own
  add column packs    bigint[],
  add column contents bigint[],
  add column touched  timestamptz not null default now(),
  add constraint packages_form check ((document is null) = (recipe is not null) and (recipe is null) = (packs is null));
-- What decisions have consulted is written down since this release (resolver_api.content_references), so
-- what was there before is kept for good.
update catalog.packages set touched = 'infinity';

alter table catalog.documents add column touched timestamptz not null default now();

create or replace view catalog_api.contents with (security_barrier) as
  select c.tenant, c.digest, c.size, c.pack, c.recipe,
         array(select p.data from unnest(c.packs) with ordinality as u (id, n)
               join catalog.packs p on p.tenant = c.tenant and p.id = u.id order by u.n) as packs
  from catalog.contents c
  where current_setting('chandler.tenant', true) in ('*', c.tenant);
comment on view catalog_api.contents is 'canonical bundles: a recipe with its packs, or zstd (libs/content.Stored)';

create or replace view catalog_api.packages with (security_barrier) as
  select c.tenant, c.digest, c.package, c.document, c.recipe,
         array(select p.data from unnest(c.packs) with ordinality as u (id, n)
               join catalog.packs p on p.tenant = c.tenant and p.id = u.id order by u.n) as packs
  from catalog.packages c
  where current_setting('chandler.tenant', true) in ('*', c.tenant);
comment on view catalog_api.packages is 'canonical JSON of packages: a recipe with its packs, or zstd (libs/content.Stored)';
