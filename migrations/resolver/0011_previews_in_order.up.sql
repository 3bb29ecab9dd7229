-- Pages of previews go in the order of bytes, as Go compares names.
create index preview_scopes_in_order on resolver.preview_scopes (tenant, id, cluster collate "C", namespace collate "C");
