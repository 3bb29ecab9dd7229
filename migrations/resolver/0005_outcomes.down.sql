delete from resolver.wanted_images a using resolver.wanted_images b
  where b.tenant = a.tenant and b.subject = a.subject and b.image = a.image and (b.package, b.bundle) < (a.package, a.bundle);
alter table resolver.wanted_images drop constraint wanted_images_pkey, add primary key (tenant, subject, image);
delete from resolver.bundle_images a using resolver.bundle_images b
  where b.tenant = a.tenant and b.subject = a.subject and b.image = a.image and (b.package, b.bundle) < (a.package, a.bundle);
alter table resolver.bundle_images drop constraint bundle_images_pkey, drop column package, drop column bundle, add primary key (tenant, subject, image);
