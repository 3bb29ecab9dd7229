drop index resolver.preview_scopes_in_order;
