-- Catalogs that differ by Kubernetes version, bundles that are fetched when needed, and health by namespace.

alter table resolver.clusters add column minor text not null default ''; -- Kubernetes minor version, '' while it is not known
update resolver.clusters c set minor = coalesce((
  select substring(convert_from(e.body, 'UTF8')::jsonb -> 'data' ->> 'kubernetesVersion' from '^v?([0-9]+\.[0-9]+)')
  from eventlog.events e where e.tenant = c.tenant and e.type = 'cluster.observed.v1' and e.subject = c.name
    and convert_from(e.body, 'UTF8')::jsonb -> 'data' ? 'kubernetesVersion'
  order by e.position desc limit 1), '');

alter table resolver.catalogs
  add column templated boolean not null default false,
  add column disabled  boolean not null default false;

create table resolver.catalog_revisions (
  tenant   text    not null,
  subject  text    not null,
  variant  text    not null, -- Kubernetes minor version of a templated catalog, '' otherwise
  revision text    not null default '',
  failed   boolean not null default false, -- the last load failed
  reason   text    not null default '', -- why
  primary key (tenant, subject, variant)
);
comment on table resolver.catalog_revisions is 'the revisions in service of live catalogs';
insert into resolver.catalog_revisions (tenant, subject, variant, revision, failed)
  select tenant, subject, '', revision, failed from resolver.catalogs;
alter table resolver.catalogs drop column revision, drop column failed;

create table resolver.bundle_images (
  tenant  text not null,
  subject text not null, -- of the catalog
  image   text not null,
  content text not null default '', -- digest
  reason  text not null default '', -- why there is none
  primary key (tenant, subject, image)
);
comment on table resolver.bundle_images is 'bundle images that were fetched, or why not, as the log tells them';

-- Asked for until the log tells of an outcome; the indexer looks here.
create table resolver.wanted_images (
  tenant  text        not null,
  subject text        not null,
  image   text        not null,
  package text        not null,
  bundle  text        not null,
  since   timestamptz not null default now(),
  primary key (tenant, subject, image)
);
comment on table resolver.wanted_images is 'bundle images that a resolution waits for';

create table resolver.catalog_health (
  tenant    text    not null,
  cluster   text    not null, -- '' with namespace '': the hub's catalogs
  namespace text    not null,
  strict    boolean not null,
  primary key (tenant, cluster, namespace)
);
comment on table resolver.catalog_health is 'catalog namespaces and what an unhealthy catalog does to those who see it';

select eventlog.protect(t) from unnest(array['resolver.catalog_revisions', 'resolver.bundle_images', 'resolver.wanted_images', 'resolver.catalog_health']::regclass[]) as t;

create view resolver_api.wanted_images with (security_barrier) as
  select tenant, subject as catalog, image, package, bundle, since from resolver.wanted_images
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view resolver_api.wanted_images is 'bundle images that a resolution waits for, by subject of the catalog';
