-- What the hub checks the signatures of bundle images again by, before it signs a grant (ADR 0034).
create table catalog.signed_images (
  tenant   text  not null,
  catalog  text  not null, -- subject
  image    text  not null, -- digest of what was fetched
  content  text  not null, -- digest of the bundle in it
  evidence bytea not null, -- libs/source/oci.Evidence
  primary key (tenant, catalog, image),
  foreign key (tenant, content) references catalog.contents (tenant, digest) on delete cascade
);
alter table catalog.signed_images alter column evidence set storage external;
create index signed_images_content on catalog.signed_images (tenant, content);
comment on table catalog.signed_images is 'images of catalogs with a signature policy, as they were fetched';
select eventlog.protect('catalog.signed_images');

create view catalog_api.signed_images with (security_barrier) as
  select tenant, catalog, image, content, evidence from catalog.signed_images
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.signed_images is 'what signatures of bundle images are checked again by; it proves itself';

-- What was fetched before has no evidence: plans from catalogs with a policy wait until it was fetched again.
update catalog.bundle_images b set content = '', resolved = '', reason = '', message = '', attempts = 0, next_try = now()
from catalog.catalogs c where c.tenant = b.tenant and c.stream = b.catalog and c.signatures <> '' and not c.removed;
