drop view resolver_api.samples;
drop table resolver.samples;
drop index resolver.explanations_created, resolver.inputs_created, resolver.plan_documents_created;
alter table resolver.inputs drop column referred;
delete from resolver.content_references a where exists (
  select from resolver.content_references b where b.tenant = a.tenant and b.kind = a.kind and b.digest = a.digest and b.holder < a.holder);
alter table resolver.content_references drop constraint content_references_pkey, drop column holder, add primary key (tenant, kind, digest);
alter table resolver.plans drop column packages;
