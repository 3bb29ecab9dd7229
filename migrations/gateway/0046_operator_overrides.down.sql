alter table gateway.operators drop column overrides;
