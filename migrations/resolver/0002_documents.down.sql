drop view resolver_api.explanations, resolver_api.plan_documents;
drop table resolver.package_apis, resolver.inputs, resolver.explanations, resolver.plan_documents;
