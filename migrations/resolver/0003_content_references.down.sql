drop view resolver_api.content_references;
drop table resolver.content_references;
