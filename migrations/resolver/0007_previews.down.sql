drop table resolver.preview_scopes;
drop table resolver.previews;
