-- Sources of every kind: what a look found beside the revision, one revision per Kubernetes minor for
-- templated references, and bundle images that are fetched when needed.

-- The row of a catalog is also its variant '': all there is of a catalog that is the same everywhere, and the
-- fallback of a templated one. catalog.variants has the same columns for named variants.
alter table catalog.catalogs
  add column variant          text        not null default '' check (variant = ''),
  add column templated        boolean     not null default false,
  add column disabled         boolean     not null default false, -- kept, not looked at and not offered
  add column reference        text        not null default '', -- that a look asks for, where it is an image
  add column resolved         text        not null default '', -- what that stood for: an image digest or a commit
  add column connection       text        not null default 'IDLE' check (connection in ('IDLE', 'CONNECTING', 'READY', 'TRANSIENT_FAILURE')),
  add column observed         timestamptz not null default now(), -- when connection changed
  add column connected        timestamptz, -- the last success
  add column polled           timestamptz, -- the last look, whatever came of it
  add column next_look        timestamptz default now(), -- null: only when asked for
  add column error            text        not null default '', -- of the last look, '' after a success
  add column error_reason     text        not null default '', -- R-CAT status table
  add column quarantined      text[]      not null default '{}',
  add column errors           integer     not null default 0,
  add column warnings         integer     not null default 0,
  add column infos            integer     not null default 0,
  add column template         text        not null default '' check (template in ('', 'AllTemplatesResolved', 'UnableToResolve')),
  add column template_message text        not null default '';

alter table catalog.revisions add column variant text not null default '';

create table catalog.variants (
  tenant           text        not null,
  stream           text        not null,
  variant          text        not null check (variant <> ''), -- Kubernetes minor version, such as 1.34
  wanted           bigint      not null default 1,
  looked           bigint      not null default 0,
  fingerprint      text        not null default '',
  revision         text        not null default '',
  state            text        not null default 'Loading' check (state in ('Loading', 'Ready', 'Failed')),
  reason           text        not null default '',
  message          text        not null default '',
  document         text        not null default '',
  failed_input     text        not null default '',
  reference        text        not null default '',
  resolved         text        not null default '',
  connection       text        not null default 'IDLE' check (connection in ('IDLE', 'CONNECTING', 'READY', 'TRANSIENT_FAILURE')),
  observed         timestamptz not null default now(),
  connected        timestamptz,
  polled           timestamptz,
  next_look        timestamptz default now(),
  error            text        not null default '',
  error_reason     text        not null default '',
  quarantined      text[]      not null default '{}',
  errors           integer     not null default 0,
  warnings         integer     not null default 0,
  infos            integer     not null default 0,
  template         text        not null default '' check (template in ('', 'AllTemplatesResolved', 'UnableToResolve')),
  template_message text        not null default '',
  updated          timestamptz not null default now(),
  primary key (tenant, stream, variant)
);
comment on table catalog.variants is 'what a templated catalog serves to clusters of one Kubernetes minor version';

-- Which Kubernetes versions are in use, as the log tells them.
create table catalog.clusters (
  tenant  text not null,
  name    text not null,
  version text not null default '', -- '' while it is not known
  minor   text not null default '',
  primary key (tenant, name)
);
comment on table catalog.clusters is 'registered clusters and their Kubernetes versions';

-- Bundle images that somebody waits for, or that a catalog wants fetched ahead.
create table catalog.bundle_images (
  tenant   text        not null,
  catalog  text        not null, -- stream
  image    text        not null,
  package  text        not null,
  bundle   text        not null,
  needed   boolean     not null default false, -- a subscription waits; otherwise fetched ahead
  content  text        not null default '', -- digest in catalog.contents, '' while it is not there
  resolved text        not null default '', -- digest of the image that was found
  mutable  boolean     not null default false, -- named by a tag: pinned to what was found first
  reason   text        not null default '', -- why it could not be fetched, as events say it
  message  text        not null default '', -- for people; never in an event
  attempts integer     not null default 0,
  next_try timestamptz default now(), -- null: not to be tried (again)
  fetched  timestamptz,
  primary key (tenant, catalog, image)
);
comment on table catalog.bundle_images is 'bundle images by catalog: wanted, fetched, or why not';
create index bundle_images_due on catalog.bundle_images (next_try) where content = '';
create index bundle_images_content on catalog.bundle_images (tenant, image) where content <> '';

-- Catalogs with bundle images to be fetched (libs/bus.Lanes): "cluster" holds the stream.
create table catalog.fetches (
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
comment on table catalog.fetches is 'catalogs with bundle images to be fetched, with their claims';
create index fetches_turn on catalog.fetches (lane, tenant, cluster, marked);

select eventlog.protect(t) from unnest(array[
  'catalog.variants', 'catalog.clusters', 'catalog.bundle_images', 'catalog.fetches']::regclass[]) as t;

-- Who asks for a templated catalog without naming a cluster gets what the newest Kubernetes minor gets.
create or replace view catalog_api.catalogs with (security_barrier) as
  select c.tenant, c.subject as name, c.stream, c.priority, c.visibility_cluster, c.visibility_namespace,
         coalesce(v.revision, c.revision) as revision, coalesce(v.state, c.state) as state, coalesce(v.reason, c.reason) as reason,
         coalesce(v.message, c.message) as message, coalesce(v.document, c.document) as document, coalesce(v.updated, c.updated) as updated,
         c.disabled, c.templated
  from catalog.catalogs c
  left join lateral (select * from catalog.variants x where c.templated and x.tenant = c.tenant and x.stream = c.stream
    order by string_to_array(x.variant, '.')::int[] desc limit 1) v on true
  where not c.removed and current_setting('chandler.tenant', true) in ('*', c.tenant);

create view catalog_api.catalog_status with (security_barrier) as
  select s.tenant, s.stream as catalog, c.subject as name, s.variant, s.reference, s.resolved, s.revision, s.state, s.reason, s.message, s.document,
         s.connection, s.observed, s.connected, s.polled, s.next_look, s.error, s.error_reason, s.quarantined, s.errors, s.warnings, s.infos,
         s.template, s.template_message, s.updated
  from catalog.catalogs c
  join lateral (
    select tenant, stream, variant, reference, resolved, revision, state, reason, message, document, connection, observed, connected, polled,
           next_look, error, error_reason, quarantined, errors, warnings, infos, template, template_message, updated
    from catalog.catalogs b where b.tenant = c.tenant and b.stream = c.stream
    union all
    select tenant, stream, variant, reference, resolved, revision, state, reason, message, document, connection, observed, connected, polled,
           next_look, error, error_reason, quarantined, errors, warnings, infos, template, template_message, updated
    from catalog.variants v where v.tenant = c.tenant and v.stream = c.stream) s on true
  where not c.removed and current_setting('chandler.tenant', true) in ('*', c.tenant);
comment on view catalog_api.catalog_status is 'state of each live catalog''s source, one row per variant';

create or replace view catalog_api.revisions with (security_barrier) as
  select tenant, catalog, version, revision, previous, packages, bundles, created, variant from catalog.revisions
  where current_setting('chandler.tenant', true) in ('*', tenant);

create view catalog_api.bundle_images with (security_barrier) as
  select tenant, catalog, image, package, bundle, content, resolved, mutable, reason, message, attempts, next_try, fetched from catalog.bundle_images
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.bundle_images is 'bundle images of catalogs (their streams): fetched, or why not';
